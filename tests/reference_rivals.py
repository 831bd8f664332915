"""Reimplement the rivals in slow and obvious NumPy, from the papers; the learners must equal it."""

from __future__ import annotations

from functools import partial

import numpy as np

from reference import derivative, distance, limited


def kernel(name, X, Z, gamma=1.0, coef0=1.0, degree=3, *, normalised=False):
    """Return k(x, z) for all pairs of dense rows."""
    x, z = np.asarray(X, float)[:, None, :], np.asarray(Z, float)[None, :, :]
    if name == "laplacian":
        return np.exp(-gamma * np.abs(x - z).sum(axis=2))
    if name == "gaussian":
        return np.exp(-gamma * ((x - z) ** 2).sum(axis=2))
    if name == "polynomial":
        values = (gamma * (x * z).sum(axis=2) + coef0) ** degree
    elif name == "chi2":
        values = np.where(x + z == 0, 0.0, 2 * x * z / np.where(x + z == 0, 1.0, x + z)).sum(axis=2)
    else:
        values = np.minimum(x, z).sum(axis=2)
    if not normalised:
        return values
    selves = [
        np.array([kernel(name, r[None], r[None], gamma, coef0, degree)[0, 0] for r in np.asarray(rows, float)])
        for rows in (X, Z)
    ]
    return values / np.sqrt(np.outer(*selves))


def ogd(K, targets, *, loss="hinge", rate=0.5, row_weights=None):
    """Return (alpha, number of support vectors) of dual gradient descent; K is of all rows, targets are +1 or -1."""
    factors = np.ones(len(K)) if row_weights is None else row_weights
    alpha, n_support = np.zeros(targets.shape), 0
    for r in range(len(K)):
        f = K[r] @ alpha
        g = derivative(loss, f, targets[r])
        for k in np.flatnonzero(g):
            g[k] *= limited(loss, factors[r], rate * abs(g[k]) * K[r, r], distance(loss, f[k], targets[r, k]))
        alpha[r] = -rate * g
        n_support += g.any()
    return alpha, int(n_support)


# Budgets: each returns alpha of all rows, 0 for those that are not support vectors, for one score with y = +1 or -1.


def random_budget(K, y, size, rate, shrinkage, rng):
    alpha, kept = np.zeros(len(y)), []
    for r in range(len(y)):
        if y[r] * (K[r] @ alpha) > 0:
            continue
        if len(kept) == size:
            alpha[kept.pop(rng.integers(size))] = 0
        alpha[r] = y[r]
        kept.append(r)
    return alpha


def forgetron(K, y, size, rate, shrinkage, rng):
    alpha, kept, n_mistakes, damage = np.zeros(len(y)), [], 0, 0.0
    for r in range(len(y)):
        if y[r] * (K[r] @ alpha) > 0:
            continue
        n_mistakes += 1
        alpha[r] = y[r]
        kept.append(r)
        if len(kept) <= size:
            continue
        oldest = kept.pop(0)
        delta, mu = abs(alpha[oldest]), y[oldest] * (K[oldest] @ alpha)

        def total(phi, delta=delta, mu=mu):
            return (delta * phi) ** 2 + 2 * delta * phi * (1 - phi * mu)

        phi = _largest(lambda phi, damage=damage, m=n_mistakes, t=total: t(phi) + damage <= 15 / 32 * m)
        damage += total(phi)
        alpha *= phi
        alpha[oldest] = 0
    return alpha


def _largest(holds):
    """Return, by bisection, the largest number up to 1 that meets a condition, if all smaller ones do."""
    lower, upper = 0.0, 1.0
    if holds(upper):
        return upper
    for _ in range(100):
        middle = (lower + upper) / 2
        lower, upper = (middle, upper) if holds(middle) else (lower, middle)
    return lower


def projectron(K, y, size, rate, shrinkage, rng, *, learns_margins=False):
    alpha, kept = np.zeros(len(y)), []
    bound = 0.25 * np.sqrt((size + 1) / np.log(size + 1))
    for r in range(len(y)):
        f, k = K[r] @ alpha, K[r, kept]
        projection = np.linalg.solve(K[np.ix_(kept, kept)], k) if kept else np.zeros(0)
        length = k @ projection
        distance = max(0.0, 1 - length)
        if y[r] * f <= 0:
            if len(kept) == size or distance < 1e-10:
                alpha[kept] += y[r] * projection
            else:
                alpha[r] = y[r]
                kept.append(r)
        elif learns_margins and 1 - y[r] * f > bound * np.sqrt(distance):
            loss = 1 - y[r] * f
            tau = min(loss / length, 2 * (loss - bound * np.sqrt(distance)) / length, 1)
            alpha[kept] += tau * y[r] * projection
    return alpha


