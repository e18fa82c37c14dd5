# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ridge regression in the space of a kernel."""

import warnings

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from .. import InvalidArgument, cholesky_solve, kernel_matrix, kernel_matvec, kernel_solve
from ._points import checked, checked_with_targets, kernel_arguments, require_number

# Up to so many points their kernel matrix is stored and factorised.
_MOST_STORED = 5000


class KernelRidge(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Least squares with |f|² in the space of a kernel as penalty: f(x) = Σ_n k(x, X(n,:))·dual_coef_(n), (K + alpha·I)·dual_coef_ = y.

    Parameters
    ----------
    alpha : the penalty, 0 or more
    kernel : "linear", "rbf", "laplacian", "poly", "polynomial", "sigmoid" or "cosine" with gamma, degree and coef0 as in scikit-learn, or
        with `kernel_params` a kernel of `rigel_semirings.kernel_matrix`
    gamma : 1 / columns by default
    kernel_params : dict of metric and hyperparameters, such as {"length": 2.0, "metric": "cityblock"} of "matern52"
    solver : "cholesky", which stores K, "cg", conjugate gradients to tol, which do not, or "auto": the former of up to 5000 points
    tol, max_iter : of conjugate gradients, as tolerance and iterations of `rigel_semirings.kernel_solve`

    Attributes
    ----------
    dual_coef_, X_fit_, n_features_in_; n_iter_, steps of conjugate gradients, else 1

    A K + alpha·I that has no Cholesky factor, of alpha 0, is solved by least squares, as in scikit-learn.

    Examples
    --------
    >>> from rigel_semirings.sklearn import KernelRidge
    >>> KernelRidge(alpha=1e-12).fit([[1.0], [2.0]], [2.0, 4.0]).predict([[3.0]]).round(6)
    array([6.])
    """

    def __init__(self, alpha=1.0, *, kernel="linear", gamma=None, degree=3, coef0=1, kernel_params=None, solver="auto", tol=1e-6, max_iter=1000):
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter

    def _kernel(self):
        return kernel_arguments(self.kernel, self.gamma, self.degree, self.coef0, self.kernel_params, self.n_features_in_)

    def fit(self, X, y, sample_weight=None):
        """`sample_weight`: of each point's square, by solver "cholesky"."""
        X, y = checked_with_targets(self, X, y)
        alpha = require_number(self.alpha, "alpha", least=0)
        if self.solver not in ("auto", "cholesky", "cg"):
            raise ValueError(f"solver is {self.solver!r}, expected 'auto', 'cholesky' or 'cg'")
        by_cholesky = self.solver == "cholesky" or (self.solver == "auto" and X.shape[0] <= _MOST_STORED)
        self.n_iter_ = 1
        self.X_fit_ = X
        if by_cholesky:
            self.dual_coef_ = self._solved(X.astype("float64"), y, alpha, sample_weight)
            return self
        if sample_weight is not None:
            raise ValueError("sample_weight is not None, which solver 'cg' does not take, expected solver='cholesky'")
        found = kernel_solve(X, y, regularisation=alpha, tolerance=self.tol, iterations=self.max_iter, **self._kernel())
        if not found.converged:
            warnings.warn(f"the residual is {found.residual:.3g} after {found.iterations} steps, expected {self.tol:.3g}", ConvergenceWarning,
                          stacklevel=2)
        self.dual_coef_, self.n_iter_ = found.alpha, found.iterations
        return self

    def _solved(self, X, y, alpha, sample_weight):
        K = kernel_matrix(X, **self._kernel())
        roots = np.ones(len(y))
        if sample_weight is not None:
            roots = np.sqrt(_check_sample_weight(sample_weight, X, dtype="float64"))
            K *= roots[:, None] * roots
        of_columns = roots.reshape(-1, *(1,) * (y.ndim - 1))
        K[np.diag_indices_from(K)] += alpha
        try:
            solution = cholesky_solve(K, y * of_columns)
        except InvalidArgument:
            solution = np.linalg.lstsq(K, y * of_columns, rcond=None)[0]
        return solution * of_columns

    def predict(self, X):
        """Σ_n k(X(m,:), X_fit_(n,:))·dual_coef_(n), of shape (M,) or (M, targets). The kernel matrix is not stored."""
        check_is_fitted(self)
        X = checked(self, X).astype(self.X_fit_.dtype, copy=False)
        return kernel_matvec(X, self.X_fit_, self.dual_coef_, **self._kernel())
