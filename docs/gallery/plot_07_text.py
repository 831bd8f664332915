"""
Text with a million columns
===========================

Messages are hashed to 2**20 columns, so no vocabulary is kept and new words need no care. Rows are sparse, and their
cost follows the few words that they contain. A linear model is hard to beat on text. The race finds that out by itself:
the linear term is among its candidates.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

from isokern import IKOGDClassifier

# %%
# Generated messages on four topics. Each topic has 600 words of its own, some more frequent than others; most words of
# a message belong to no topic.

TOPICS = np.array(["sports", "science", "music", "travel"])
rng = np.random.default_rng(0)
frequency = 1 / np.arange(1, 601)
frequency /= frequency.sum()


def message(topic):
    own = rng.choice(600, size=rng.integers(1, 5), p=frequency)
    common = rng.zipf(1.3, size=30) % 20_000
    return " ".join([*(f"{topic}{word}" for word in own), *(f"word{word}" for word in common)])


y = rng.choice(TOPICS, size=6000)
X = HashingVectorizer(n_features=2**20, alternate_sign=False).transform([message(topic) for topic in y])
print(f"{X.shape[0]:,} rows of {X.shape[1]:,} columns, {X.nnz / X.shape[0]:.0f} of them not zero")

# %%
# The stream, in blocks of 250 messages: each is predicted before it is learned.

model = IKOGDClassifier(random_state=0)
rows = np.arange(250, 6001, 250)
accuracies, errors = [], []
for end in rows:
    block = slice(end - 250, end)
    accuracies.append(np.mean(model.partial_fit_predict(X[block], y[block]) == y[block]))
    errors.append(dict(zip(model.selection_["candidates"], model.selection_["errors"], strict=True)))
print("leader:", model.selection_["leader"])

# %%
# The recent errors of the candidates. A line ends where its candidate was dropped.

figure, ax = plt.subplots(figsize=(9, 4.4), layout="constrained")
colours = ["#0072B2", "#56B4E9", "#999999", "#E69F00", "#009E73"]
for candidate, colour in zip(errors[-1], colours, strict=True):
    values = np.array([one[candidate] for one in errors])
    is_running = np.append(True, np.diff(values) != 0)
    ax.plot(rows[is_running], values[is_running], color=colour, label=candidate)
ax.plot(rows, 1 - np.array(accuracies), color="black", linewidth=1, linestyle=":", label="what was predicted, by block")
ax.set(xlabel="messages seen", ylabel="error", ylim=0)
ax.xaxis.set_major_formatter("{x:,.0f}")
ax.grid(alpha=0.3)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
