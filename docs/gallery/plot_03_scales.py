"""
All scales of one tree
======================

How large should cells be? Small ones follow detail, large ones are robust to noise. An isolation tree contains both:
its leaves are the smallest cells, and the nodes above them are larger ones. ``n_scales="auto"`` reads off all sizes in
one descent of the tree, so a model may add up the weights of several of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from isokern import IsolationKernel

X, y = make_moons(4000, noise=0.1, random_state=0)

# %%
# One tree that isolates 256 points. ``apply`` gives a row's cells from coarse to fine.

kernel = IsolationKernel(n_partitionings=1, n_cells=256, n_scales="auto", random_state=4).fit(X)
print("scales:", kernel.n_scales_)
print("cells of the first row:", *kernel.apply(X[:1])[0])

# %%
# Each panel paints the plane by the cell at one scale. Every cell lies inside a cell of the panel before it. Where
# there are no rows, even the finest cells are large.

xs, ys = np.linspace(-1.4, 2.4, 380), np.linspace(-0.9, 1.4, 230)
grid = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
cells = kernel.apply(grid)
colours = np.random.default_rng(3).permutation(np.linspace(0.05, 0.95, 256))
figure, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained")
for scale, ax in enumerate(axes.flat):
    _, number = np.unique(cells[:, scale], return_inverse=True)
    paint = colours[number].reshape(len(ys), len(xs))
    ax.pcolormesh(xs, ys, paint, cmap="viridis", alpha=0.55, shading="nearest", rasterized=True)
    ax.scatter(*X[:700].T, s=3, c="black", linewidths=0)
    ax.set(title=f"scale {scale}: {number.max() + 1} cells in view", xticks=[], yticks=[], aspect="equal")
plt.show()

# %%
# With many trees, the kernel of all scales is a weighted mean of the kernels of each scale. Here it is on the line that
# crosses both moons, as the similarity to the point in the middle:

line = np.column_stack([np.linspace(-1.2, 2.2, 300), np.full(300, 0.25)])
figure, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
settings = {
    "all scales": {"n_cells": 256, "n_scales": "auto"},
    "4 cells": {"n_cells": 4},
    "256 cells": {"n_cells": 256},
}
for (name, given), colour in zip(settings.items(), ["#0072B2", "#E69F00", "#D55E00"], strict=True):
    many = IsolationKernel(n_partitionings=1000, random_state=0, **given).fit(X)
    ax.plot(line[:, 0], many.similarity(line, line[150:151]), label=name, color=colour)
ax.set(xlabel="position on the line", ylabel="similarity to the middle")
ax.grid(alpha=0.3)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
