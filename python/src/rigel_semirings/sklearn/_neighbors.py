# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nearest neighbours that vote, or whose targets are averaged."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import nearest
from ._points import FLOATS, checked, checked_with_targets, in_one_type, metric_arguments, require_integer


class _Neighbors(BaseEstimator):
    def __init__(self, n_neighbors=5, *, weights="uniform", p=2, metric="minkowski"):
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.p = p
        self.metric = metric

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _set_points(self, X):
        require_integer(self.n_neighbors, "n_neighbors")
        if self.weights not in ("uniform", "distance", None) and not callable(self.weights):
            raise ValueError(f"weights is {self.weights!r}, expected 'uniform', 'distance', None or a function of distances")
        self._points = X
        self.n_samples_fit_ = X.shape[0]

    def kneighbors(self, X=None, n_neighbors=None, return_distance=True):
        """The nearest points of fit() by ascending distance, equal ones by ascending index.

        Without X, those of each of these points, which is not its own neighbour. Returns (distances, indices) of shape (M, n_neighbors), or
        indices.
        """
        check_is_fitted(self, "n_samples_fit_")
        k = require_integer(self.n_neighbors if n_neighbors is None else n_neighbors, "n_neighbors")
        is_self = X is None
        X = self._points if is_self else checked(self, X)
        there = self.n_samples_fit_ - is_self
        if k > there:
            raise ValueError(f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k}, n_samples_fit = {self.n_samples_fit_}, "
                             f"n_samples = {X.shape[0]}")
        found = nearest(*in_one_type(X, self._points), k, exclude_self=is_self, **metric_arguments(self.metric, self.p))
        return (found.distances, found.indices) if return_distance else found.indices

    def kneighbors_graph(self, X=None, n_neighbors=None, mode="connectivity"):
        """kneighbors() as a compressed sparse row matrix of ones, or with mode="distance" of distances."""
        from scipy.sparse import csr_matrix

        if mode not in ("connectivity", "distance"):
            raise ValueError(f"mode is {mode!r}, expected 'connectivity' or 'distance'")
        distances, indices = self.kneighbors(X, n_neighbors)
        rows, k = indices.shape
        values = distances.ravel() if mode == "distance" else np.ones(rows * k)
        return csr_matrix((values, indices.ravel(), np.arange(rows + 1) * k), shape=(rows, self.n_samples_fit_))

    def _weighted(self, X):
        """Indices, and their weights, of the rows of X."""
        distances, indices = self.kneighbors(X)
        if self.weights in ("uniform", None):
            return indices, np.ones(indices.shape)
        if callable(self.weights):
            return indices, np.asarray(self.weights(distances), dtype="float64")
        # Those at distance 0, if there are some, are all that counts.
        is_zero = distances == 0
        with np.errstate(divide="ignore"):
            return indices, np.where(is_zero.any(1, keepdims=True), is_zero, 1 / distances.astype("float64"))


class KNeighborsClassifier(ClassifierMixin, _Neighbors):
    """The class with the most votes among the n_neighbors nearest points; of equal votes the smallest class.

    Parameters
    ----------
    n_neighbors : 1 to 4096
    weights : "uniform", "distance", or a function of an array of distances
    metric, p : scikit-learn's minkowski with p, or a metric of `rigel_semirings.cdist` that needs no more than a name

    Attributes
    ----------
    classes_, n_features_in_, n_samples_fit_

    Examples
    --------
    >>> from rigel_semirings.sklearn import KNeighborsClassifier
    >>> KNeighborsClassifier(1).fit([[0.0], [1.0]], [0, 1]).predict([[0.2], [0.9]])
    array([0, 1])
    """

    def fit(self, X, y):
        X, y = validate_data(self, X, y, dtype=FLOATS, order="C", multi_output=True)
        check_classification_targets(y)
        self._set_points(X)
        y = np.asarray(y)
        if y.ndim == 2 and y.shape[1] == 1:
            import warnings

            from sklearn.exceptions import DataConversionWarning

            warnings.warn("A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), for "
                          "example using ravel().", DataConversionWarning, stacklevel=2)
            y = y.ravel()
        self._is_many = y.ndim == 2
        columns = y.T if self._is_many else [y]
        pairs = [np.unique(column, return_inverse=True) for column in columns]
        self._codes = [codes.ravel() for _, codes in pairs]
        classes = [values for values, _ in pairs]
        self.classes_ = classes if self._is_many else classes[0]
        return self

    def predict_proba(self, X):
        """The parts of the votes that classes have, of shape (M, classes); of several targets a list of such."""
        check_is_fitted(self)
        indices, weights = self._weighted(X)
        rows = np.arange(indices.shape[0])[:, None]
        parts = []
        for classes, codes in zip(self.classes_ if self._is_many else [self.classes_], self._codes, strict=True):
            votes = np.zeros((indices.shape[0], len(classes)))
            np.add.at(votes, (rows, codes[indices]), weights)
            total = votes.sum(1, keepdims=True)
            parts.append(votes / np.where(total == 0, 1, total))
        return parts if self._is_many else parts[0]

    def predict(self, X):
        """The classes, of shape (M,) or (M, targets)."""
        parts = self.predict_proba(X)
        if not self._is_many:
            return self.classes_[parts.argmax(1)]
        return np.stack([classes[of.argmax(1)] for classes, of in zip(self.classes_, parts, strict=True)], axis=1)


class KNeighborsRegressor(RegressorMixin, _Neighbors):
    """The mean of the targets of the n_neighbors nearest points, or one with weights.

    Parameters and attributes are those of `KNeighborsClassifier`, but for classes_.

    Examples
    --------
    >>> from rigel_semirings.sklearn import KNeighborsRegressor
    >>> KNeighborsRegressor(2).fit([[0.0], [1.0], [9.0]], [1.0, 2.0, 7.0]).predict([[0.2]])
    array([1.5])
    """

    def fit(self, X, y):
        X, y = checked_with_targets(self, X, y)
        self._set_points(X)
        self._targets = y
        return self

    def predict(self, X):
        """The means, of shape (M,) or (M, targets)."""
        check_is_fitted(self)
        indices, weights = self._weighted(X)
        of_columns = weights.reshape(*weights.shape, *(1,) * (self._targets.ndim - 1))
        return (self._targets[indices] * of_columns).sum(1) / of_columns.sum(1)
