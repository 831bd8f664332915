"""
The race: nothing to tune
=========================

By default, ``IKOGDClassifier`` trains several candidates at once: cells of all sizes, coarse cells, a linear term, and
sums of them, with two learning rates. Each row is predicted by all candidates before they learn it, so their errors are
honest without a validation set. The candidate with the fewest errors wins. ``selection_`` has the errors of all
candidates.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from isokern import IKOGDClassifier

# %%
# Three tables, each of which suits another candidate.

rng = np.random.default_rng(0)
digits = load_digits(return_X_y=True)

X = rng.normal(size=(6000, 6))
y = X[:, 0] * X[:, 1] > 0
noisy = X, np.where(rng.random(6000) < 0.3, ~y, y)  # three labels in ten are wrong

X = rng.normal(size=(6000, 30))
linear = X, X @ rng.normal(size=30) > 0

tables = {"digits: fine structure": digits, "a chessboard with noisy labels": noisy, "a linear table": linear}

# %%
# One call each, with default settings.

figure, axes = plt.subplots(3, 1, figsize=(8, 7.2), layout="constrained")
for ax, (name, (X, y)) in zip(axes, tables.items(), strict=True):
    race = IKOGDClassifier(random_state=0).fit(X, y).selection_
    is_leader = [candidate == race["leader"] for candidate in race["candidates"]]
    bars = ax.barh(race["candidates"], race["errors"], color=["#0072B2" if lead else "#b8c4d0" for lead in is_leader])
    ax.bar_label(bars, fmt="{:.3f}", padding=4)
    ax.invert_yaxis()
    ax.spines[["top", "right"]].set_visible(False)
    ax.set(xlim=(0, 1.15 * max(race["errors"])))
    ax.set_title(name, loc="left")
axes[-1].set_xlabel("share of rows missed before they were learned, when last compared")
plt.show()

# %%
# The winner is dark. Candidates far behind are dropped early, so their errors are those of the first rows. ``fit`` then
# makes its second pass with the winner alone, and the fitted model is as small as if you had chosen it yourself.
