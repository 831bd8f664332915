"""
A stream that changes, and what the experts do
==============================================

A stream in three acts: a chessboard, the same chessboard with its colours exchanged, and a linear boundary.
``AdaptiveIKClassifier`` redraws some of its trees from recent rows and lets four experts compete. The plot shows which
of them predicts, and where a change was reported.
"""

import matplotlib.pyplot as plt
import numpy as np

from isokern import AdaptiveIKClassifier, IKOGDClassifier

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(18_000, 2))
chessboard = (np.floor(2 * X[:, 0]) + np.floor(2 * X[:, 1])) % 2 == 0
y = np.concatenate([chessboard[:6000], ~chessboard[6000:12_000], X[12_000:].sum(axis=1) > 0])

# %%
# ``partial_fit_predict`` learns a block of rows and returns what was predicted for each of them before it was learned.
# After each block we note the recent error of every expert.

adaptive, growing = AdaptiveIKClassifier(random_state=0), IKOGDClassifier(random_state=0)
rows = np.arange(500, 18_001, 500)
accuracies = {"adaptive": [], "growing": []}
errors, leaders = [], []
for end in rows:
    block = slice(end - 500, end)
    for name, model in (("adaptive", adaptive), ("growing", growing)):
        accuracies[name].append(np.mean(model.partial_fit_predict(X[block], y[block]) == y[block]))
    errors.append(adaptive.selection_["errors"])
    leaders.append(adaptive.selection_["leader"])
print("changes reported after rows", *adaptive.drifts_)

# %%
# Above, the accuracy of each block of 500 rows, beside a learner whose map grows but forgets nothing. Below, the recent
# errors of the experts; a dot marks the one that leads.

colours = ["#0072B2", "#E69F00", "#009E73", "#CC79A7"]
figure, (top, bottom) = plt.subplots(2, 1, figsize=(9, 6.6), sharex=True, layout="constrained")
top.plot(rows, accuracies["adaptive"], color="#0072B2", label="AdaptiveIKClassifier")
top.plot(rows, accuracies["growing"], color="#888888", linestyle="--", label="IKOGDClassifier")
for k, row in enumerate(adaptive.drifts_):
    top.axvline(row, color="#D55E00", linewidth=1, label="change reported" if k == 0 else None)
top.set(ylabel="accuracy of the block")
experts = adaptive.selection_["candidates"]
for expert, colour, values in zip(experts, colours, np.transpose(errors), strict=True):
    is_leader = np.array(leaders) == expert
    bottom.plot(rows, values, color=colour, label=expert)
    bottom.plot(rows[is_leader], values[is_leader], "o", color=colour, ms=4)
bottom.set(xlabel="rows seen", ylabel="recent error")
bottom.xaxis.set_major_formatter("{x:,.0f}")
for ax in (top, bottom):
    ax.grid(alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()
