# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which pairs of rows and columns reductions take."""

from . import _core
from ._arrays import as_array, numpy, on_host
from ._errors import InvalidArgument, Unsupported


def _numbers(given, name, kinds, expected):
    """A NumPy array of what is given, which holds numbers of these kinds."""
    array = on_host(as_array(given, name), name)
    if array.size and array.dtype.kind not in kinds:
        raise Unsupported(f"{name} holds {array.dtype}, expected {expected}")
    return array


def _integers(given, name):
    return numpy().array(_numbers(given, name, "iu", "integers"), dtype="int64", order="C")


def _intervals(given, name):
    array = _integers(given, name)
    if array.size and (array.ndim != 2 or array.shape[1] != 2):
        raise InvalidArgument(f"{name} has the shape {array.shape}, expected (…, 2): first and end of each interval")
    return array.reshape(-1, 2)


def _offsets(given, name, blocks):
    """Where blocks begin and end: as many numbers and one more, from 0 on."""
    array = _integers(given, name)
    if array.shape != (blocks + 1,):
        raise InvalidArgument(f"{name} has the shape {array.shape}, expected ({blocks + 1},): where each of the mask's {blocks} blocks begins, "
                              "and the end")
    if array[0] != 0 or (array[1:] < array[:-1]).any():
        raise InvalidArgument(f"{name} is {array.tolist() if array.size < 20 else array}, expected ascending numbers from 0 on")
    return array


def _labels(given, name):
    array = _integers(given, name)
    if array.ndim != 1:
        raise InvalidArgument(f"{name} has the shape {array.shape}, expected one dimension")
    falls = (array[1:] < array[:-1]).nonzero()[0]
    if falls.size:
        at = int(falls[0])
        raise InvalidArgument(f"{name}[{at + 1}] is {array[at + 1]} after {array[at]}, expected ascending labels: points have to be in the "
                              "order labels.argsort(kind='stable')")
    if array.size and array[0] < 0:
        raise InvalidArgument(f"{name}[0] is {array[0]}, expected labels from 0 on")
    return array


