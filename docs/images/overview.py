"""Draw the picture of the README: python docs/images/overview.py"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline

from isokern import IKOGDClassifier

N_ROWS, N_TEST = 20_000, 5_000


def spirals(n, seed):
    """Return rows on two noisy spirals whose arms are dense at the centre and sparse outside."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    radius = rng.beta(1.1, 2.2, size=n)
    angle = 5.5 * np.pi * np.sqrt(radius) + np.pi * y
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + rng.normal(scale=0.012 + 0.02 * radius[:, None], size=X.shape), y


def panels():
    """Return the learners of the panels by title; of gammas from 5 to 400, 200 gives the best test accuracy."""
    return {
        "linear SGD": SGDClassifier(random_state=0),
        "random Fourier features + SGD, best gamma": make_pipeline(
            RBFSampler(gamma=200, n_components=400, random_state=0), SGDClassifier(random_state=0)
        ),
        "isokern, default settings": IKOGDClassifier(random_state=0),
    }


if __name__ == "__main__":
    (X, y), (X_test, y_test) = spirals(N_ROWS, 0), spirals(N_TEST, 1)
    grid = np.stack(np.meshgrid(np.linspace(-1.05, 1.05, 400), np.linspace(-1.05, 1.05, 400)), axis=-1)
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
    for ax, (title, model) in zip(axes, panels().items(), strict=True):
        model.fit(X, y)
        scores = model.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
        ax.contourf(grid[..., 0], grid[..., 1], scores > 0, levels=[-0.5, 0.5, 1.5], colors=["#cfe0f3", "#fbdcc4"])
        ax.scatter(*X[:3000].T, c=np.where(y[:3000], "#d1611c", "#2a6db0"), s=1, linewidths=0)
        ax.set(title=f"{title}\ntest accuracy {model.score(X_test, y_test):.3f}", xticks=[], yticks=[], aspect="equal")
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=110)
