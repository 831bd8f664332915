"""
Are the probabilities right?
============================

Of the rows that are given 80 %, eight in ten should belong to the class. A reliability diagram shows whether they do.
isokern calibrates probabilities on scores that were taken before a row was learned, so no rows are held back.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.metrics import log_loss

from isokern import IKSVC, IKOGDClassifier

# %%
# Rows whose true probabilities are known: the class is drawn with them.

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(30_000, 2))
truth = 1 / (1 + np.exp(-3 * np.sin(2 * X[:, 0]) * X[:, 1]))
y = (rng.random(len(X)) < truth).astype(int)
train, test = slice(0, 10_000), slice(10_000, None)
print(f"log-loss of the true probabilities: {log_loss(y[test], truth[test]):.3f}")

# %%
# A point on the diagonal is a bin of rows whose probabilities are right.

models = {
    "IKOGDClassifier, hinge loss": IKOGDClassifier(loss="hinge", random_state=0),
    "IKOGDClassifier, logistic loss": IKOGDClassifier(loss="logistic", random_state=0),
    "IKSVC": IKSVC(random_state=0),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
left.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=6, label="perfect")
for (name, model), colour in zip(models.items(), ["#E69F00", "#0072B2", "#009E73"], strict=True):
    share = model.fit(X[train], y[train]).predict_proba(X[test])[:, 1]
    found, given = calibration_curve(y[test], share, n_bins=12, strategy="quantile")
    left.plot(given, found, "o-", color=colour, ms=4, label=f"{name}: log-loss {log_loss(y[test], share):.3f}")
left.set(xlabel="probability given", ylabel="share of the class among these rows", aspect="equal")
left.grid(alpha=0.3)
left.spines[["top", "right"]].set_visible(False)
left.legend(frameon=False, fontsize="small")
side = np.linspace(-2, 2, 200)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
share = models["IKOGDClassifier, logistic loss"].predict_proba(grid)[:, 1].reshape(200, 200)
image = right.pcolormesh(side, side, share, cmap="RdBu_r", vmin=0, vmax=1, rasterized=True)
right.contour(side, side, (3 * np.sin(2 * side) * side[:, None]), levels=[0], colors="black", linewidths=1)
right.set(title="probabilities, logistic loss; black: truly 50 %", xticks=[], yticks=[], aspect="equal")
figure.colorbar(image, ax=right, shrink=0.8)
plt.show()
