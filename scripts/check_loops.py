#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fails unless the innermost loops of the host kernels for AArch64 keep their accumulators in registers.

usage: check_loops.py OBJDUMP LEVEL=FOLDER...

The objects in each FOLDER are compiled for the AArch64 level LEVEL (neon, sve256, sve512); OBJDUMP is LLVM's. Each
Microkernel::run for whole blocks has one innermost loop, that over k. The loop must not store anything nor address the stack, because a spilled
accumulator does. It must hold at least as many vector instructions of each kind as a block has accumulators: those of FLOATS for
floating-point numbers, one kind for the others.

Left out: GroupedMicrokernel (lp and log_plus), whose ⊗ takes more values than there are registers; accumulators that are structs
(bit_jaccard) or 16-bit floats, which are computed one by one; and the products of 64-bit integers at level neon, which has no
such instruction and still may not spill.
Exit status: 0, all loops are right; 1, one is not; 2, there is nothing to check.
"""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ACCUMULATORS = 24  # vectors: rows × vectors of microkernel.hpp, for 32 registers
FLOATS = {
    "plus_times": ["fmla"], "min_plus": ["fadd", "fmin"], "max_plus": ["fadd", "fmax"], "max_min": ["fmin", "fmax"],
    "min_max": ["fmax", "fmin"], "max_times": ["fmul", "fmax"], "min_times": ["fmul", "fmin"], "l1": ["fabd", "fadd"],
    "l2_squared": ["fsub", "fmla"], "linf": ["fabd", "fmax"], "hamming": ["fadd"],
}
PRODUCTS = ["plus_times", "max_times", "min_times", "l2_squared"]

FUNCTION = re.compile(r"^[0-9a-f]+ <.*host::Microkernel<rigel::backends::host::(\w+), rigel::(\w+)<([^<>]*)>\s*>::run<12, \w+>")
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+([a-z][\w.]*)\s*(.*)$")
TARGET = re.compile(r"0x([0-9a-f]+) <")
VECTOR = re.compile(r"\b[vz]\d+\.")


def functions(text):
    """(level, semiring, types, instructions) of each microkernel in a listing; an instruction is (address, name, operands)."""
    for block in text.split("\n\n"):
        if match := FUNCTION.match(block.lstrip().split("\n", 1)[0]):
            code = [(int(m[1], 16), m[2], m[3]) for line in block.splitlines() if (m := INSTRUCTION.match(line))]
            yield match[1], match[2], match[3].replace("rigel::", "").split(", "), code


def innermost(code):
    """The instructions of each loop that holds no other."""
    loops = [(int(m[1], 16), at) for at, name, operands in code
             if re.match(r"(b|cb|tb)", name) and (m := TARGET.search(operands)) and int(m[1], 16) <= at]
    return [[i for i in code if begin <= i[0] <= end] for begin, end in loops
            if not any(begin <= b and e <= end and (b, e) != (begin, end) for b, e in loops)]


def wrong(level, semiring, types, code):
    """What is wrong with a microkernel, as texts."""
    loops = innermost(code)
    if len(loops) != 1:
        return [f"{len(loops)} innermost loops"]
    texts = []
    if stores := sum(name.startswith("st") for _, name, _ in loops[0]):
        texts.append(f"{stores} stores in the loop")
    if stack := sum(bool(re.search(r"\bsp\b", operands)) for _, _, operands in loops[0]):
        texts.append(f"{stack} uses of the stack in the loop")
    found = Counter(name for _, name, operands in loops[0] if VECTOR.search(operands))
    if types[-1] in ("float", "double"):
        texts += [f"{found[kind]} vector {kind}" for kind in FLOATS[semiring] if found[kind] < ACCUMULATORS]
    elif not (level == "neon" and semiring in PRODUCTS and types[-1] == "long") and max(found.values(), default=0) < ACCUMULATORS:
        texts.append("no vector instruction for each accumulator")
    return texts


def main(objdump, folders):
    bad = checked = 0
    for level, folder in (entry.split("=", 1) for entry in folders):
        seen = set()
        for path in sorted(Path(folder).rglob("*.o")):
            text = subprocess.run([objdump, "-d", "-C", "--no-show-raw-insn", path], capture_output=True, text=True, check=True).stdout
            for of, semiring, types, code in functions(text):
                if of != level or semiring == "bit_jaccard" or types[-1] in ("half", "bfloat16"):
                    continue
                checked += 1
                seen.add(semiring)
                if texts := wrong(level, semiring, types, code):
                    bad += 1
                    print(f"{level}, {semiring}<{', '.join(types)}>: {'; '.join(texts)}")
        if missing := sorted(set(FLOATS) - seen):
            print(f"check_loops: no microkernel of {', '.join(missing)} is in {folder}", file=sys.stderr)
            return 2
    print(f"check_loops: {checked} loops, {bad} of them not in vector registers")
    return 1 if bad else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__.strip())
    sys.exit(main(sys.argv[1], sys.argv[2:]))
