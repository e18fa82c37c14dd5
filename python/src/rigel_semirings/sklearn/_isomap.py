# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Isomap: coordinates whose distances are those along a graph of neighbours."""

import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .. import assign, eigh, nearest, shortest_paths
from ._points import checked, in_one_type, metric_arguments, require_integer


def _joined(arcs, X, metric):
    """The graph with the shortest arc between each two of its components, if it has several."""
    from scipy.sparse.csgraph import connected_components

    count, labels = connected_components(np.isfinite(arcs), directed=False)
    if count == 1:
        return arcs
    warnings.warn(f"The number of connected components of the neighbors graph is {count} > 1. Completing the graph to fit Isomap might be "
                  "slow. Increase the number of neighbors to avoid this issue.", stacklevel=4)
    parts = [np.flatnonzero(labels == i) for i in range(count)]
    for i, here in enumerate(parts):
        for there in parts[:i]:
            distances, indices = assign(X[here], X[there], **metric)
            at = int(np.argmin(distances))
            m, n = here[at], there[indices[at]]
            arcs[m, n] = arcs[n, m] = distances[at]
    return arcs


class Isomap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Coordinates by classical scaling of the lengths of shortest paths along a graph of nearest neighbours.

    Parameters
    ----------
    n_neighbors : the arcs that leave each point; they go both ways
    n_components : the coordinates
    metric, p : as in `KNeighborsClassifier`

    Attributes
    ----------
    embedding_ (M, n_components), dist_matrix_ (M, M), the lengths of shortest paths, n_features_in_

    A coordinate's sign is such that its number of the largest magnitude is positive.

    Examples
    --------
    >>> from rigel_semirings.sklearn import Isomap
    >>> Isomap(n_neighbors=1, n_components=1).fit_transform([[0.0], [1.0], [2.5]]).round(3).ravel() - 1.333
    array([-2.5, -1.5,  0. ])
    """

    def __init__(self, *, n_neighbors=5, n_components=2, metric="minkowski", p=2):
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.metric = metric
        self.p = p

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X, y=None):
        X = checked(self, X, reset=True, least=2)
        k, count = require_integer(self.n_neighbors, "n_neighbors"), require_integer(self.n_components, "n_components")
        rows = X.shape[0]
        if k >= rows:
            raise ValueError(f"n_neighbors = {k}, expected at most n_samples - 1 = {rows - 1}")
        if count > rows:
            raise ValueError(f"n_components = {count}, expected at most n_samples = {rows}")
        metric = metric_arguments(self.metric, self.p)
        found = nearest(X, k=k, exclude_self=True, **metric)
        arcs = np.full((rows, rows), np.inf)
        np.put_along_axis(arcs, found.indices, found.distances.astype("float64"), axis=1)
        arcs = _joined(np.minimum(arcs, arcs.T), X, metric)
        self._points = X
        self.dist_matrix_ = shortest_paths(arcs, predecessors=False, out=arcs).distances
        squares = -0.5 * self.dist_matrix_**2
        self._means, self._mean = squares.mean(0), squares.mean()
        values, vectors = eigh(squares - self._means - self._means[:, None] + self._mean)
        values, vectors = np.maximum(values[::-1][:count], 0), vectors[:, ::-1][:, :count]
        vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(0), np.arange(count)])
        # Coordinates that all are 0 have no direction.
        self._directions = np.divide(vectors, np.sqrt(values), out=np.zeros_like(vectors), where=values > 1e-14 * max(values[0], 1e-300))
        self.embedding_ = (vectors * np.sqrt(values)).astype(X.dtype, copy=False)
        self._n_features_out = count
        return self

    def fit_transform(self, X, y=None):
        return self.fit(X).embedding_

    def transform(self, X):
        """Coordinates of other points, whose paths begin at their nearest neighbours."""
        check_is_fitted(self)
        X = checked(self, X)
        found = nearest(*in_one_type(X, self._points), self.n_neighbors, **metric_arguments(self.metric, self.p))
        lengths = np.full((X.shape[0], self._points.shape[0]), np.inf)
        for i in range(self.n_neighbors):
            np.minimum(lengths, found.distances[:, i, None] + self.dist_matrix_[found.indices[:, i]], out=lengths)
        squares = -0.5 * lengths**2
        centred = squares - squares.mean(1, keepdims=True) - self._means + self._mean
        return (centred @ self._directions).astype(X.dtype, copy=False)
