# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mm-kermac's instructions, of which programs for HyperSemiringKernel and HyperSemiringGradientKernel are lists.

A program works on a stack for each type. Registers and constants are pushed; an instruction takes its operands from the top, the first one
first, and pushes its result: ``[a, b, PtxInstruction.sub_ftz_f32]`` is b − a. What the program is for is on top of the stack f32 at its end.

Instructions are not assembled: their meaning becomes a semiring's text, which Rigel compiles for the host and for GPUs. So numbers below the
normal ones stay what they are (``ftz``), ``min`` and ``max`` are NaN of NaN, and functions called ``approx`` are a GPU's own of float32 where
texts have them (square roots, log2, exp2), else the usual ones.
"""

from enum import Enum
from typing import NamedTuple

from ..._errors import Unsupported

__all__ = ["PtxInstruction", "SpecialRegister", "Stack"]


class Instruction(NamedTuple):
    """What a program does but PTX: pushes a constant, changes the order of a stack, stores and loads."""

    does: str
    stack: object = None
    value: object = None


class Stack(Enum):
    """The stacks, one for each type."""

    f32 = "f32"
    s32 = "s32"
    u32 = "u32"
    pred = "pred"

    def constant(self, v):
        """Pushes a number."""
        if self is Stack.pred:
            raise ValueError("constants are of f32, s32 and u32")
        return Instruction("constant", self, v)

    def store(self, idx):
        """Takes the top and keeps it by a number below 16."""
        return Instruction("store", self, int(idx))

    @classmethod
    def load(cls, idx):
        """Pushes what was stored by this number; nothing if nothing was."""
        return Instruction("load", None, int(idx))

    @classmethod
    def meta_constant(cls, v):
        """A depth or a number of entries for yank_dup, swap_with, replace and drop."""
        return Instruction("meta_constant", None, int(v))


def _order(does, what):
    return property(lambda self: Instruction(does, self), doc=what)


for _name, _what in {"dup": "Pushes the top once more.", "yank_dup": "Pushes what lies `meta_constant` below the top.",
                     "swap": "Exchanges the top with what lies below it.", "swap_with": "Exchanges the top with what lies `meta_constant` below.",
                     "replace": "Takes the top and puts it in place of what lies `meta_constant` below.",
                     "drop": "Takes `meta_constant` entries away, if more than these are there.",
                     "rotate": "Puts the top below the two that follow.", "reverse": "Turns the stack over."}.items():
    setattr(Stack, _name, _order(_name, _what))


class PtxInstruction(Enum):
    """Instructions of PTX: the types of operands, first the one on top, that of the result, and the meaning as text over the operands."""

    copysign_f32 = ("copysign.f32", "ff", "f", "copysign({1}, {0})")
    add_ftz_f32 = ("add.ftz.f32", "ff", "f", "({0} + {1})")
    sub_ftz_f32 = ("sub.ftz.f32", "ff", "f", "({0} - {1})")
    mul_ftz_f32 = ("mul.ftz.f32", "ff", "f", "({0} * {1})")
    fma_rn_ftz_f32 = ("fma.rn.ftz.f32", "fff", "f", "fma({0}, {1}, {2})")
    div_approx_ftz_f32 = ("div.approx.ftz.f32", "ff", "f", "({0} / {1})")
    abs_ftz_f32 = ("abs.ftz.f32", "f", "f", "abs({0})")
    neg_ftz_f32 = ("neg.ftz.f32", "f", "f", "(-{0})")
    min_ftz_f32 = ("min.ftz.f32", "ff", "f", "min({0}, {1})")
    max_ftz_f32 = ("max.ftz.f32", "ff", "f", "max({0}, {1})")
    rcp_approx_ftz_f32 = ("rcp.approx.ftz.f32", "f", "f", "(1 / {0})")
    sqrt_approx_ftz_f32 = ("sqrt.approx.ftz.f32", "f", "f", "fast::sqrt({0})")
    rsqrt_approx_ftz_f32 = ("rsqrt.approx.ftz.f32", "f", "f", "fast::rsqrt({0})")
    sin_approx_ftz_f32 = ("sin.approx.ftz.f32", "f", "f", "sin({0})")
    cos_approx_ftz_f32 = ("cos.approx.ftz.f32", "f", "f", "cos({0})")
    lg2_approx_ftz_f32 = ("lg2.approx.ftz.f32", "f", "f", "fast::log2({0})")
    ex2_approx_ftz_f32 = ("ex2.approx.ftz.f32", "f", "f", "fast::exp2({0})")
    tanh_approx_f32 = ("tanh.approx.f32", "f", "f", "tanh({0})")
    setp_lt_ftz_f32 = ("setp.lt.ftz.f32", "ff", "p", "({0} < {1})")
    setp_gt_ftz_f32 = ("setp.gt.ftz.f32", "ff", "p", "({0} > {1})")
    selp_f32 = ("selp.f32", "ffp", "f", "({2} ? {0} : {1})")

    def __init__(self, ptx_str, takes, gives, meaning):
        stacks = {"f": Stack.f32, "p": Stack.pred}
        self.ptx_str = ptx_str
        self.args = [stacks[one] for one in takes]
        self.rets = [stacks[one] for one in gives]
        self.meaning = meaning

    def __str__(self):
        return self.ptx_str


class SpecialRegister(Enum):
    """Registers of a GPU's thread, which no text reads: a program that has one is refused."""

    clock = "clock"
    tid_x = "tid.x"


def refuse_special(one):
    raise Unsupported(f"a program reads the special register {one.value}, which texts of semirings have not")
