# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The figures of this example as SciPy and NumPy have them, and scikit-learn's Isomap, whose graph differs in ties."""
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.manifold import Isomap

table = np.loadtxt(Path(__file__).parent.parent / "digits" / "digits.csv", delimiter=",")[:1000]
images, digits = table[:, :64], table[:, 64]
n = len(images)

distances = cdist(images, images)
np.fill_diagonal(distances, np.inf)
nearest = np.argsort(distances, axis=1, kind="stable")[:, :10]
graph = np.zeros((n, n))
np.put_along_axis(graph, nearest, np.take_along_axis(distances, nearest, axis=1), axis=1)
geodesics = shortest_path(csr_array(np.maximum(graph, graph.T)), method="D", directed=False)
assert np.isfinite(geodesics).all()

squares = geodesics**2
centred = -(squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()) / 2
values, vectors = np.linalg.eigh(centred)
embedding = vectors[:, -1:-3:-1] * np.sqrt(values[-1:-3:-1])
between = squareform(pdist(embedding))
variance = 1 - np.corrcoef(geodesics.ravel(), between.ravel())[0, 1] ** 2
np.fill_diagonal(between, np.inf)
right = int((digits[between.argmin(axis=1)] == digits).sum())
print(f"--expect first={values[-1]:.15g} --expect second={values[-2]:.15g} --expect variance={variance:.15g} --expect right={right}")

theirs = Isomap(n_neighbors=10, n_components=2, eigen_solver="dense").fit(images)
print("scikit-learn's eigenvalues:", theirs.kernel_pca_.eigenvalues_)
