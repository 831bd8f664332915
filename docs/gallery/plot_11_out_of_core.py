"""
A file that does not fit into memory
====================================

``iter_libsvm``, ``iter_csv`` and ``iter_parquet`` read files in blocks of rows, also compressed ones. Here, two
processes learn the same file under the same limit of memory, set with ``resource``. One reads the whole file and fails;
the other reads block by block.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

from isokern.data import write_libsvm

# %%
# A file of 160,000 sparse rows with 90 values each. Its rows take more memory than the limit below allows.

folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "clicks.svm")
rng = np.random.default_rng(0)
n, per_row, n_columns = 160_000, 90, 5090
y = rng.integers(2, size=n)
kind = rng.integers(40, size=n)  # of 40 kinds of rows, each with columns of its own
own = 125 * kind[:, None] + rng.integers(0, 60, size=(n, 12)) + 60 * (y ^ kind % 2)[:, None]
columns = np.sort(np.concatenate([own, rng.integers(0, 5000, size=(n, 78))], axis=1), axis=1)
columns += np.arange(per_row)  # no column twice in a row
places = np.arange(0, n * per_row + 1, per_row)
X = sparse.csr_array((np.ones(n * per_row), columns.ravel(), places), shape=(n, n_columns))
write_libsvm(path, X, y)
print(f"{path.stat().st_size / 1e6:.0f} MB of text")

# %%
# The processes run this program. The limit counts from after the imports: 128 MB for rows and model together (on
# Linux).

PROGRAM = """
import json, resource, sys
import numpy as np
from sklearn.base import clone
from isokern import IKOGDClassifier
from isokern.data import iter_libsvm, read_libsvm

def used():  # MB of private memory
    fields = dict(line.split(":") for line in open("/proc/self/status"))
    return int(fields["VmData"].split()[0]) / 1024

how, path = sys.argv[1:]
model = IKOGDClassifier(n_partitionings=100, n_cells=128, n_jobs=1, random_state=0)
clone(model).fit([[0], [1]] * 400, [0, 1] * 400)  # imports everything
before = used()
resource.setrlimit(resource.RLIMIT_DATA, (int((before + 128) * 2**20),) * 2)
try:
    blocks = [read_libsvm(path)] if how == "whole" else iter_libsvm(path, 2000, n_features=5090)
    n = 0
    for X, y in blocks:
        right = model.partial_fit_predict(X, y) == y
        n += len(y)
        print(json.dumps([n, used() - before, float(np.mean(right))]))
except MemoryError:
    print(json.dumps("MemoryError"))
"""


def run(how):
    command = [sys.executable, "-c", PROGRAM, how, str(path)]
    return [json.loads(line) for line in subprocess.check_output(command, text=True).splitlines()]


print("whole file:", *run("whole"))
blocks = np.array(run("blocks"))
print(f"in blocks: {blocks[-1, 0]:,.0f} rows learned with {blocks[:, 1].max():.0f} MB")
folder.cleanup()

# %%
# Memory does not grow with the rows read, and the model improves all the way.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left.plot(blocks[:, 0], blocks[:, 1], color="#0072B2", label="in blocks of 2,000 rows")
left.axhline(128, color="#D55E00", linestyle="--", label="limit")
left.axhline((X.data.nbytes + 4 * n * per_row) / 2**20, color="#888888", linestyle=":", label="all rows in memory")
left.set(xlabel="rows read", ylabel="memory for rows and model (MB)", ylim=0)
right.plot(blocks[:, 0], blocks[:, 2], color="#0072B2")
right.set(xlabel="rows read", ylabel="accuracy of the block before it is learned")
for ax in (left, right):
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.locator_params(axis="x", nbins=5)
    ax.grid(alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
left.legend(frameon=False)
plt.show()
