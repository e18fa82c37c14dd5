#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fails when a CUDA kernel of Rigel has a stack frame or spills registers, or takes more registers or static shared memory than its
tile allows: a multiprocessor has to hold as many blocks at a time as tile::Shape or mma::Shape says. (Dynamic shared memory is
known when a kernel is compiled: arch::holds() is asserted of it.)

usage: check_spills.py [--budgets FILE] [--any-blocks] FOLDER...

FILE is a table, as JSON, of the registers a thread and the bytes of static shared memory a block that kernels may take, by
tile or, where they have none, by name: a kernel that takes more, or that the table does not know, fails too. With --any-blocks it
does not matter how many blocks a multiprocessor holds: for architectures that no tile was chosen for.

Each FOLDER holds object files of CUDA kernels, each with ptxas's report next to it (<object>.ptxas, written while the object
was compiled; see cmake/keep_ptxas_report). Prints one line for every kernel and architecture: registers, static shared memory,
stack frame and spills, in bytes, and the blocks that a multiprocessor holds and those that the tile asks for. Exit
status: 0, all kernels are clean; 1, one is not; 2, there is nothing to check or an object has no report.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

COMPILING = re.compile(r"Compiling entry function '([^']+)' for '([^']+)'")
PROPERTIES = re.compile(r"Function properties for (\S+)")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")
# tile::Shape<threads m, threads n, outputs m, outputs n, depth, blocks, ahead, role>
SHAPE = re.compile(r"4tile5ShapeILi(\d+)ELi(\d+)ELi(\d+)ELi(\d+)ELi(\d+)ELi(\d+)ELb")
# mma::Shape<warps m, warps n, outputs m, outputs n, stages, blocks>
WARPS = re.compile(r"5ShapeILi(\d+)ELi(\d+)ELi(\d+)ELi(\d+)ELi(\d+)ELi(\d+)EE")  # its namespace may be abbreviated
HOPPER = re.compile(r"8backends6hopper\d+([a-z_]+)I")  # hopper::multiply<…>, hopper::multiply_once<…>

# A multiprocessor has 65,536 registers, which a warp takes in units of 8 a thread, and this much shared memory, of which 1 KB
# goes with every block (CUDA C++ Programming Guide, Compute Capabilities).
REGISTERS_OF_ALL = 65536
SHARED_OF_ALL = {"80": 164, "86": 100, "87": 164, "89": 100, "90": 228, "100": 228, "103": 228, "120": 100}  # KB


