# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What HyperSemiringKernel and HyperSemiringGradientKernel share: programs and hyperparameters; and the former's semirings."""

from ..._errors import InvalidArgument, Unsupported
from ..._semiring import Semiring
from .._arrays import numbers
from ._programs import register, result_of, texts_of


def checked_hypers(hyper_dict):
    """Hyperparameters by name: each a number, or an array of one for each of a batch."""
    if hyper_dict is None:
        return {}
    if not isinstance(hyper_dict, dict):
        raise Unsupported(f"hyper_dict is {hyper_dict!r}, expected a dict of hyperparameters by name")
    return {name: numbers(value, f"hyper_dict[{name!r}]") for name, value in hyper_dict.items()}


def of_one(hypers, i):
    """Those of the matrix i of a batch."""
    return {name: value if isinstance(value, float) else float(value[i]) for name, value in hypers.items()}


class Programs:
    """The programs of a kernel, and what they became for a number of hyperparameters."""

    def __init__(self, functions, limit):
        for name, function in functions.items():
            if not callable(function):
                raise Unsupported(f"{name} is {function!r}, expected a function that returns a list of instructions")
        self._functions, self._limit = functions, limit
        self._known = {}

    def of(self, names, registers, build):
        """build(results of the programs, registers, hyperparameters' registers), once for each list of names."""
        key = tuple(names)
        if key not in self._known:
            hypers = {name: register(f"hyper{i}") for i, name in enumerate(key)}
            named = {name: register(name) for name in registers}
            self._known[key] = build(named, hypers)
        return self._known[key]

    def result(self, name, arguments, hypers):
        """The expression of one program. Its function gets hyperparameters last, by name."""
        try:
            return result_of(name, self._functions[name], (*arguments, hypers), self._limit)
        except KeyError as error:
            raise InvalidArgument(f"the program of {name} reads the hyperparameter {error}, expected one of hyper_dict: "
                                  f"{', '.join(hypers) or 'it has none'}") from None


def semiring_of(programs, step_name, operands, accumulator, named, hypers, commutative=False):
    """The semiring of the programs of a step and of the epilogue."""
    step = programs.result(step_name, [named[one] for one in (*operands, accumulator)], hypers)
    epilogue = programs.result("epilogue_lambda", [named["e"]], hypers)
    of_hypers = [one.value for one in hypers.values()]
    texts = texts_of(step_name, step, [named[one] for one in operands], named[accumulator], epilogue, named["e"], of_hypers)
    return Semiring(**texts, name="hyper_semiring", commutative=commutative, **dict.fromkeys(of_hypers, 0.0))


def values_of(hypers):
    """Hyperparameters of a call, by the names that texts have for them."""
    return {f"hyper{i}": value for i, value in enumerate(hypers.values())}
