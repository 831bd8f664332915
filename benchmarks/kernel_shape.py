"""Which Laplacian kernel describes the Isolation Kernel of trees best, on uniform data.

python benchmarks/kernel_shape.py > docs/results/kernel-shape.md
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from isokern import IsolationKernel, __version__

N_COLUMNS, T = 2, 2000


def fit_lambda(max_depth, psi):
    """Return lambda and the root mean squared error of exp(-lambda |x - y|_1) over random pairs of points."""
    rng = np.random.default_rng(0)
    kernel = IsolationKernel("tree", T, psi, max_depth=max_depth, random_state=0).fit(rng.random((20_000, N_COLUMNS)))
    x = 0.25 + 0.5 * rng.random((200, N_COLUMNS))
    y = x + rng.normal(scale=0.1, size=x.shape)
    similarities = kernel.similarity(x, y).diagonal()
    distances = np.abs(x - y).sum(axis=1)

    def error(scale):
        return float(np.sqrt(np.mean((np.exp(-scale * distances) - similarities) ** 2)))

    best = minimize_scalar(error, bounds=(0.1, 500.0), method="bounded")
    return best.x, best.fun


if __name__ == "__main__":
    print("# The lambda of the Laplacian kernel nearest to the Isolation Kernel of trees\n")
    print(f"isokern {__version__}, uniform data on the unit square, t = {T}, pairs within it.\n")
    print("| psi | ln(psi)/d | uncapped trees (error) | capped at log2(psi) (error) |\n|---|---|---|---|")
    for n_cells in (16, 64, 256, 1024, 4096):
        found = [fit_lambda(max_depth, n_cells) for max_depth in (None, "log2")]
        cells = " | ".join(f"{value:.1f} ({error:.3f})" for value, error in found)
        print(f"| {n_cells} | {np.log(n_cells) / N_COLUMNS:.2f} | {cells} |")