@dataclass
class Function:
    name: str
    architecture: str
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    registers: int = 0
    shared: int = 0
    entry: bool = False  # a kernel; else a device function that was not inlined

    def clean(self):
        return self.stack == 0 and self.spill_stores == 0 and self.spill_loads == 0

    def blocks(self):
        """How many blocks a multiprocessor holds, and how many the tile asks for; None where the name has no tile."""
        shape = SHAPE.search(self.name) or WARPS.search(self.name)
        shared = SHARED_OF_ALL.get(self.architecture.removeprefix("sm_").rstrip("af"))
        if not self.entry or shape is None or shared is None:
            return None
        a, b, *_, blocks = map(int, shape.groups())
        warps = a * b // 32 if shape.re is SHAPE else a * b
        by_registers = REGISTERS_OF_ALL // (warps * 32 * ((self.registers + 7) // 8 * 8))
        return min(by_registers, shared * 1024 // (self.shared + 1024)), blocks

    def fits(self):
        blocks = self.blocks()
        return blocks is None or blocks[0] >= blocks[1]

    def kind(self, name):
        """What a table of budgets knows it by: its tile, or its name without namespaces and arguments."""
        if shape := SHAPE.search(self.name):
            return f"Shape<{', '.join(shape.groups())}>"
        if shape := WARPS.search(self.name):
            return f"mma::Shape<{', '.join(shape.groups())}>"
        if hopper := HOPPER.search(self.name):
            return f"hopper::{hopper[1]}"
        return re.sub(r"<.*", "", name, flags=re.S).split("::")[-1]


def parse(text):
    """The functions of one report. ptxas says 'Used …' for the entry function that it named last."""
    functions, entry, current, architecture = [], None, None, "?"
    for line in text.splitlines():
        if match := COMPILING.search(line):
            architecture = match[2]
            entry = Function(match[1], architecture, entry=True)
            functions.append(entry)
        elif match := PROPERTIES.search(line):
            if entry is not None and match[1] == entry.name:
                current = entry
            else:
                current = Function(match[1], architecture)
                functions.append(current)
        elif (match := FRAME.search(line)) and current is not None:
            current.stack, current.spill_stores, current.spill_loads = map(int, match.groups())
        elif (match := REGISTERS.search(line)) and entry is not None:
            entry.registers = int(match[1])
            if match := SHARED.search(line):
                entry.shared = int(match[1])
    return functions


def demangled(names):
    tool = next((t for t in ("llvm-cxxfilt-22", "llvm-cxxfilt", "c++filt") if shutil.which(t)), None)
    if tool is None or not names:
        return {name: name for name in names}
    output = subprocess.run([tool], input="\n".join(names), capture_output=True, text=True, check=True).stdout.splitlines()
    return {name: text.removeprefix("void ").split("(rigel::")[0] for name, text in zip(names, output)}


def over_budget(function, name, budgets):
    """Why, or an empty text."""
    kind = function.kind(name)
    if kind not in budgets:
        return f"no budget for {kind}"
    return ", ".join(f"more {what} than {kind} may take, {most}" for what, most in budgets[kind].items()
                     if getattr(function, what) > most)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--budgets", type=Path)
    parser.add_argument("--any-blocks", action="store_true")
    arguments = parser.parse_args()
    objects = sorted(o for folder in arguments.folders for o in Path(folder).rglob("*.o"))
    missing = [o for o in objects if not Path(f"{o}.ptxas").is_file()]
    functions = [f for o in objects if o not in missing for f in parse(Path(f"{o}.ptxas").read_text())]
    # What wgmma computes is right then, but one after the other.
    serial = [o for o in objects if o not in missing and "serialized" in Path(f"{o}.ptxas").read_text()]
    kernels = [f for f in functions if f.entry]
    bad = [f for f in functions if not f.clean()]
    crowded = [] if arguments.any_blocks else [f for f in kernels if not f.fits()]
    names = demangled(sorted({f.name for f in functions}))
    budgets = json.loads(arguments.budgets.read_text()) if arguments.budgets else {}
    over = {id(f): why for f in kernels if arguments.budgets and (why := over_budget(f, names[f.name], budgets))}

    print(f"{'arch':<8}{'registers':>9}{'smem':>7}{'stack':>7}{'stores':>8}{'loads':>7}{'blocks':>8}  kernel")
    for f in sorted(functions, key=lambda f: (f.clean() and f not in crowded and id(f) not in over, names[f.name], f.architecture)):
        if f.entry or not f.clean():
            mark = "" if f.clean() else "   <-- spills or has a stack frame"
            mark += "" if f not in crowded else "   <-- too few blocks fit into a multiprocessor"
            mark += f"   <-- {over[id(f)]}" if id(f) in over else ""
            blocks = "{}/{}".format(*f.blocks()) if f.entry and f.blocks() else ""
            print(f"{f.architecture:<8}{f.registers:>9}{f.shared:>7}{f.stack:>7}{f.spill_stores:>8}{f.spill_loads:>7}{blocks:>8}  "
                  f"{names[f.name]}{mark}")

    for o in missing:
        print(f"check_spills: {o} has no report beside it: compile it again (delete the object, then build)", file=sys.stderr)
    for o in serial:
        print(f"check_spills: {o}: ptxas says that it serialized wgmma", file=sys.stderr)
    if not kernels:
        print(f"check_spills: no kernel is reported under {' '.join(arguments.folders)}: nothing was checked", file=sys.stderr)
    print(f"check_spills: {len(kernels)} kernels in {len(objects)} objects, {len(bad)} with a stack frame or spills, "
          f"{len(crowded)} of which too few blocks fit into a multiprocessor"
          + (f", {len(over)} beyond their budgets" if arguments.budgets else ""))
    return 2 if missing or not kernels else 1 if bad or crowded or over or serial else 0


if __name__ == "__main__":
    sys.exit(main())
