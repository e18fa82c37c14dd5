# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
A ReLU network is a difference of tropical polynomials
======================================================

A tropical polynomial is a maximum of affine functions: a product over the semiring of maximum and plus. A layer of ReLUs
f(x) = Σ cᵢ·max(0, wᵢ·x + bᵢ) is P(x) - Q(x), where P has a monomial for each subset of the units with cᵢ > 0, and Q of those with
cᵢ < 0. :func:`rigel_semirings.contract` evaluates them, and :func:`rigel_semirings.reduce` says which monomial wins: the
regions in which the network is affine.
"""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np

import rigel_semirings as rs

random = np.random.default_rng(8)
w, b = random.normal(size=(8, 2)), random.normal(size=8) * 0.7
c = np.array([1.0, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0])

axis = np.linspace(-2, 2, 160)
x = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)


def monomials(units):
    chosen = np.array(list(product((0.0, 1.0), repeat=len(units))))
    return chosen @ (np.abs(c[units])[:, None] * w[units]), chosen @ (np.abs(c[units]) * b[units])


def polynomial(units):
    """Values at the points, and which monomial is the largest."""
    slopes, constants = monomials(units)
    terms = x @ slopes.T
    values = rs.contract(terms, constants[:, None], "max_plus")[:, 0]
    # Each point's own scores: the terms and constants as one product over plus-times.
    scores = np.column_stack([x, np.ones(len(x))]), np.vstack([slopes.T, constants])
    return values, rs.reduce(*scores, "plus_times", "maximum").indices


p, largest_p = polynomial(np.flatnonzero(c > 0))
q, largest_q = polynomial(np.flatnonzero(c < 0))
network = np.maximum(0, x @ w.T + b) @ c
assert np.allclose(p - q, network)

regions = (largest_p * 16 + largest_q).reshape(160, 160)
edges = (regions != np.roll(regions, 1, 0)) | (regions != np.roll(regions, 1, 1))
edges[0] = edges[:, 0] = False
figure, axes = plt.subplots(figsize=(6, 5))
picture = axes.contourf(axis, axis, (p - q).reshape(160, 160), levels=20, cmap="RdBu_r")
axes.contour(axis, axis, edges, levels=[0.5], colors="black", linewidths=0.5)
axes.set(title=f"P - Q, and its {len(np.unique(regions))} affine regions", aspect="equal")
figure.colorbar(picture)
plt.show()
