# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A linear layer whose bits are part of the contract."""

from functools import partial

from . import _core
from ._arrays import F32, as_array, empty, require_mutable, zeros
from ._errors import InvalidArgument
from ._options import chosen, options

_TIERS = {"scalar": 0, "tensor": 1}
_ACTIVATIONS = {None: 0, "relu": 1, "gelu": 2, "gelu_tanh": 3, "silu": 4}


def _activation(name):
    if not (name is None or isinstance(name, str)) or name not in _ACTIVATIONS:
        raise InvalidArgument(f"activation is {name!r}, expected None, 'relu', 'gelu', 'gelu_tanh' or 'silu'")
    return _ACTIVATIONS[name]


def linear_forward(x, weight, bias=None, *, activation=None, return_preactivation=False, tier="scalar", out=None, precision="automatic"):
    """Y = activation( X·Wᵀ + bias ), with one chain of fused multiply-adds for each output: the same bits on every machine.

    Parameters
    ----------
    x : array of shape (…, M, K) of float16, bfloat16 or float32
    weight : array of shape (N, K), of x's type, as PyTorch stores it
    bias : array of N float32
    activation : None, "relu", "gelu", "gelu_tanh" or "silu"
    return_preactivation : bool
        Returns what the activation was applied to, too, for `linear_backward_input`.
    tier : "scalar", or "tensor" of GPUs

    Returns
    -------
    Y of shape (…, M, N), or (Y, Z).

    Raises
    ------
    As `contract`.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> x, weight = np.array([[1, -1]], "float32"), np.array([[2, 1], [0, 3]], "float32")
    >>> rs.linear_forward(x, weight, np.array([1, 1], "float32"), activation="relu")
    array([[2., 0.]], dtype=float32)
    """
    y, z = _core.linear_forward(x, weight, bias, out, return_preactivation, chosen(tier, _TIERS, "tier"), _activation(activation),
                                options(None, (), precision))
    return (y, z) if return_preactivation else y


def linear_backward_weight(x, dy, dw=None, db=None, *, bias=True, tier="scalar", precision="automatic"):
    """dW(n,k) += Σ_m dY(m,n)·X(m,k) and db(n) += Σ_m dY(m,n), m ascending.

    Micro-batches in order, one call each, give the bits of one call.

    Parameters
    ----------
    x, dy : arrays of shapes (M, K) and (M, N)
    dw, db : arrays of float32 of shapes (N, K) and (N,) that sums are added to; None: new ones
    bias : whether db is computed, too

    Returns
    -------
    (dw, db); db is None without a bias.

    Raises
    ------
    As `contract`.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> dw, db = rs.linear_backward_weight(np.array([[1, 2]], "float32"), np.array([[3]], "float32"))
    >>> dw, db
    (array([[3., 6.]], dtype=float32), array([3.], dtype=float32))
    """
    x, dy = as_array(x, "x"), as_array(dy, "dy")
    if len(x.shape) != 2 or len(dy.shape) != 2:
        raise InvalidArgument(f"x and dy have the shapes {tuple(x.shape)} and {tuple(dy.shape)}, expected single matrices")

    require_mutable(dw, "dw")
    require_mutable(db, "db")
    overwrite = dw is None and db is None
    new = partial(empty, is_bool=False) if overwrite else zeros
    if dw is None:
        dw = new(x, (dy.shape[1], x.shape[1]), F32)
    if db is None and bias:
        db = new(x, (dy.shape[1],), F32)
    _core.linear_backward_weight(x, dy, dw, db, overwrite, chosen(tier, _TIERS, "tier"), options(None, (), precision))
    return dw, db


def linear_backward_input(dy, weight, z=None, *, activation=None, tier="scalar", out=None, precision="automatic"):
    """dX(…,m,k) = activation'(Z(…,m,k))·Σ_n dY(…,m,n)·W(n,k), where the activation is that of the layer before.

    Parameters
    ----------
    dy, weight : arrays of shapes (…, M, N) and (N, K)
    z : what that activation was applied to, of shape (…, M, K); None without one

    Returns
    -------
    dX of shape (…, M, K), or `out`.

    Raises
    ------
    As `contract`.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> rs.linear_backward_input(np.array([[1, 2]], "float32"), np.array([[3], [4]], "float32"))
    array([[11.]], dtype=float32)
    """
    return _core.linear_backward_input(dy, weight, z, out, chosen(tier, _TIERS, "tier"), _activation(activation),
                                       options(None, (), precision))