def bpas(K, y, size, rate, shrinkage, rng):
    alpha, kept = np.zeros(len(y)), []
    for r in range(len(y)):
        loss = 1 - y[r] * (K[r] @ alpha)
        if loss <= 0:
            continue
        value = min(rate, loss) * y[r]
        if len(kept) == size:
            betas = [alpha[q] * K[r, q] + value for q in kept]
            costs = [alpha[q] ** 2 + b**2 - 2 * alpha[q] * b * K[r, q] for q, b in zip(kept, betas, strict=True)]
            place = int(np.argmin(costs))
            value = betas[place]
            alpha[kept.pop(place)] = 0
        alpha[r] = value
        kept.append(r)
    return alpha


def bogd(K, y, size, rate, shrinkage, rng):
    alpha, kept = np.zeros(len(y)), []
    for r in range(len(y)):
        f = K[r] @ alpha
        alpha *= 1 - rate * shrinkage
        if y[r] * f >= 1:
            continue
        if len(kept) == size:
            alpha[kept.pop(rng.integers(size))] = 0
            alpha = np.clip(alpha * size / (size - 1), -10 * rate, 10 * rate)
        alpha[r] = rate * y[r]
        kept.append(r)
    return alpha


BUDGETS = {
    "random": random_budget,
    "forgetron": forgetron,
    "projectron": projectron,
    "projectron++": partial(projectron, learns_margins=True),
    "bpas": bpas,
    "bogd": bogd,
}


# Linear models on features


def linear(features, targets, w, *, loss="hinge", rate=0.5, average=True):
    """Return the weights to predict with: the latest, or for each score their mean over its updates."""
    w, sums, n_updates = w.copy(), np.zeros_like(w), np.zeros(w.shape[1])
    for z, target in zip(features, targets, strict=True):
        g = derivative(loss, z @ w, target)
        w -= rate * np.outer(z, g)
        sums += np.where(g != 0, w, 0)
        n_updates += g != 0
    return np.where(n_updates > 0, sums / np.maximum(n_updates, 1), w) if average else w


def nogd(K, targets, n_landmarks, rank, *, average, loss="hinge", rate=0.5):
    """Return the scores of all rows after the last one is learned; K is of all rows."""
    alpha = np.zeros(targets.shape)
    n_first = 0
    while np.count_nonzero(alpha.any(axis=1)) < n_landmarks:
        alpha[n_first] = -rate * derivative(loss, K[n_first] @ alpha, targets[n_first])
        n_first += 1
    landmarks = np.flatnonzero(alpha.any(axis=1))
    eigenvalues, vectors = np.linalg.eigh(K[np.ix_(landmarks, landmarks)])
    largest = np.argsort(-eigenvalues)[:rank]
    largest = largest[eigenvalues[largest] > 1e-10 * eigenvalues.max()]
    roots, vectors = np.sqrt(eigenvalues[largest]), vectors[:, largest]
    features = K[:, landmarks] @ vectors / roots
    first = (vectors * roots).T @ alpha[landmarks]
    return features @ linear(features[n_first:], targets[n_first:], first, loss=loss, rate=rate, average=average)


def fourier_features(X, frequencies):
    angles = np.asarray(X, float) @ frequencies
    return np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(frequencies.shape[1])


# AdaRaker


class AdaRaker:
    """The experts of one score; ``learn`` takes the next row, ``score`` uses the model so far."""

    def __init__(self, directions, bandwidths, *, rate=0.5, shrinkage=5e-4, cold=False):
        self.directions, self.bandwidths = directions, np.asarray(bandwidths)
        self.rate, self.shrinkage, self.cold = rate, shrinkage, cold
        self.theta, self.w, self.h = [], [], []
        self.round = 0

    def features(self, x):
        angles = self.bandwidths[:, None] * (x @ self.directions)
        return np.hstack([np.sin(angles), np.cos(angles)]) / np.sqrt(self.directions.shape[1])

    def score(self, x):
        return self._score(self.features(x))[0]

    def _score(self, z):
        by_kernel = [(theta * z).sum(axis=1) for theta in self.theta]
        by_expert = [w @ f for w, f in zip(self.w, by_kernel, strict=True)]
        return np.average(by_expert, weights=self.h), by_expert, by_kernel

    def learn(self, x, y):
        self.round += 1
        z = self.features(x)
        even = np.full(len(z), 1 / len(z))
        if self.round & (self.round - 1) == 0:
            self.theta.append(np.zeros_like(z))
            self.w.append(even)
            self.h.append(0.0)
        etas = [min(0.5, self.rate / np.sqrt(2**e)) for e in range(len(self.h))]
        for e, eta in enumerate(etas):
            if self.round % 2**e == 0:
                self.h[e] = eta
                if self.cold:
                    self.theta[e], self.w[e] = np.zeros_like(z), even
        score, by_expert, by_kernel = self._score(z)
        for e, eta in enumerate(etas):
            self.h[e] *= np.exp(-eta * (np.logaddexp(0, -y * by_expert[e]) - np.logaddexp(0, -y * score)))
            w = self.w[e] * np.exp(-eta * np.logaddexp(0, -y * by_kernel[e]))
            self.w[e] = w / w.sum()
            gradient = derivative("logistic", by_kernel[e], y)[:, None] * z + 2 * self.shrinkage * self.theta[e]
            self.theta[e] = self.theta[e] - eta * gradient
