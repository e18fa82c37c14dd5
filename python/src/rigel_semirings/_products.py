# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of matrices over semirings, and reductions of their rows."""

from typing import NamedTuple

from . import _core
from ._arrays import type_code
from ._errors import InvalidArgument
from ._options import chosen, flag, options
from ._ranges import of_call as ranges_of_call
from ._semiring import epilogue_of_call, of_call
from .epilogue import steps_of

_REDUCERS = {"minimum": 1, "maximum": 2, "smallest": 3, "largest": 4, "sum": 5, "log_sum_exp": 6, "count_below": 7}


class Reduced(NamedTuple):
    """What becomes of each row of scores: values, and where they are, or None of reducers that find no places."""

    values: object
    indices: object


def reduction(reducer, k, threshold, or_equal, exclude_self):
    """What the extension takes of a reducer."""
    code = chosen(reducer, _REDUCERS, "reducer")
    if (k is not None) != (code in (3, 4)):
        raise InvalidArgument(f"k is {k}, expected a number for 'smallest' and 'largest', and for these alone; reducer is {reducer!r}")
    if (threshold is not None) != (code == 7):
        raise InvalidArgument(f"threshold is {threshold}, expected a number for 'count_below', and for it alone; reducer is {reducer!r}")
    return code, k or 0, threshold or 0.0, flag(or_equal, "or_equal"), flag(exclude_self, "exclude_self")


def contract(a, b, semiring="min_plus", *, epilogue=None, out=None, accumulate=False, parameters=None, dtype=None, accumulator=None,
             may_cancel=False, kernel=None, require=(), precision="automatic"):
    """C(…,m,n) = epilogue( ⊕_k A(…,m,k) ⊗ B(…,k,n) ).

    Parameters
    ----------
    a, b : arrays of shapes (…, M, K) and (…, K, N), of one type
        The leading dimensions broadcast as in NumPy.
    semiring : str or Semiring
        One of your own, or plus_times, min_plus, max_plus, max_min, min_max, max_times, min_times, log_plus, or_and, xor_and, l1, l2_squared, linf, lp, hamming,
        bit_hamming, bit_jaccard.
    epilogue : steps of `rigel_semirings.epilogue`, or an `Epilogue` of your own
        Applied to each result before it is stored. One of your own goes with a `Semiring` and with plus_times.
    out : array of shape (…, M, N)
        Where results go, in its type; it overlaps no operand.
    accumulate : bool
        ⊕ starts with what `out` holds.
    parameters : dict
        Hyperparameters of the semiring, such as ``{"p": 3}`` of lp. Those of a `Semiring` have its own values if they are not named, and may be
        arrays, with a number for each matrix of the batch.
    dtype : type of the results without `out`
        By default that of floating-point operands; of integers that of the sums, float64 after an epilogue of numbers.
    accumulator : type in which ⊕ is formed; by default the usual one of the operands'.
    may_cancel : bool
        Errors of l2_squared may be relative to the norms of the rows.
    kernel, require, precision
        A kernel by name; what its bits must be: "reference_bits", "repeatable", "batch_invariant" or several of them; and the least precise
        terms, "automatic", "accumulator", "promoted" and the like.

    Returns
    -------
    An array of shape (…, M, N), of the library of `a`, or `out`.

    Raises
    ------
    InvalidArgument (a ValueError)
        If shapes do not fit, `out` overlaps an operand or is read-only.
    NotFound (a ValueError)
        For names that Rigel does not know; the message lists those that there are.
    Unsupported (a TypeError)
        For types that the semiring does not take, and objects that are no arrays.

    Examples
    --------
    The shortest ways of two arcs each, through any vertex k:

    >>> import numpy as np, rigel_semirings as rs
    >>> first, second = np.array([[1.0, 4.0]]), np.array([[5.0, 9.0], [1.0, 2.0]])
    >>> rs.contract(first, second, "min_plus")
    array([[5., 6.]])
    """
    if accumulate and out is None:
        raise InvalidArgument("accumulate is True and out is None, expected what the sums start with")
    semiring, parameters = of_call(semiring, parameters)
    return _core.contract(a, b, out, semiring, parameters, 0 if accumulator is None else type_code(accumulator, "accumulator"),
                          accumulate, may_cancel, epilogue_of_call(epilogue), 0 if dtype is None else type_code(dtype, "dtype"),
                          options(kernel, require, precision))


def reduce(a, b, semiring="min_plus", reducer="minimum", *, k=None, threshold=None, or_equal=False, exclude_self=False, ranges=None,
           epilogue=None, parameters=None, may_cancel=False, kernel=None, require=(), precision="automatic"):
    """⊞_n of the scores s(…,m,n) = epilogue( ⊕_k A(…,m,k) ⊗ B(…,k,n) ) of each row m, without a matrix of scores.

    Parameters
    ----------
    a, b, semiring, epilogue, parameters, may_cancel, require, precision : as in `contract`
    reducer : str
        "minimum", "maximum" with their n; "smallest", "largest": the `k` best, sorted, with theirs; "sum"; "log_sum_exp"; "count_below":
        how many scores are below `threshold`, or with `or_equal` not above it.
    exclude_self : bool
        Leaves out n = m, of a set with itself.
    ranges : Ranges
        Which pairs (m, n) there are; by default all.
    kernel : a kernel of reductions by name

    Returns
    -------
    Reduced(values, indices) of shapes (…, M), or (…, M, k). indices are int64, None of sums, log-sum-exp and counts. Of no scores: ∞ and −1,
    −∞ and −1, 0.

    Raises
    ------
    As `contract`; InvalidArgument if k or threshold do not go with the reducer.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> rs.reduce(np.array([[0.0, 1.0]]), np.array([[5.0, 3.0], [1.0, 3.0]]), "min_plus", "minimum")
    Reduced(values=array([2.]), indices=array([0]))
    """
    of = reduction(reducer, k, threshold, or_equal, exclude_self)
    return Reduced(*_core.reduce(a, b, semiring, parameters, of, True, of[0] <= 4, may_cancel, steps_of(epilogue),
                                 ranges_of_call(ranges), options(kernel, require, precision)))
