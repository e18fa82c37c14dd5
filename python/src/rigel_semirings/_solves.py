# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear systems and eigenvectors, in batches of float32 or float64."""

from . import _core
from ._errors import InvalidArgument
from ._options import options


def _upper(triangle):
    if triangle not in ("lower", "upper"):
        raise InvalidArgument(f"triangle is {triangle!r}, expected 'lower' or 'upper'")
    return triangle == "upper"


def cholesky_solve(a, b, *, triangle="lower", refine=0, out=None, check=True, kernel=None):
    """X = A⁻¹·B, A symmetric positive definite, by Cholesky's factorisation.

    Parameters
    ----------
    a : array of shape (…, n, n); only its `triangle`, "lower" or "upper", is read
    b : array of shape (…, n, m), or (n,)
    refine : sweeps of refinement in double, of float32
    out : where X goes
    check : bool
        If not, the X of a matrix without a factorisation is NaN; else it raises.
    kernel : a kernel by name

    Returns
    -------
    An array with the shape of b.

    Raises
    ------
    InvalidArgument (a ValueError) if shapes do not fit, types are other than float32 and float64 or, with `check`, a matrix is not positive
    definite.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> rs.cholesky_solve(np.array([[4.0, 2.0], [2.0, 3.0]]), np.array([2.0, 5.0])).round(6)
    array([-0.5,  2. ])
    """
    return _core.cholesky_solve(a, b, out, _upper(triangle), check, False, refine, options(kernel, (), "automatic"))[0]


def lu_solve(a, b, *, refine=0, out=None, check=True, kernel=None):
    """X = A⁻¹·B for any square A, by LU with partial pivoting.

    Parameters and errors are those of `cholesky_solve`; with `check` it raises if a pivot is 0 or not finite.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> rs.lu_solve(np.array([[0.0, 2.0], [1.0, 0.0]]), np.array([4.0, 3.0]))
    array([3., 2.])
    """
    return _core.lu_solve(a, b, out, False, check, False, refine, options(kernel, (), "automatic"))[0]


def cholesky_factor(a, *, triangle="lower", out=None, check=True, kernel=None):
    """L with A = L·Lᵀ, zeros above its diagonal; with triangle="upper" Lᵀ.

    Parameters and errors are those of `cholesky_solve`.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> rs.cholesky_factor(np.array([[4.0, 2.0], [2.0, 5.0]]))
    array([[2., 0.],
           [1., 2.]])
    """
    return _core.cholesky_factor(a, out, _upper(triangle), check, False, options(kernel, (), "automatic"))[0]


def cholesky_solve_factored(l, b, *, triangle="lower", out=None, check=True, kernel=None):  # noqa: E741
    """X = (L·Lᵀ)⁻¹·B, L from `cholesky_factor` with the same triangle. Parameters and errors are those of `cholesky_solve`.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> rs.cholesky_solve_factored(np.array([[2.0, 0.0], [1.0, 2.0]]), np.array([4.0, 10.0]))
    array([0., 2.])
    """
    return _core.cholesky_solve_factored(l, b, out, _upper(triangle), check, False, 0, options(kernel, (), "automatic"))[0]


def log_determinant(l):  # noqa: E741
    """log det(L·Lᵀ) of shape (…), L from `cholesky_factor`.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> float(rs.log_determinant(np.array([[1.0, 0.0], [3.0, 1.0]])))
    0.0
    """
    return _core.log_determinant(l)


def eigh(a, *, triangle="lower", check=True, kernel=None):
    """A = V·diag(w)·Vᵀ, A symmetric: eigenvalues w in ascending order, orthonormal eigenvectors in the columns of V.

    Parameters and errors are those of `cholesky_solve`; with `check` it raises if A is not finite.

    Returns
    -------
    (w, v) of shapes (…, n) and (…, n, n).

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> rs.eigh(np.array([[2.0, 1.0], [1.0, 2.0]]))[0].round(6)
    array([1., 3.])
    """
    return _core.eigh(a, _upper(triangle), check, False, options(kernel, (), "automatic"))[:2]
