"""
Which pixels speak for a digit
==============================

``isokern.inspection.explain`` computes SHAP values exactly: what each column adds to a score. Here the columns are the
pixels of an image, so the values can be drawn as an image, too.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from isokern import IKOGDClassifier
from isokern.inspection import explain

X, y = load_digits(return_X_y=True)
model = IKOGDClassifier(n_partitionings=100, linear=False, random_state=0).fit(X[:1500], y[:1500])

# %%
# Five images that the model has not seen, and the values for the class that it predicts. They sum to the score of that
# class, up from the base value.

rows = X[1500:1505]
explanation = explain(model, rows)
predicted = model.predict(rows)
own = [explanation.of(label) for label in predicted]
for k, label in enumerate(predicted):
    print(f"digit {label}: score {own[k].scores[k]:.3f}, of which the pixels add {own[k].values[k].sum():.3f}")

# %%
# Red pixels speak for the predicted digit, blue ones against it. Empty pixels count as well: where another digit would
# have ink, their being empty speaks for this one.

figure, axes = plt.subplots(2, 5, figsize=(9, 4), layout="constrained")
for k, (image, values) in enumerate(axes.T):
    image.imshow(rows[k].reshape(8, 8), cmap="Greys")
    image.set(title=f"predicted {predicted[k]}", xticks=[], yticks=[])
    added = own[k].values[k].reshape(8, 8)
    limit = np.abs(added).max()
    values.imshow(added, cmap="RdBu_r", vmin=-limit, vmax=limit)
    values.set(xticks=[], yticks=[])
plt.show()
