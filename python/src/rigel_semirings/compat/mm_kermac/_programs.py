# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of instructions: run once on symbols, they are expressions, which become the texts of a semiring, or numbers."""

import math

from ..._errors import InvalidArgument, Unsupported
from ..._semiring import Symbol, operands_first, text_of
from .stack_ptx_types import Instruction, PtxInstruction, SpecialRegister, Stack, refuse_special

_STORED = 16  # places of store()


class Expression:
    """A register, a constant, or an instruction with its operands. Equal ones of a program are one object."""

    __slots__ = ("does", "inputs", "value")

    def __init__(self, does, inputs=(), value=None):
        self.does, self.inputs, self.value = does, inputs, value


def register(name):
    """What lambdas get for an operand or a hyperparameter."""
    return Expression("register", (), name)


class _Machine:
    """The stacks while a program runs. An instruction without its operands is skipped, as in mm-kermac."""

    def __init__(self):
        self._known = {}
        self._stored = {}
        self._depths = []
        self.stacks = {stack: [] for stack in Stack}

    def _expression(self, does, inputs=(), value=None):
        return self._known.setdefault((does, tuple(map(id, inputs)), repr(value)), Expression(does, inputs, value))

    def step(self, one):
        if isinstance(one, Expression) and one.does == "register":
            self.stacks[Stack.f32].append(one)
        elif isinstance(one, PtxInstruction):
            self._compute(one)
        elif isinstance(one, Instruction):
            self._order(one)
        elif isinstance(one, SpecialRegister):
            refuse_special(one)
        else:
            raise Unsupported(f"a program has {one!r} among its instructions, expected a register that the function gets, one of PtxInstruction, "
                              "or of Stack")

    def _compute(self, one):
        if any(len(self.stacks[stack]) < one.args.count(stack) for stack in one.args):
            return
        inputs = tuple(self.stacks[stack].pop() for stack in one.args)
        self.stacks[one.rets[0]].append(self._expression(one, inputs))

    def _order(self, one):
        does, value = one.does, one.value
        if does in ("store", "load") and not 0 <= value < _STORED:
            raise InvalidArgument(f"a program has {does}({value}), expected a number of 0 to {_STORED - 1}")
        if does == "meta_constant":
            self._depths.append(value)
        elif does == "load":
            if value in self._stored:
                stack, kept = self._stored[value]
                self.stacks[stack].append(kept)
        elif does == "constant":
            self.stacks[one.stack].append(self._expression("constant", (), float(value) if one.stack is Stack.f32 else int(value)))
        elif does == "store":
            if self.stacks[one.stack]:
                self._stored[value] = one.stack, self.stacks[one.stack].pop()
        else:
            self._turn(does, self.stacks[one.stack])

    def _turn(self, does, stack):
        depth = 0
        if does in ("yank_dup", "swap_with", "replace", "drop"):
            if not self._depths:
                return
            depth = self._depths.pop()
        if len(stack) <= {"swap": 1, "rotate": 2}.get(does, depth):
            return
        if does in ("dup", "yank_dup"):
            stack.append(stack[-1 - depth])
        elif does in ("swap", "swap_with"):
            other = -2 if does == "swap" else -1 - depth
            stack[-1], stack[other] = stack[other], stack[-1]
        elif does == "replace":
            stack[-1 - depth] = stack[-1]
            stack.pop()
        elif does == "drop":
            del stack[len(stack) - depth:]
        elif does == "rotate":
            stack.insert(-2, stack.pop())
        else:
            stack.reverse()


def result_of(name, function, arguments, limit):
    """The expression that a function's program leaves on top of the stack f32. Instructions beyond the limit do not run."""
    program = function(*arguments)
    try:
        program = list(program)
    except TypeError:
        raise Unsupported(f"{name} returns {program!r}, expected a list of instructions") from None
    machine = _Machine()
    for one in program[:limit]:
        machine.step(one)
    if not machine.stacks[Stack.f32]:
        raise InvalidArgument(f"the program of {name} leaves nothing on the stack f32, expected its result")
    return machine.stacks[Stack.f32][-1]


def _ordered(root):
    """The expression and all in it, operands first."""
    return operands_first(root, lambda one: one.inputs)


def _symbols(root, names):
    """What texts are made of, by the names of registers and of expressions that have one."""
    symbols = {}
    for one in _ordered(root):
        if one in names:
            symbols[one] = Symbol(names[one])
        elif one.does == "register":
            symbols[one] = Symbol(one.value)
        elif one.does == "constant":
            symbols[one] = _constant(one.value)
        else:
            symbols[one] = Symbol(one.does.meaning, tuple(symbols[each] for each in one.inputs), one.does.rets[0] is Stack.pred)
    return symbols[root]


def _constant(value):
    if math.isnan(value):
        raise InvalidArgument("a program has the constant NaN, which texts have not")
    text = "infinity" if math.isinf(value) else repr(abs(value))
    return Symbol(f"(-{text})" if math.copysign(1, value) < 0 else text)


def _text(root, names, hypers):
    return text_of(_symbols(root, names), {"a", "b", "c", "d", "v", "x", "y", *hypers})


def texts_of(name, step, operands, accumulator, epilogue, of_epilogue, hypers):
    """The texts of the semiring whose step and result are two expressions.

    The step is x ⊕ y, where y is the one part that reads operands and not the accumulator x.
    """
    reads_operands, reads_accumulator = set(), set()
    for one in _ordered(step):
        for reading, registers in ((reads_operands, operands), (reads_accumulator, (accumulator,))):
            if one in registers or any(each in reading for each in one.inputs):
                reading.add(one)
    if step not in reads_accumulator:
        raise InvalidArgument(f"the program of {name} does not read what was summed before, expected ⊕ of it and a product")
    products = list(dict.fromkeys(one for each in _ordered(step) if each in reads_accumulator for one in each.inputs
                                  if one in reads_operands and one not in reads_accumulator))
    fused = _fused_product(step, accumulator, products)
    if fused is None and len(products) != 1:
        raise Unsupported(f"the program of {name} has {len(products)} parts that read operands and meet in what was summed before, expected "
                          "one: x ⊕ (a ⊗ b)")
    product = fused or products[0]
    add = Expression(PtxInstruction.add_ftz_f32, (accumulator, product)) if fused else step
    names = dict(zip(operands, "ab"))
    return {"multiply": _text(product, names, hypers), "add": _text(add, {accumulator: "x", product: "y"}, hypers), "identity": "0",
            "step": _text(step, {**names, accumulator: "x"}, hypers) if fused else "",
            "result": "" if epilogue is of_epilogue else _text(epilogue, {of_epilogue: "x"}, hypers)}


def texts_of_gradient(multiply, accumulate, epilogue, names, of_epilogue, hypers):
    """The texts of the derivative whose members are these expressions. `names`: registers, by what texts call them."""
    return {"multiply": _text(multiply, names, hypers), "accumulate": _text(accumulate, names, hypers), "identity": "0",
            "result": "" if epilogue is of_epilogue else _text(epilogue, names, hypers)}


def _fused_product(step, accumulator, products):
    """Of fma(p, q, x) the product p·q, else None."""
    if step.does is not PtxInstruction.fma_rn_ftz_f32 or step.inputs[2] is not accumulator or accumulator in step.inputs[:2]:
        return None
    p, q = step.inputs[:2]
    return Expression(PtxInstruction.mul_ftz_f32, (p, q)) if products and {*products} <= {p, q} else None
