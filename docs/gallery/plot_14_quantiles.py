"""
Regression with an interval
===========================

``IKOGDRegressor(loss="quantile")`` learns several quantiles at once, in one model whose quantiles never cross. Together
they are an interval: wide where the target is noisy, narrow where it is not.
"""

import matplotlib.pyplot as plt
import numpy as np

from isokern import IKOGDRegressor

rng = np.random.default_rng(0)
x = rng.uniform(0, 10, size=12_000)
noise = 0.15 + 0.6 * (np.sin(x) > 0.3)  # the noise depends on the place
y = np.sin(x) + 0.15 * x + rng.normal(scale=noise)
train, test = slice(0, 9000), slice(9000, None)

# %%
# One model for the 5 %, 50 % and 95 % quantiles, and one for the mean.

interval = IKOGDRegressor(loss="quantile", quantiles=[0.05, 0.5, 0.95], random_state=0)
interval.fit(x[train, None], y[train])
mean = IKOGDRegressor(random_state=0).fit(x[train, None], y[train])
low, _, high = interval.predict(x[test, None]).T
print(f"{np.mean((low <= y[test]) & (y[test] <= high)):.1%} of the test rows are in the interval; 90 % are meant")
print(f"R² of the mean on test rows: {mean.score(x[test, None], y[test]):.3f}")

# %%

line = np.linspace(0, 10, 600)
low, middle, high = interval.predict(line[:, None]).T
figure, ax = plt.subplots(figsize=(9, 4.6), layout="constrained")
ax.scatter(x[train][:2500], y[train][:2500], s=3, color="#999999", linewidths=0, label="rows")
ax.fill_between(line, low, high, color="#0072B2", alpha=0.25, label="5 % to 95 %")
ax.plot(line, middle, color="#0072B2", label="median")
ax.plot(line, np.sin(line) + 0.15 * line, color="black", linewidth=1, linestyle="--", label="true mean")
ax.set(xlabel="x", ylabel="y")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
