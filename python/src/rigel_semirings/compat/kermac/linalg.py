# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kermac.linalg's solves: a has the shape (n, n) or (L, n, n), right sides are the rows of b, (C, n) or (L, C, n).

They return infos, 0 of matrices that have a factorisation; others have NaN. `overwrite_a` and `overwrite_b` allow what these functions
never do.
"""

from ... import _core
from ..._arrays import I32, empty
from ..._errors import InvalidArgument
from .._arrays import matrices
from . import FillMode

__all__ = ["eigh", "solve_cholesky", "solve_lu"]


def _checked(infos, check_errors, what):
    if check_errors and bool((infos != 0).any()):
        raise InvalidArgument(f"Non-zero items found: {[(what, i, int(info)) for i, info in enumerate(infos.reshape(-1)) if info != 0]}")
    return infos


def _solved(function, a, b, upper, check_errors):
    a, b = matrices(a, "a"), matrices(b, "b")
    x, infos = function(a, b.swapaxes(-1, -2), None, upper, False, True, 0, None)
    zeros = empty(infos, tuple(infos.shape), I32, False)
    zeros[...] = 0
    return x.swapaxes(-1, -2), _checked(infos, check_errors, "factor_info"), zeros


def solve_cholesky(a, b, fill_mode=FillMode.LOWER, overwrite_a=False, overwrite_b=False, check_errors=False, debug=False):
    """(x, factor_infos, solve_infos) with x(l,c,:) = a(l)⁻¹·b(l,c,:), a symmetric positive definite; only its `fill_mode` triangle is read.

    Examples
    --------
    >>> import numpy as np
    >>> from rigel_semirings.compat import kermac
    >>> kermac.linalg.solve_cholesky(np.array([[4.0, 2.0], [2.0, 3.0]]), np.array([[2.0, 5.0]]))[0].round(6)
    array([[[-0.5,  2. ]]])
    """
    return _solved(_core.cholesky_solve, a, b, fill_mode is FillMode.UPPER, check_errors)


def solve_lu(a, b, overwrite_a=False, overwrite_b=False, check_errors=False, debug=False):
    """(x, factor_infos, solve_infos) with x(l,c,:) = a(l)⁻¹·b(l,c,:), of any square a.

    Examples
    --------
    >>> import numpy as np
    >>> from rigel_semirings.compat import kermac
    >>> kermac.linalg.solve_lu(np.array([[0.0, 2.0], [1.0, 0.0]]), np.array([[4.0, 3.0]]))[0]
    array([[[3., 2.]]])
    """
    return _solved(_core.lu_solve, a, b, False, check_errors)


def eigh(a, fill_mode=FillMode.LOWER, overwrite_a=False, check_errors=False):
    """(w, v, infos): eigenvalues in ascending order (L, n), eigenvectors in columns (L, n, n).

    Examples
    --------
    >>> import numpy as np
    >>> from rigel_semirings.compat import kermac
    >>> kermac.linalg.eigh(np.array([[2.0, 1.0], [1.0, 2.0]]))[0].round(6)
    array([[1., 3.]])
    """
    w, v, infos = _core.eigh(matrices(a, "a"), fill_mode is FillMode.UPPER, False, True, None)
    return w, v, _checked(infos, check_errors, "info")
