# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The figures of this example as SciPy has them, and the accuracies by scikit-learn's distances too."""
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, shortest_path
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

table = np.loadtxt(Path(__file__).with_name("digits.csv"), delimiter=",")
images, digits = table[:, :64], table[:, 64]
n = len(images)


def right(distances):
    np.fill_diagonal(distances, np.inf)
    return int((digits[distances.argmin(axis=1)] == digits).sum())


for p in (1, 2, 1.3, np.inf):
    metric, options = ("chebyshev", {}) if p == np.inf else ("minkowski", {"p": p})
    ours, theirs = cdist(images, images, metric, **options), pairwise_distances(images, metric=metric, **options)
    print(f"p={p}={right(ours)}  scikit-learn {right(theirs)}")

distances = cdist(images, images)
np.fill_diagonal(distances, np.inf)
nearest = np.argsort(distances, axis=1, kind="stable")[:, :10]
graph = np.zeros((n, n))
np.put_along_axis(graph, nearest, np.take_along_axis(distances, nearest, axis=1), axis=1)
graph = csr_array(np.maximum(graph, graph.T))
paths = shortest_path(graph, method="D", directed=False)
finite = paths[np.isfinite(paths)]
print(f"edges={graph.nnz // 2}  longest={finite.max():.12f}  mean={finite.mean():.12f}  "
      f"components={connected_components(graph, directed=False)[0]}")
