# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
A semiring of your own
======================

A Python function becomes a semiring: Rigel traces it, compiles it in process, and runs it in the loops of its own semirings. Here the
distance is the sum of abs(a - b)^p with a p that may change without compiling again; the picture shows which of seven points is nearest.
"""

import matplotlib.pyplot as plt
import numpy as np

import rigel_semirings as rs


@rs.semiring
def minkowski(a, b, p=2.0):
    return abs(a - b) ** p


random = np.random.default_rng(12)
sites = random.uniform(-1, 1, (7, 2))
axis = np.linspace(-1, 1, 200)
points = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)

figure, axes = plt.subplots(1, 4, figsize=(11, 3))
for ax, p in zip(axes, (0.5, 1.0, 2.0, 8.0)):
    minkowski.p = p
    powers = rs.contract(points, sites.T, minkowski)
    if p != 0.5:
        np.testing.assert_allclose(powers ** (1 / p), rs.cdist(points, sites, "minkowski", p=p), rtol=1e-9)
    ax.pcolormesh(axis, axis, powers.argmin(1).reshape(200, 200), cmap="Pastel1", vmin=0, vmax=8)
    ax.contour(axis, axis, powers.min(1).reshape(200, 200) ** (1 / p), levels=8, colors="black", linewidths=0.4)
    ax.plot(*sites.T, "k.")
    ax.set(title=f"p = {p:g}", aspect="equal", xticks=[], yticks=[])
plt.show()
