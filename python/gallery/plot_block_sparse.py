# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
Kernel sums of clusters that are near
=====================================

A Gaussian of narrow bandwidth is 0 between clusters that are far apart. Points are sorted by their cluster, and
:class:`rigel_semirings.Ranges` says which clusters meet: the sum of kernels at 12,000 points computes a part of the pairs, and
nothing is stored. KeOps calls it block sparsity.
"""

import matplotlib.pyplot as plt
import numpy as np

import rigel_semirings as rs

random = np.random.default_rng(7)
turn = random.uniform(0, 4 * np.pi, 12_000)
points = np.stack([turn * np.cos(turn), turn * np.sin(turn)], -1) + random.normal(0, 0.3, (12_000, 2))
values, bandwidth = np.ones(len(points)), 0.4

clusters = rs.kmeans(points, 40, seed=1)
outwards = np.linalg.norm(clusters.centres, axis=1).argsort()
centres, labels = clusters.centres[outwards], outwards.argsort()[clusters.labels]
order = labels.argsort(kind="stable")
points, labels = points[order], labels[order]

# %%
# Two clusters meet if their nearest points may be within six bandwidths, beyond which a Gaussian is below 2e-8.
radii = np.zeros(40)
np.maximum.at(radii, labels, np.linalg.norm(points - centres[labels], axis=1))
mask = rs.cdist(centres) < radii[:, None] + radii + 6 * bandwidth
ranges = rs.Ranges.from_labels(labels, mask=mask)
density = rs.kernel_matvec(points, v=values, bandwidth=bandwidth, ranges=ranges)

every = rs.kernel_matvec(points, v=values, bandwidth=bandwidth)
assert np.abs(density - every).max() < 12_000 * 2e-8
share = ranges.pairs / len(points)**2
assert share < 0.4

figure, axes = plt.subplots(1, 2, figsize=(9, 4.5))
axes[0].scatter(*points.T, c=density, s=2, cmap="viridis")
axes[0].plot(*centres.T, "r+")
axes[0].set(title="sums of kernels, and centres of clusters", aspect="equal")
axes[1].imshow(mask, cmap="Greys")
axes[1].set(title=f"clusters that meet: {100 * share:.0f} % of the pairs", xlabel="cluster of z", ylabel="cluster of x")
plt.show()
