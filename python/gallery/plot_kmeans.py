# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
k-means of handwritten digits
=============================

:func:`rigel_semirings.kmeans` finds sixteen centres of 1797 handwritten digits, pictures of 8 x 8 points. Assigning points to centres
stores no matrix of distances, and the sums of the centres are added in one fixed order: the same seed gives the same centres.
"""

import pathlib

import matplotlib.pyplot as plt
import numpy as np

import rigel_semirings as rs

data = np.loadtxt(pathlib.Path(__file__).resolve().parents[2] / "examples/digits/digits.csv", delimiter=",")
images, labels = data[:, :64], data[:, 64].astype(int)

clusters = rs.kmeans(images, 16, seed=4)

# %%
# The inertia is the sum of squared distances to the nearest centre. A cluster is named after the digit that most of it shows.
nearest = rs.assign(images, clusters.centres, "sqeuclidean")
assert np.isclose(nearest.distances.sum(), clusters.inertia)
names = [np.bincount(labels[clusters.labels == c]).argmax() for c in range(16)]
pure = np.mean(np.array(names)[clusters.labels] == labels)
assert pure > 0.7

figure, axes = plt.subplots(2, 8, figsize=(9, 2.9))
order = np.argsort(names, kind="stable")
for ax, c in zip(axes.flat, order):
    ax.imshow(clusters.centres[c].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{names[c]}: {np.sum(clusters.labels == c)}", fontsize=9)
    ax.axis("off")
figure.suptitle(f"{pure:.0%} of the digits are in a cluster of their own kind")
plt.show()