class Ranges:
    """Which scores (m, n) of M × N a reduction takes: for each of some intervals of rows, the intervals of columns that they meet.

    A score (m, n) is taken if rows[r, 0] ≤ m < rows[r, 1] and columns[i, 0] ≤ n < columns[i, 1] for some r and slices[r − 1] ≤ i < slices[r], with
    slices[−1] = 0. All others are left out and cost nothing: a row that meets no columns has the result of no scores, which is 0 of sums, −∞ of
    `logsumexp`, ∞ and −1 of `nearest`. These are ranges_i, slices_i and redranges_j of KeOps, which calls it block sparsity.

    `Ranges.from_mask` and `Ranges.from_labels` make them of blocks. Arguments `ranges=` take them, for each matrix of a batch. They are copied to
    a GPU when a call there first has them; make one before a CUDA graph is captured, and keep the object as long as the graph is replayed.
    Calls with ranges are worth their while from some hundred rows and columns of an interval on.

    Parameters
    ----------
    m, n : the extents M and N of the scores: rows of x and of z
    rows : integers of shape (R, 2), from rows[r, 0] to before rows[r, 1]
    slices : R ascending integers, where the list of each of rows ends in columns; the last one is P
    columns : integers of shape (P, 2)
        Intervals are in any order, and may be empty. Those of rows do not overlap, and neither do the columns of one of rows.

    Raises
    ------
    InvalidArgument if intervals overlap, or do not lie within 0 … M and 0 … N, and Unsupported if something holds no integers.

    Examples
    --------
    Rows 0 and 1 meet columns 0 and 3, row 2 meets columns 1 and 2:

    >>> import numpy as np, rigel_semirings as rs
    >>> ranges = rs.Ranges(4, 4, rows=[[0, 2], [2, 3]], slices=[2, 3], columns=[[0, 1], [3, 4], [1, 3]])
    >>> ranges
    Ranges(4 x 4: 6 pairs in 2 intervals of rows)
    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> rs.nearest(x, x, ranges=ranges).indices.ravel()
    array([ 0,  0,  2, -1])
    """

    __slots__ = ("__weakref__", "_columns", "_made", "_rows", "_shape", "_slices")

    def __init__(self, m, n, rows, slices, columns):
        self._rows, self._slices, self._columns = _intervals(rows, "rows"), _integers(slices, "slices"), _intervals(columns, "columns")
        if self._slices.ndim != 1:
            raise InvalidArgument(f"slices has the shape {self._slices.shape}, expected one dimension")
        self._made = _core.Ranges(m, n, self._rows, self._slices, self._columns)
        self._shape = int(m), int(n)
        for array in (self._rows, self._slices, self._columns):
            array.flags.writeable = False

    @classmethod
    def from_mask(cls, mask, row_offsets, column_offsets=None):
        """Blocks of rows and columns that meet where a mask is True.

        Parameters
        ----------
        mask : bool of shape (R, C)
        row_offsets : R + 1 ascending integers: block r has the rows row_offsets[r] to before row_offsets[r + 1]; the first one is 0 and the last M
        column_offsets : the same of C blocks of columns; by default row_offsets, of a set with itself

        Raises
        ------
        InvalidArgument if offsets do not ascend from 0 on, or are not one more than the mask has blocks.

        Examples
        --------
        >>> import rigel_semirings as rs
        >>> rs.Ranges.from_mask([[True, False], [True, True]], [0, 3, 5]).columns.tolist()
        [[0, 3], [0, 5]]
        """
        module = numpy()
        mask = _numbers(mask, "mask", "b", "bool")
        if mask.ndim != 2:
            raise InvalidArgument(f"mask has the shape {mask.shape}, expected two dimensions")
        of_rows = _offsets(row_offsets, "row_offsets", mask.shape[0])
        if column_offsets is None:
            if mask.shape[0] != mask.shape[1]:
                raise InvalidArgument(f"column_offsets is None and mask has the shape {mask.shape}, expected offsets, or a square mask")
            of_columns = of_rows
        else:
            of_columns = _offsets(column_offsets, "column_offsets", mask.shape[1])
        # Blocks side by side are one interval.
        edges = module.diff(module.pad(mask.astype("int8"), ((0, 0), (1, 1))), axis=1)
        row, first = (edges == 1).nonzero()
        end = (edges == -1).nonzero()[1]
        return cls(of_rows[-1], of_columns[-1], module.stack([of_rows[:-1], of_rows[1:]], axis=1),
                   module.bincount(row, minlength=mask.shape[0]).cumsum(), module.stack([of_columns[first], of_columns[end]], axis=1))

    @classmethod
    def from_labels(cls, row_labels, column_labels=None, mask=None):
        """Clusters of rows and columns that meet where a mask is True, of points that are sorted by their cluster.

        Parameters
        ----------
        row_labels, column_labels : integers of shapes (M,) and (N,), ascending from 0 on
            The cluster of each row of x and of z, as `kmeans` finds them, of points in the order labels.argsort(kind="stable"). By default
            columns have the labels of rows, of a set with itself.
        mask : bool of shape (R, C), for more clusters than labels have
            By default clusters meet themselves alone.

        Raises
        ------
        InvalidArgument if labels do not ascend, or the mask has fewer clusters than they.

        Examples
        --------
        >>> import rigel_semirings as rs
        >>> rs.Ranges.from_labels([0, 0, 1, 1, 1, 2])
        Ranges(6 x 6: 14 pairs in 3 intervals of rows)
        """
        module = numpy()
        of_rows = _labels(row_labels, "row_labels")
        of_columns = of_rows if column_labels is None else _labels(column_labels, "column_labels")
        if mask is not None:
            mask = _numbers(mask, "mask", "b", "bool")
            needed = tuple(int(labels[-1]) + 1 if labels.size else 0 for labels in (of_rows, of_columns))
            if mask.ndim != 2 or mask.shape[0] < needed[0] or mask.shape[1] < needed[1]:
                raise InvalidArgument(f"mask has the shape {mask.shape}, expected at least {needed}, a row and a column for each label")
            return cls.from_mask(mask, *(labels.searchsorted(range(count + 1)) for labels, count in zip((of_rows, of_columns), mask.shape)))
        clusters, first = module.unique(of_rows, return_index=True)
        rows = module.stack([first, module.append(first, of_rows.size)[1:]], axis=1)
        columns = module.stack([of_columns.searchsorted(clusters), of_columns.searchsorted(clusters, side="right")], axis=1)
        return cls(of_rows.size, of_columns.size, rows, module.arange(1, clusters.size + 1), columns)

    @property
    def shape(self):
        """(M, N)."""
        return self._shape

    @property
    def rows(self):
        return self._rows

    @property
    def slices(self):
        return self._slices

    @property
    def columns(self):
        return self._columns

    @property
    def pairs(self):
        """The number of pairs (m, n) that are taken."""
        ends = numpy().concatenate([[0], (self._columns[:, 1] - self._columns[:, 0]).cumsum()])
        ends = ends[numpy().concatenate([[0], self._slices])]
        return int(((self._rows[:, 1] - self._rows[:, 0]) * (ends[1:] - ends[:-1])).sum())

    def __reduce__(self):
        return type(self), (*self._shape, self._rows, self._slices, self._columns)

    def __repr__(self):
        return f"Ranges({self._shape[0]} x {self._shape[1]}: {self.pairs} pairs in {len(self._rows)} intervals of rows)"


def of_call(ranges):
    """What the extension takes of an argument."""
    if ranges is None:
        return None
    if not isinstance(ranges, Ranges):
        raise Unsupported(f"ranges is a {type(ranges).__name__}, expected a rigel_semirings.Ranges, which has KeOps's ranges_i, slices_i and "
                          "redranges_j as rows, slices and columns")
    return ranges._made
