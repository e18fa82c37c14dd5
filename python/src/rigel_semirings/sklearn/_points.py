# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the estimators share: checked points, metrics, and kernels by scikit-learn's names."""

import numbers

import numpy as np
from sklearn.utils.validation import validate_data

FLOATS = (np.float64, np.float32)


def checked(estimator, X, *, reset=False, least=1):
    """X as float32 or float64 in rows, with as many columns as in fit()."""
    return validate_data(estimator, X, dtype=FLOATS, order="C", reset=reset, ensure_min_samples=least)


def checked_with_targets(estimator, X, y, *, least=1):
    """X, and y as float64 of one or several columns."""
    X, y = validate_data(estimator, X, y, dtype=FLOATS, order="C", multi_output=True, y_numeric=True, ensure_min_samples=least)
    return X, np.asarray(y, dtype="float64")


def in_one_type(X, points):
    """Both in the wider of their types."""
    dtype = np.result_type(X, points)
    return X.astype(dtype, copy=False), points.astype(dtype, copy=False)


def require_integer(value, name, least=1):
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"{name} is {value!r}, expected an integer, {least} or more")
    return int(value)


def require_number(value, name, above=None, least=None):
    good = isinstance(value, numbers.Real) and np.isfinite(value)
    if not good or (above is not None and value <= above) or (least is not None and value < least):
        bound = f"above {above}" if above is not None else f"{least} or more" if least is not None else "finite"
        raise ValueError(f"{name} is {value!r}, expected a number, {bound}")
    return float(value)


def metric_arguments(metric, p):
    """The metric's arguments of rigel_semirings.cdist(), of scikit-learn's metric and p."""
    if metric == "minkowski":
        return {"metric": "cityblock"} if p == 1 else {"metric": "euclidean"} if p == 2 else {"metric": "minkowski", "p": p}
    return {"metric": {"l1": "cityblock", "manhattan": "cityblock", "l2": "euclidean"}.get(metric, metric)}


def kernel_arguments(kernel, gamma, degree, coef0, kernel_params, columns):
    """The arguments of rigel_semirings.kernel_matrix() of a kernel by scikit-learn's name, or by Rigel's with its hyperparameters."""
    if gamma is None:
        gamma = 1 / columns
    of_sklearn = {
        "linear": lambda: {"kernel": "polynomial", "degree": 1.0, "scale": 1.0, "offset": 0.0},
        "poly": lambda: {"kernel": "polynomial", "degree": float(degree), "scale": gamma, "offset": coef0},
        "polynomial": lambda: {"kernel": "polynomial", "degree": float(degree), "scale": gamma, "offset": coef0},
        "rbf": lambda: {"kernel": "gaussian", "bandwidth": (2 * gamma)**-0.5},
        "laplacian": lambda: {"kernel": "laplace", "metric": "cityblock", "length": 1 / gamma},
        "sigmoid": lambda: {"kernel": "sigmoid", "scale": gamma, "offset": coef0},
        "cosine": lambda: {"kernel": "cosine"},
    }
    if kernel_params is None and kernel in of_sklearn:
        return of_sklearn[kernel]()
    return {"kernel": kernel, **(kernel_params or {})}
