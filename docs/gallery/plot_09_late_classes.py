"""
Classes that come late
======================

A stream need not show all its classes at the start. Here, a new digit joins every few hundred images. The model has not
been told how many there will be. It keeps one more set of weights for "a class not seen yet", which all rows so far
have trained; a new class starts as a copy of it, as if it had been known from the start.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from isokern import IKOGDClassifier

X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
arrival = rng.random(len(X)) * (len(X) - 120 * y) + 120 * y  # digit k comes after 120 k images at the earliest
order = np.argsort(arrival, kind="stable")
X, y = X[order], y[order]

# %%
# Learn in blocks, and note the classes that the model knows.

model = IKOGDClassifier(random_state=0)
found = np.empty_like(y)
known = []
for begin in range(0, len(X), 20):
    block = slice(begin, begin + 20)
    found[block] = model.partial_fit_predict(X[block], y[block])
    known.append(len(model.classes_))

# %%
# Each dot is an image, at the height of its digit; wrong predictions are orange. The first image of a new class cannot
# be predicted. A few images later the class is known.

is_right = found == y
figure, (top, bottom) = plt.subplots(2, 1, figsize=(9, 6), height_ratios=[2, 1], sharex=True, layout="constrained")
jitter = y + rng.uniform(-0.3, 0.3, len(y))
numbers = np.arange(len(y))
top.scatter(numbers[is_right], jitter[is_right], s=6, color="#7aa6cc", linewidths=0, label="right")
top.scatter(numbers[~is_right], jitter[~is_right], s=14, color="#D55E00", linewidths=0, label="wrong")
top.set(ylabel="digit", yticks=range(10))
top.legend(frameon=False, loc="upper left")
recent = np.convolve(is_right, np.ones(100) / 100, mode="valid")
bottom.plot(numbers[99:], recent, color="#0072B2")
bottom.set(xlabel="images seen", ylabel="accuracy of the last 100", ylim=(0, 1.02))
for ax in (top, bottom):
    ax.grid(alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
print(
    f"{is_right.mean():.1%} of all images right; {known[0]} classes after the first block, {known[-1]} after the last"
)
