"""
Your own partitioning
=====================

The kernel is open: any object with ``fit(X, rng)``, ``apply(X)`` and ``n_cells_`` can divide the space. Here, random
rings around sampled points suit rows that lie on circles. Everything else stays the same: the feature map, the kernel
matrix, the learners.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.datasets import make_circles

from isokern import IKOGDClassifier


class Rings(BaseEstimator):
    """Cells between random radii around one sampled point."""

    n_cells_ = 6

    def fit(self, X, rng):
        self.centre = X[rng.integers(len(X))]
        distances = np.linalg.norm(X - self.centre, axis=1)
        self.radii = np.sort(rng.choice(distances, self.n_cells_ - 1, replace=False))
        return self

    def apply(self, X):
        return np.searchsorted(self.radii, np.linalg.norm(X - self.centre, axis=1))


# %%
# Few training rows, so that the shape of the cells matters.

X, y = make_circles(3000, noise=0.12, factor=0.65, random_state=0)
train, test = slice(0, 250), slice(250, None)
models = {
    "trees": IKOGDClassifier(n_cells=16, linear=False, random_state=0),
    "Voronoi cells": IKOGDClassifier("voronoi", n_cells=16, linear=False, random_state=0),
    "rings": IKOGDClassifier(Rings(), random_state=0),
}
side = np.linspace(-1.5, 1.5, 240)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.8), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(X[train], y[train])
    regions = model.predict(grid).reshape(240, 240)
    ax.contourf(side, side, regions, levels=[-0.5, 0.5, 1.5], colors=["#bcd5ee", "#fbd3b5"])
    ax.scatter(*X[train].T, c=np.where(y[train], "#b84a00", "#00548f"), s=6, linewidths=0)
    ax.set(title=f"{name}: {model.score(X[test], y[test]):.1%}", xticks=[], yticks=[], aspect="equal")
plt.show()
