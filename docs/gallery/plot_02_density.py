"""
The kernel adapts to density
============================

A Gaussian kernel calls two points similar if they are close in absolute terms. The Isolation Kernel calls them similar
if few rows lie between them: at the same distance, two points in a sparse region are more similar than two in a dense
one. No parameter sets this; it follows from sampling the cells from the data.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from isokern import IsolationKernel

rng = np.random.default_rng(0)
dense = rng.normal([-1.5, 0], 0.35, size=(1200, 2))
sparse = rng.normal([1.2, 0], 0.8, size=(400, 2))
X = np.concatenate([dense, sparse])

# %%
# Contours of the similarity to two points, one in each region. A contour shows how far one has to go until the
# similarity has fallen to a given value.

centres = np.array([[-1.5, 0.0], [1.2, 0.0]])
xs, ys = np.linspace(-3, 3.4, 160), np.linspace(-2.2, 2.2, 110)
grid = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)


def isolation(partitioning):
    return IsolationKernel(partitioning, n_partitionings=1000, n_cells=8, random_state=0).fit(X).similarity


kernels = {
    "Gaussian kernel": lambda a, b: rbf_kernel(a, b, gamma=2),
    "Isolation Kernel, trees": isolation("tree"),
    "Isolation Kernel, Voronoi cells": isolation("voronoi"),
}
figure, axes = plt.subplots(1, 3, figsize=(11, 3.3), layout="constrained", sharey=True)
for ax, (name, similarity) in zip(axes, kernels.items(), strict=True):
    ax.scatter(*X.T, s=2, c="#999999", linewidths=0)
    for centre, colour in zip(centres, ["#0072B2", "#D55E00"], strict=True):
        levels = similarity(grid, centre[None]).reshape(len(ys), len(xs))
        ax.contour(xs, ys, levels, levels=[0.3, 0.5, 0.7], colors=colour, linewidths=1.2)
        ax.plot(*centre, "+", color=colour, ms=9, mew=2)
    ax.set(title=name, xticks=[], yticks=[], aspect="equal")
plt.show()

# %%
# The Gaussian contours are equal circles. Those of the Isolation Kernel are narrow on the left, where rows are dense,
# and wide on the right. In numbers, the similarity of two points at distance 0.5:

pairs = centres, centres + np.array([0, 0.5])
for name, similarity in kernels.items():
    left, right = np.diag(similarity(*pairs))
    print(f"{name:<32} dense {left:.2f}   sparse {right:.2f}")
