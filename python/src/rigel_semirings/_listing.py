# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which kernels there are, and which one a call gets."""

import json
from html import escape

from . import _core
from ._errors import InvalidArgument, Unsupported


class Explanation:
    """The candidates of a call: `problem`, and `candidates`, a list of dicts with "kernel", "chosen", "covers" and, of those that cover the
    call, "seconds" (predicted), "workspace_bytes" and "admission", else "reason"."""

    __slots__ = ("candidates", "problem")

    def __init__(self, problem, candidates):
        self.problem = problem
        self.candidates = candidates

    @property
    def chosen(self):
        """The name of the kernel that the call gets, None if there is none."""
        return next((one["kernel"] for one in self.candidates if one["chosen"]), None)

    def _rows(self):
        for one in sorted(self.candidates, key=lambda one: (not one["covers"], one.get("seconds", 0.0))):
            seconds = f"{1e6 * one['seconds']:.1f} us" if one["covers"] else ""
            yield "*" if one["chosen"] else "", one["kernel"], seconds, one["admission"] if one["covers"] else one["reason"]

    def __str__(self):
        rows = list(self._rows())
        width = max((len(row[1]) for row in rows), default=0)
        return "\n".join([self.problem] + [f"{mark:1} {kernel:{width}} {seconds:>12}  {why}".rstrip() for mark, kernel, seconds, why in rows])

    __repr__ = __str__

    def _repr_html_(self):
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self._rows())
        head = "<tr><th></th><th>kernel</th><th>predicted</th><th></th></tr>"
        return f"<table><caption>{escape(self.problem)}</caption>{head}{body}</table>"


def explain(function, /, *args, **kwargs):
    """The candidates of the call ``function(*args, **kwargs)``, which is not run.

    Returns
    -------
    Explanation, which prints as a table; '*' marks the kernel that the call gets.

    Raises
    ------
    InvalidArgument for functions without candidates of their own: closures, the linear layer, log_determinant, kmeans, sinkhorn, kernel_solve and
    kernel_matrix_gradient; and as the function does.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> why = rs.explain(rs.contract, np.ones((2, 3)), np.ones((3, 4)), "min_plus")
    >>> why.problem
    'min_plus f64, 2x4x3'
    >>> why.chosen in [kernel["name"] for kernel in rs.kernels()]
    True
    """
    if not callable(function):
        raise Unsupported(f"function is {function!r}, expected a function of this package")
    _core.begin_explaining()
    try:
        function(*args, **kwargs)
    finally:
        texts = _core.end_explaining()
    if not texts:
        raise InvalidArgument(f"{getattr(function, '__name__', function)} has no candidates to explain")
    first = json.loads(texts[0])
    return Explanation(first["problem"], first["candidates"])


def kernels(name=None):
    """All kernels, or those whose name is `name` or begins with it up to a '.': a list of dicts of their facts.

    Examples
    --------
    >>> import rigel_semirings as rs
    >>> rs.kernels("reference.min_plus.f32")[0]["promises"]
    ['reference_bits', 'repeatable', 'batch_invariant']
    """
    return json.loads(_core.kernels(name))
