"""
Words and missing values without an encoder
===========================================

Isolation trees take text, categories and missing values as they are. Here, more and more values of a table are removed.
One model learns from the frame directly, the other behind the usual imputer and one-hot encoder. Both are about equally
accurate, but the first has nothing to configure, and nothing to keep in step when new categories come.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from isokern import IKOGDClassifier

rng = np.random.default_rng(0)
n = 6000
table = pd.DataFrame(
    {
        "age": rng.integers(18, 80, n).astype(float),
        "income": rng.lognormal(10, 0.6, n),
        "job": rng.choice(["cook", "baker", "smith", "nurse", "pilot", "clerk"], n),
        "city": rng.choice([f"city {k}" for k in range(40)], n),
    }
)
is_near = table["city"].isin([f"city {k}" for k in range(0, 40, 3)])
is_earning = is_near & (table["income"] > 20_000)
y = np.where((table["age"] > 45) ^ table["job"].isin(["nurse", "pilot"]) ^ is_earning, "yes", "no")

# %%
# People under 30 leave their income out more often than others, so a missing income is informative, too.


def with_holes(table, share, seed):
    rng = np.random.default_rng(seed)
    is_missing = rng.random(table.shape) < share
    is_missing[:, 1] |= (table["age"] < 30) & (rng.random(len(table)) < share)
    return table.mask(is_missing)


def encoded():
    words = ["job", "city"]
    columns = make_column_transformer(
        (SimpleImputer(), ["age", "income"]),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")), words),
        sparse_threshold=0,
    )
    return make_pipeline(columns, IKOGDClassifier(random_state=0))


shares = [0, 0.05, 0.1, 0.2, 0.3, 0.4]
results = {"as it is": [], "imputed and one-hot encoded": []}
for share in shares:
    holes = with_holes(table, share, seed=1)
    for name, model in (("as it is", IKOGDClassifier(random_state=0)), ("imputed and one-hot encoded", encoded())):
        results[name].append(model.fit(holes[:4000], y[:4000]).score(holes[4000:], y[4000:]))

# %%
# Accuracy on 2,000 test rows with as many values missing.

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
for (name, accuracies), colour in zip(results.items(), ["#0072B2", "#E69F00"], strict=True):
    ax.plot(shares, accuracies, "o-", color=colour, label=name)
ax.set(xlabel="share of values that are missing", ylabel="accuracy on test rows")
ax.xaxis.set_major_formatter("{x:.0%}")
ax.grid(alpha=0.3)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

# %%
# A row with a word that was never seen, columns in another order, and missing values: there is no error and no warning.

model = IKOGDClassifier(random_state=0).fit(with_holes(table, 0.1, seed=1), y)
print(model.predict(pd.DataFrame({"job": ["astronaut"], "city": [None], "age": [None], "income": [31_000.0]})))
