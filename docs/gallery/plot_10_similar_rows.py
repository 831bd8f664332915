"""
Similar rows under the kernel
=============================

``similarity`` is the share of partitionings in which two rows fall into the same cell: 1 for equal rows, 0 for rows
that are always apart. It serves for more than classification. Here it finds, for a few digits, the images most similar
to them, and draws all images on a plane.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.manifold import SpectralEmbedding

from isokern import IsolationKernel

X, y = load_digits(return_X_y=True)
kernel = IsolationKernel("voronoi", n_partitionings=300, n_cells=32, random_state=0).fit(X)
K = kernel.similarity(X)
print(f"{K.shape[0]} x {K.shape[1]} similarities; diagonal {K.diagonal().min():.0f}, mean {K.mean():.2f}")

# %%
# On the left of each line a digit, then the seven images most similar to it, with their similarities.

queries = [0, 4, 88, 200, 333]
figure, axes = plt.subplots(len(queries), 8, figsize=(8, 5.8), layout="constrained")
for line, query in zip(axes, queries, strict=True):
    nearest = np.argsort(-K[query], kind="stable")[:8]
    for ax, row in zip(line, nearest, strict=True):
        ax.imshow(X[row].reshape(8, 8), cmap="Blues" if row == query else "Greys")
        ax.set(xticks=[], yticks=[])
        ax.set_title("query" if row == query else f"{K[query, row]:.2f}", fontsize="small")
plt.show()

# %%
# Methods of scikit-learn that take a kernel or an affinity matrix can use it. Spectral embedding draws similar images
# near each other; colours are the digits, which it has not been told.

plane = SpectralEmbedding(2, affinity="precomputed", random_state=0).fit_transform(K)
figure, ax = plt.subplots(figsize=(7, 5.4), layout="constrained")
dots = ax.scatter(*plane.T, c=y, cmap="tab10", s=9, linewidths=0)
ax.set(xticks=[], yticks=[])
ax.legend(*dots.legend_elements(), title="digit", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()
