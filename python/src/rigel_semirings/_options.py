# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options that every call has: kernel, require and precision; and numbers and names as arguments."""

from ._arrays import require_no_gradient
from ._errors import InvalidArgument, Unsupported

_PROMISES = {"reference_bits": 1, "repeatable": 2, "batch_invariant": 4}
_PRECISIONS = {"automatic": 0, "rounded": 1, "accumulator": 2, "exact_products": 3, "promoted": 4, "split": 5, "bf16x3": 6, "tf32": 7,
               "operands": 8}


def chosen(value, names, what):
    """What a name stands for."""
    try:
        return names[value]
    except (KeyError, TypeError):
        raise InvalidArgument(f"{what} is {value!r}, expected one of {', '.join(names)}") from None


def number(value, name, expected="a number"):
    """The argument, which is a number, without a gradient that a call would lose."""
    require_no_gradient(value, name)
    try:
        if hasattr(value, "__float__") or hasattr(value, "__index__"):
            float(value)
            return value
    except (TypeError, ValueError, OverflowError):
        pass
    raise Unsupported(f"{name} is {value!r}, expected {expected}")


def whole(value, name):
    """The argument, which is an integer."""
    if not hasattr(value, "__index__"):
        raise Unsupported(f"{name} is {value!r}, expected an integer")
    return value


def flag(value, name):
    """Whether the argument is true."""
    try:
        return bool(value)
    except (TypeError, ValueError):
        raise Unsupported(f"{name} is {value!r}, expected True or False") from None


def text(value, name):
    """The argument, which is a str."""
    if not isinstance(value, str):
        raise Unsupported(f"{name} is {value!r}, expected a str")
    return value


def texts(values, name):
    """A list of a str, or of several."""
    try:
        return [values] if isinstance(values, str) else list(values)
    except TypeError:
        raise Unsupported(f"{name} is {values!r}, expected a str or several") from None


def options(kernel, require, precision):
    """What the extension takes: None for the defaults."""
    if kernel is None and not require and precision == "automatic":
        return None
    promises = 0
    for one in texts(require or (), "require"):
        promises |= chosen(one, _PROMISES, "require")
    return kernel, promises, chosen(precision, _PRECISIONS, "precision")
