# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""k-means."""

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted

from .. import assign, cdist, kmeans
from ._points import checked, in_one_type, require_integer, require_number


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """n_clusters centres that minimise the sum of squared distances of points from the nearest one.

    Parameters
    ----------
    n_clusters : 1 to the number of points
    init : "k-means++", "random", or an array of centres
    n_init : starts, of which the one with the least inertia is kept. "auto": 1 of k-means++ and of an array, 10 of "random"
    max_iter : updates of the centres
    tol : the updates end when one reduces the inertia by no more than this part of it (in scikit-learn: when centres hardly move)
    random_state : as in scikit-learn. A state gives the same clusters on every machine.

    Attributes
    ----------
    cluster_centers_, labels_, inertia_, n_iter_, n_features_in_

    There are no sample weights.

    Examples
    --------
    >>> from rigel_semirings.sklearn import KMeans
    >>> KMeans(2, random_state=0).fit([[0.0], [1.0], [10.0], [11.0]]).inertia_
    1.0
    """

    def __init__(self, n_clusters=8, *, init="k-means++", n_init="auto", max_iter=300, tol=1e-4, random_state=None):
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _starts(self):
        if isinstance(self.init, str) and self.init not in ("k-means++", "random"):
            raise ValueError(f"init is {self.init!r}, expected 'k-means++', 'random' or an array of centres")
        if not isinstance(self.init, str):
            return 1
        if self.n_init == "auto":
            return 10 if self.init == "random" else 1
        return require_integer(self.n_init, "n_init")

    def fit(self, X, y=None):
        X = checked(self, X, reset=True)
        k = require_integer(self.n_clusters, "n_clusters")
        if k > X.shape[0]:
            raise ValueError(f"n_samples={X.shape[0]} should be >= n_clusters={k}.")
        steps, tol = require_integer(self.max_iter, "max_iter"), require_number(self.tol, "tol", least=0)
        random, best = check_random_state(self.random_state), None
        for _ in range(self._starts()):
            centres = None
            if not isinstance(self.init, str):
                centres = check_array(self.init, dtype=X.dtype)
            elif self.init == "random":
                centres = X[random.permutation(X.shape[0])[:k]]
            found = kmeans(X, k, centres, seed=int(random.randint(2**31)), iterations=steps, tolerance=tol)
            if best is None or found.inertia < best.inertia:
                best = found
        self.cluster_centers_, self.inertia_, self.n_iter_ = best.centres, best.inertia, best.iterations
        self.labels_ = best.labels.astype("int32")
        self._n_features_out = k
        return self

    def _checked(self, X):
        check_is_fitted(self)
        return in_one_type(checked(self, X), self.cluster_centers_)

    def predict(self, X):
        """The nearest centre of each row."""
        return assign(*self._checked(X), "sqeuclidean").indices.astype("int32")

    def transform(self, X):
        """Distances from all centres, of shape (M, n_clusters)."""
        return cdist(*self._checked(X))

    def score(self, X, y=None):
        """Minus the sum of squared distances from the nearest centres."""
        return -float(np.sum(assign(*self._checked(X), "sqeuclidean").distances, dtype="float64"))
