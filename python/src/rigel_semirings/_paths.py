# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All-pairs paths."""

from . import _core
from ._arrays import as_array, copy, require_mutable
from ._errors import InvalidArgument
from ._options import options, whole


class ShortestPaths:
    """What `shortest_paths` finds: `distances`, and `predecessors` or None."""

    __slots__ = ("distances", "predecessors")

    def __init__(self, distances, predecessors):
        self.distances = distances
        self.predecessors = predecessors

    def path(self, source, target):
        """The vertices of a shortest path from source to target, both included; an empty list if there is none.

        Raises InvalidArgument if predecessors were not kept, or for a batch or vertices that do not exist.
        """
        p = self.predecessors
        if p is None:
            raise InvalidArgument("predecessors are None, expected shortest_paths(weights, predecessors=True)")
        if len(p.shape) != 2:
            raise InvalidArgument(f"predecessors have the shape {tuple(p.shape)}, expected those of one graph")
        source, target = int(whole(source, "source")), int(whole(target, "target"))
        for name, vertex in (("source", source), ("target", target)):
            if not 0 <= vertex < p.shape[0]:
                raise InvalidArgument(f"{name} is {vertex}, expected a vertex from 0 to {p.shape[0] - 1}")
        vertices = [target]
        while vertices[-1] != source:
            before = int(p[source, vertices[-1]])
            if before < 0 or len(vertices) > p.shape[0]:
                return []
            vertices.append(before)
        return vertices[::-1]

    def __repr__(self):
        return f"ShortestPaths({tuple(self.distances.shape)})"


def _closure(weights, semiring, out, predecessors, check, block, kernel, require, precision):
    weights = as_array(weights, "weights")
    require_mutable(out, "out")
    if out is not None and out is not weights:
        shape = tuple(getattr(out, "shape", ()))
        if shape != tuple(weights.shape):
            raise InvalidArgument(f"out has the shape {shape}, expected {tuple(weights.shape)}")
        if str(out.dtype) != str(weights.dtype):
            raise InvalidArgument(f"out holds {out.dtype}, expected {weights.dtype} as weights do")
    paths = weights if out is weights else copy(weights)
    d, p, vertex, graph = _core.closure(paths, semiring, predecessors, check, block, options(kernel, require, precision))
    if vertex >= 0:
        where = f" of graph {graph}" if len(d.shape) > 2 else ""
        raise InvalidArgument(f"vertex {vertex}{where} lies on a cycle that is better than the empty path, expected no such cycle: negative "
                              "ones of min_plus")
    if out is not None and out is not weights:
        out[...] = d
        d = out
    return d, p


def closure(weights, semiring="min_plus", *, out=None, check=True, block=0, kernel=None, require=(), precision="automatic"):
    """D* = I ⊕ D ⊕ D² ⊕ …: all-pairs paths over an idempotent semiring.

    Parameters
    ----------
    weights : array of shape (…, n, n)
        Those of the arcs. No arc is ∞ of min_plus and min_max, −∞ of max_plus and max_min, 0 of max_times and or_and; of integers half of the
        largest number stands for ∞.
    semiring : str
        min_plus (shortest paths), max_min (widest), max_times (most reliable), or_and (reachability), max_plus, min_max, min_times.
    out : array of the same shape
        Where paths go; `weights` itself for a closure in place.
    check : bool
        If not, the paths of a graph in which a closed walk is better than the empty path are unspecified, and a call on a GPU does not wait;
        else it raises.
    block : vertices eliminated at a time, 64 by default
    kernel, require, precision : as in `contract`

    Returns
    -------
    An array of shape (…, n, n), of the type of weights, or `out`.

    Raises
    ------
    InvalidArgument (a ValueError), with `check`, if a closed walk is better than the empty path, as a negative cycle is; it names a vertex. As
    `contract` else.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> inf = np.inf
    >>> rs.closure(np.array([[inf, 1, inf], [inf, inf, 2], [inf, inf, inf]]))
    array([[ 0.,  1.,  3.],
           [inf,  0.,  2.],
           [inf, inf,  0.]])
    """
    return _closure(weights, semiring, out, False, check, block, kernel, require, precision)[0]


def shortest_paths(weights, *, predecessors=True, out=None, check=True, block=0, kernel=None, require=(), precision="automatic"):
    """The shortest paths between all pairs of vertices: closure over min_plus, with predecessors.

    Parameters
    ----------
    weights : array of shape (…, n, n)
        weights[i, j] is that of the arc from i to j, ∞ if there is none.
    predecessors : bool
        Keeps the vertex before j on a shortest path from i to j, −1 if there is none: of float32, float64 and int32.
    out, check, block, kernel, require, precision : as in `closure`

    Returns
    -------
    ShortestPaths with `distances`, `predecessors` (int32) and `path(source, target)`.

    Raises
    ------
    As `closure`.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> inf = np.inf
    >>> paths = rs.shortest_paths(np.array([[inf, 4, 1], [inf, inf, inf], [inf, 2, inf]]))
    >>> float(paths.distances[0, 1]), paths.path(0, 1)
    (3.0, [0, 2, 1])
    """
    return ShortestPaths(*_closure(weights, "min_plus", out, predecessors, check, block, kernel, require, precision))
