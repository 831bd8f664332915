"""
Fraud: a rare class and a threshold that costs the least
========================================================

One payment in a hundred is fraud. Accuracy says little then: never to say "fraud" is right 99 % of the time. This
example draws precision against recall, and chooses the threshold from what mistakes cost. The guide on rare classes
has the details.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import average_precision_score, precision_recall_curve

from isokern import IKOGDClassifier

rng = np.random.default_rng(0)
n = 30_000
is_fraud = rng.random(n) < 0.01
amount = rng.lognormal(3 + is_fraud)
hour = rng.normal(14 - 9 * is_fraud, 4) % 24
distance = rng.exponential(5 + 20 * is_fraud)
X = np.column_stack([amount, hour, distance])
train, test = slice(0, 15_000), slice(15_000, n)

# %%
# The logistic loss learns from every row and gives calibrated probabilities. With ``class_weight="balanced"``, a fraud
# counts about a hundred times as much as another payment.

models = {
    "logistic loss": IKOGDClassifier(loss="logistic", random_state=0),
    "hinge loss": IKOGDClassifier(loss="hinge", random_state=0),
    "logistic loss, balanced": IKOGDClassifier(loss="logistic", class_weight="balanced", random_state=0),
}
for model in models.values():
    model.fit(X[train], is_fraud[train])

# %%
# On the right: a missed fraud costs 100, and looking into an alarm costs 5. If probabilities are right, the best
# threshold is 5 / 100, without any search.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
for (name, model), colour in zip(models.items(), ["#0072B2", "#E69F00", "#CC79A7"], strict=True):
    share = model.predict_proba(X[test])[:, 1]
    precision, recall, _ = precision_recall_curve(is_fraud[test], share)
    average = average_precision_score(is_fraud[test], share)
    left.plot(recall, precision, color=colour, label=f"{name}: average precision {average:.2f}")
left.set(xlabel="recall: share of frauds found", ylabel="precision: share of alarms that are right")

share = models["logistic loss"].predict_proba(X[test])[:, 1]
thresholds = np.geomspace(0.002, 0.9, 80)
costs = [100 * np.sum(is_fraud[test] & (share < one)) + 5 * np.sum(share >= one) for one in thresholds]
right.plot(thresholds, costs, color="#0072B2")
right.axvline(0.05, color="#D55E00", linestyle="--", label="5 / 100, from the costs")
right.axvline(0.5, color="#888888", linestyle=":", label="0.5, as predict decides")
right.set(xscale="log", xlabel="threshold on the probability of fraud", ylabel="cost on the test rows", ylim=0)
for ax in (left, right):
    ax.grid(alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1))
plt.show()
