"""
A Dask cluster
==============

``DaskIKOGDClassifier`` learns a Dask array or data frame that is spread over workers. Partitions learn side by side and
are averaged, which costs accuracy if they are many. Then all of them are refined together by L-BFGS, which wins it
back. Here, the cluster is two threads of this process; ``Client("tcp://scheduler:8786")`` would be a real one.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client

from isokern import IKOGDClassifier
from isokern.distributed import DaskIKOGDClassifier

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(8000, 2))
y = (np.floor(5 * X[:, 0]) + np.floor(5 * X[:, 1])) % 2
X_test = rng.uniform(-1, 1, size=(4000, 2))
y_test = (np.floor(5 * X_test[:, 0]) + np.floor(5 * X_test[:, 1])) % 2

# %%
# The same rows in 2, 8 and 32 partitions, by averaging alone (``n_steps=0``) and with the default steps.

client = Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None)
counts = [2, 8, 32]
accuracies = {"averaging alone": [], "averaging, then L-BFGS": []}
for count in counts:
    rows, labels = (da.from_array(values, chunks=(len(X) // count, *values.shape[1:])) for values in (X, y))
    for name, given in (("averaging alone", {"n_steps": 0}), ("averaging, then L-BFGS", {})):
        model = DaskIKOGDClassifier(n_partitionings=50, random_state=0, **given).fit(rows, labels)
        accuracies[name].append(model.to_local().score(X_test, y_test))
local = model.to_local()  # an IKOGDClassifier, to save, to predict with, to go on learning
client.close()
one_machine = IKOGDClassifier(n_partitionings=50, random_state=0).fit(X, y).score(X_test, y_test)

# %%
# On the left, test accuracy by the number of partitions; on the right, the regions that the model of 32 partitions has
# learned.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
left.axhline(one_machine, color="#888888", linestyle="--", label="IKOGDClassifier on all rows")
for (name, values), colour in zip(accuracies.items(), ["#E69F00", "#0072B2"], strict=True):
    left.plot(counts, values, "o-", color=colour, label=name)
left.set(xscale="log", xlabel="partitions", ylabel="accuracy on test rows")
left.set_xticks(counts, counts)
left.set_xticks([], minor=True)
left.grid(alpha=0.3)
left.spines[["top", "right"]].set_visible(False)
left.legend(frameon=False)
side = np.linspace(-1, 1, 240)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
regions = local.predict(grid).reshape(240, 240)
right.contourf(side, side, regions, levels=[-0.5, 0.5, 1.5], colors=["#bcd5ee", "#fbd3b5"])
right.set(title="regions of the local model", xticks=[], yticks=[], aspect="equal")
plt.show()
