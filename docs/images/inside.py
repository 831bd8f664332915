"""Draw the pictures of the page on the algorithms: python docs/images/inside.py"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from isokern import IKOGDClassifier, IsolationKernel
from isokern.learners.ladder import MOST_ROWS, Ladder
from isokern.learners.recent import RecentRows

XS, YS = np.linspace(-1.5, 2.5, 480), np.linspace(-1.0, 1.5, 300)
GRID = np.stack(np.meshgrid(XS, YS), axis=-1).reshape(-1, 2)
BLUE, ORANGE = "#0072B2", "#D55E00"


def plane(ax, title):
    """Make a panel show the plane without ticks."""
    ax.set(xlim=(XS[0], XS[-1]), ylim=(YS[0], YS[-1]), xticks=[], yticks=[], aspect="equal")
    ax.set_title(title, fontsize=10)


def draw_cells(ax, cells, seed=0):
    """Paint cells in pale colours, with thin lines between them."""
    _, numbers = np.unique(cells, return_inverse=True)
    numbers = numbers.reshape(len(YS), len(XS))
    colours = np.random.default_rng(seed).permutation(np.linspace(0, 1, numbers.max() + 1))
    ax.pcolormesh(XS, YS, colours[numbers], cmap="Pastel1", shading="nearest", rasterized=True)
    is_edge = (np.diff(numbers, axis=1, append=numbers[:, -1:]) != 0) | (
        np.diff(numbers, axis=0, append=numbers[-1:]) != 0
    )
    ax.contourf(XS, YS, is_edge, levels=[0.5, 1.5], colors=["#556677"])


def cells_of_one_sample(X):
    """Draw the cells that trees and Voronoi cells make of the same 12 points."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.0), layout="constrained")
    for ax, (partitioning, name) in zip(
        axes, {"tree": "an isolation tree", "voronoi": "Voronoi cells"}.items(), strict=True
    ):
        kernel = IsolationKernel(partitioning, n_partitionings=1, n_cells=12, random_state=11).fit(X)
        draw_cells(ax, kernel.apply(GRID))
        ax.scatter(*X[:800].T, s=2, color="#777777", linewidths=0)
        plane(ax, f"12 cells of {name}")
    return figure


def scores(X, y):
    """Draw the score of one, ten and 200 trees."""
    figure, axes = plt.subplots(1, 3, figsize=(10, 2.4), layout="constrained")
    for ax, n in zip(axes, (1, 10, 200), strict=True):
        model = IKOGDClassifier(n_partitionings=n, n_cells=64, linear=False, learning_rate=0.5, random_state=0).fit(
            X, y
        )
        score = model.decision_function(GRID).reshape(len(YS), len(XS))
        limit = np.abs(score).max()
        ax.pcolormesh(XS, YS, score, cmap="RdBu_r", vmin=-limit, vmax=limit, shading="nearest", rasterized=True)
        ax.contour(XS, YS, score, levels=[0], colors="black", linewidths=1)
        plane(ax, "1 tree" if n == 1 else f"mean of {n} trees")
    return figure


def growth(X, y):
    """Draw one tree of a stream after more and more rows."""
    figure, axes = plt.subplots(2, 2, figsize=(9, 6.0), layout="constrained")
    model = IKOGDClassifier(n_partitionings=20, random_state=3)
    begin = 0
    for ax, end in zip(axes.flat, (16, 64, 1024, 4096), strict=True):
        model.partial_fit(X[begin:end], y[begin:end])
        begin = end
        draw_cells(ax, model.kernel_.apply(GRID)[:, model.kernel_.n_scales_ - 1])
        ax.scatter(*X[: min(end, 600)].T, s=3, c=np.where(y[: min(end, 600)], ORANGE, BLUE), linewidths=0)
        plane(ax, f"{end:,} rows: {model.kernel_.n_cells_} cells")
    return figure


def lives():
    """Draw when the ladder trees of an adaptive learner are redrawn along 20,000 rows; a bar is the life of a tree."""
    n_trees, n = 21, 20_000
    due, _ = Ladder.begun(n_trees, 0).planned(0, n, RecentRows(MOST_ROWS, 0))
    figure, ax = plt.subplots(figsize=(9, 3.6), layout="constrained")
    for tree in range(n_trees):
        starts = [one.row for one in due if one.tree == tree]
        line = tree % 7 * 3.6 + tree // 7
        for begin, end in zip(starts, [*starts[1:], n], strict=True):
            ax.barh(line, end - begin, left=begin, height=0.8, color=BLUE, alpha=0.35, edgecolor=BLUE, linewidth=0.6)
    ax.set_yticks([3.6 * k + 1 for k in range(7)], [f"{512 << k:,} rows" for k in range(7)])
    ax.axvline(12_000, color=ORANGE, linewidth=1.5)
    ax.text(12_100, 25.2, "a change", color=ORANGE)
    ax.set(xlabel="rows seen", ylabel="intended life", xlim=(0, n), ylim=(-0.8, 26.5))
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def bounds():
    """Draw squared distances in float32 with bounds on their rounding error, and which of them need the exact sum."""
    rng = np.random.default_rng(8)
    row = (60 + rng.normal(size=20)).astype(np.float32)
    points = (row + rng.normal(scale=rng.uniform(0.12, 0.42, size=(24, 1)), size=(24, 20))).astype(np.float32)
    products = (row @ row) + np.einsum("ij,ij->i", points, points) - 2 * points @ row  # the fast form
    exact = np.sum((points.astype(float) - row) ** 2, axis=1)
    squares = np.sum(points.astype(float) ** 2, axis=1) + np.sum(row.astype(float) ** 2)
    error = (20 + 16) * 2.0**-24 * squares
    order = np.argsort(products, kind="stable")
    limit = (products + error).min()
    figure, ax = plt.subplots(figsize=(9, 3.4), layout="constrained")
    for k, point in enumerate(order):
        colour = ORANGE if products[point] - error[point] <= limit else "#9aa7b4"
        ax.errorbar(k, products[point], yerr=error[point], color=colour, capsize=3, linewidth=1.6)
        ax.plot(k, exact[point], "_", color="black", ms=9, mew=1.6)
    ax.axhline(limit, color=BLUE, linestyle="--", linewidth=1.2)
    ax.text(len(order) - 0.5, limit, "smallest upper bound", color=BLUE, va="top", ha="right")
    ax.set(xlabel="sampled points, by approximate distance", ylabel="squared distance", xticks=[])
    ax.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    X, y = make_moons(6000, noise=0.14, random_state=0)
    pictures = {
        "cells": cells_of_one_sample(X),
        "score": scores(X, y),
        "growth": growth(X, y),
        "lives": lives(),
        "bounds": bounds(),
    }
    for name, figure in pictures.items():
        figure.savefig(Path(__file__).with_name(f"{name}.png"), dpi=120)
