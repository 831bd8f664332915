"""
Decision regions: trees, Voronoi cells and an RBF kernel
========================================================

Two spirals, dense at the centre and sparse outside. An RBF kernel has one width for both: a wide one blurs the centre,
and a narrow one leaves noise where rows are few. The cells of the Isolation Kernel are small where rows are dense and
large where they are sparse, so there is no width to choose.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline

from isokern import IKOGDClassifier


def spirals(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    radius = rng.beta(1.1, 2.2, size=n)
    angle = 5.5 * np.pi * np.sqrt(radius) + np.pi * y
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + rng.normal(scale=0.012 + 0.02 * radius[:, None], size=X.shape), y


X, y = spirals(5000, seed=0)
X_test, y_test = spirals(4000, seed=1)

# %%
# Four models, each trained on the same rows. The RBF kernel is approximated by random Fourier features, the usual way
# to learn online with it; ``gamma`` is the inverse of its squared width.


def rbf(gamma):
    return make_pipeline(RBFSampler(gamma=gamma, n_components=400, random_state=0), SGDClassifier(random_state=0))


models = {
    "isokern, trees": IKOGDClassifier(random_state=0),
    "isokern, Voronoi cells": IKOGDClassifier("voronoi", n_partitionings=100, random_state=0),
    "RBF, gamma = 20": rbf(20),
    "RBF, gamma = 200": rbf(200),
}
for model in models.values():
    model.fit(X, y)

# %%
# Trees make edges parallel to the axes, Voronoi cells make edges in all directions. The narrow RBF kernel is as
# accurate here, but its width had to be found, and away from the rows its regions are arbitrary.

side = np.linspace(-1.02, 1.02, 200)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(2, 2, figsize=(8, 8.6), layout="constrained")
for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
    regions = model.predict(grid).reshape(200, 200)
    ax.contourf(side, side, regions, levels=[-0.5, 0.5, 1.5], colors=["#bcd5ee", "#fbd3b5"])
    ax.scatter(*X[:1500].T, c=np.where(y[:1500], "#b84a00", "#00548f"), s=3, linewidths=0)
    ax.set(title=f"{name}: {model.score(X_test, y_test):.1%} of test rows right", xticks=[], yticks=[], aspect="equal")
plt.show()
