"""Draw the picture of the README: python docs/images/overview.py"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import SGDClassifier

from isokern import IKOGDClassifier
from isokern.cli.demo import Race, Rings, draw_race

N_ROWS, N_TEST, N_DOTS = 20_000, 5_000, 3_000
BLUE, ORANGE = "#2a6db0", "#d1611c"


def spirals(n, seed):
    """Return rows on two noisy spirals whose arms are dense at the centre and sparse outside."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    radius = rng.beta(1.1, 2.2, size=n)
    angle = 5.5 * np.pi * np.sqrt(radius) + np.pi * y
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + rng.normal(scale=0.012 + 0.02 * radius[:, None], size=X.shape), y


def draw_cells(ax, model, grid, X, y):
    """Draw the borders of the cells of one partitioning, at a middle scale."""
    cells = model.kernel_.apply(grid.reshape(-1, 2))[:, model.kernel_.n_scales_ // 2].reshape(grid.shape[:2])
    is_border = np.zeros(cells.shape, dtype=bool)
    is_border[1:] |= cells[1:] != cells[:-1]
    is_border[:, 1:] |= cells[:, 1:] != cells[:, :-1]
    ax.imshow(is_border, extent=(-1.05, 1.05) * 2, origin="lower", cmap="Greys", vmax=2, interpolation="nearest")
    draw_rows(ax, X, y)
    ax.set_title("one of 200 partitionings:\ncells are small where rows are dense")


def draw_boundary(ax, model, grid, X, y, accuracies):
    """Draw what a model predicts everywhere."""
    scores = model.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    ax.contourf(grid[..., 0], grid[..., 1], scores > 0, levels=[-0.5, 0.5, 1.5], colors=["#cfe0f3", "#fbdcc4"])
    draw_rows(ax, X, y)
    ax.set_title("a weight per cell gives a boundary:\ntest accuracy {:.3f} (linear SGD {:.3f})".format(*accuracies))


def draw_rows(ax, X, y):
    ax.scatter(*X[:N_DOTS].T, c=np.where(y[:N_DOTS], ORANGE, BLUE), s=1, linewidths=0)
    ax.set(xticks=[], yticks=[], aspect="equal", xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))


def run_race():
    """Return the race of ``isokern demo``."""
    race = Race(Rings(60_000))
    for _ in race.run():
        pass
    return race


def draw_all(name, layout, size, draw, **widths):
    """Draw panels in a layout, and save them."""
    figure, axes = plt.subplot_mosaic(layout, figsize=size, layout="constrained", **widths)
    for panel, ax in axes.items():
        draw[panel](ax)
    figure.savefig(Path(__file__).with_name(f"{name}.png"), dpi=100)


if __name__ == "__main__":
    (X, y), (X_test, y_test) = spirals(N_ROWS, 0), spirals(N_TEST, 1)
    grid = np.stack(np.meshgrid(np.linspace(-1.05, 1.05, 400), np.linspace(-1.05, 1.05, 400)), axis=-1)
    model, linear = IKOGDClassifier(random_state=0).fit(X, y), SGDClassifier(random_state=0).fit(X, y)
    accuracies, race = [found.score(X_test, y_test) for found in (model, linear)], run_race()
    panels = {
        "cells": lambda ax: draw_cells(ax, model, grid, X, y),
        "boundary": lambda ax: draw_boundary(ax, model, grid, X, y, accuracies),
        "race": lambda ax: draw_race(ax, race, "a stream that changes, as in isokern demo"),
    }
    plt.rcParams["axes.titlesize"] = "medium"
    draw_all("overview", [["cells", "boundary", "race"]], (13, 3.9), panels, width_ratios=(1, 1, 1.6))
    draw_all("overview-phone", [["boundary"], ["race"]], (5.2, 7.2), panels, height_ratios=(1.3, 1))
