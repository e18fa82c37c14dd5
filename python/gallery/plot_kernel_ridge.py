# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
Kernel ridge regression
=======================

A function of two variables is learned from 400 noisy values: the weights solve (K + 0.05 I) w = y, where K is the matrix of Gaussian
kernels between the points. :func:`rigel_semirings.kernel_matrix` adds the 0.05 to the diagonal as it computes K.
"""

import matplotlib.pyplot as plt
import numpy as np

import rigel_semirings as rs


def truth(points):
    return np.sin(2 * points[:, 0]) * np.cos(points[:, 1]) + 0.3 * points[:, 0]


random = np.random.default_rng(3)
points = random.uniform(-3, 3, (400, 2))
values = truth(points) + random.normal(0, 0.1, 400)

k = rs.kernel_matrix(points, kernel="gaussian", bandwidth=0.8, regularisation=0.05)
weights = rs.cholesky_solve(k, values[:, None])

# %%
# The prediction at new points is a matrix of kernels times the weights.
axis = np.linspace(-3, 3, 80)
grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
prediction = rs.kernel_matrix(grid, points, kernel="gaussian", bandwidth=0.8) @ weights[:, 0]
error = np.sqrt(np.mean((prediction - truth(grid)) ** 2))
assert error < 0.1

figure, axes = plt.subplots(1, 2, figsize=(8, 4), sharey=True)
for ax, z, title in ((axes[0], truth(grid), "the function"), (axes[1], prediction, f"learned, rms error {error:.3f}")):
    ax.contourf(axis, axis, z.reshape(80, 80), levels=np.linspace(-2, 2, 17), cmap="RdBu_r", extend="both")
    ax.set(title=title, aspect="equal")
axes[1].plot(*points.T, "k.", markersize=2)
plt.show()
