# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the modules share: batches of matrices, and numbers for each of a batch."""

from .._arrays import as_array, empty, namespace, type_code
from .._errors import InvalidArgument


def matrices(array, name):
    """An array of shape (L, rows, columns) of one of two or three dimensions."""
    array = as_array(array, name)
    if len(array.shape) not in (2, 3):
        raise InvalidArgument(f"{name} has the shape {tuple(array.shape)}, expected two dimensions, or three with a batch")
    return array if len(array.shape) == 3 else array.reshape(1, *array.shape)


def numbers(value, name):
    """A number; or of several, one for each matrix of a batch, an array of shape (L,)."""
    shape = getattr(value, "shape", ())
    if len(shape) == 0:
        return float(value)
    if len(shape) != 1:
        raise InvalidArgument(f"{name} has the shape {tuple(shape)}, expected a number, or one for each matrix of a batch")
    return float(value[0]) if shape[0] == 1 else value


def of_matrices(value):
    """The same as a parameter of an epilogue."""
    return value if isinstance(value, float) else value.reshape(-1, 1, 1)


def batch_of(values):
    """The batch of several arrays and numbers, by name."""
    batch = 1
    for name, value in values.items():
        own = 1 if value is None or isinstance(value, float) else value.shape[0]
        if own not in (1, batch):
            if batch != 1:
                raise InvalidArgument(f"{name} has {own} batches, expected 1 or {batch}")
            batch = own
    return batch


def spread(array, batch, others=1):
    """The same matrix for each of a batch, where the array, and the `others`, are fewer."""
    return array if max(array.shape[0], others) == batch else namespace(array).broadcast_to(array, (batch, *array.shape[1:]))


def batch_of_out(out, dimensions):
    """What `out` says of the batch: nothing if it has none in front of its `dimensions`."""
    return out if out is not None and len(out.shape) == dimensions + 1 else None


def result(out, like, shape):
    """(what the caller gets, the array of `shape` that it is a view of): new of `like`'s library and type, or `out`, with or without a batch of
    1."""
    if out is None:
        new = empty(like, shape, type_code(like.dtype, "a"), False)
        return new, new
    if tuple(out.shape) == tuple(shape):
        return out, out
    if shape[0] != 1 or tuple(out.shape) != tuple(shape[1:]):
        raise InvalidArgument(f"out has the shape {tuple(out.shape)}, expected {tuple(shape)}")
    return out, out[None]
