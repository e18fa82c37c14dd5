#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fails when a CUDA kernel of Rigel has a stack frame or spills registers.

usage: check_spills.py FOLDER...

Each FOLDER holds object files of CUDA kernels, each with ptxas's report beside it (<object>.ptxas, written while the object
was compiled; see cmake/keep_ptxas_report). Prints one line for every kernel and architecture: registers, static shared memory,
stack frame and spills, in bytes. Exit status: 0, all kernels are clean; 1, one is not; 2, there is nothing to check or an
object has no report.
"""

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


def main(folders):
    if not folders:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    objects = sorted(o for folder in folders for o in Path(folder).rglob("*.o"))
    missing = [o for o in objects if not Path(f"{o}.ptxas").is_file()]
    functions = [f for o in objects if o not in missing for f in parse(Path(f"{o}.ptxas").read_text())]
    kernels = [f for f in functions if f.entry]
    bad = [f for f in functions if not f.clean()]

    names = demangled(sorted({f.name for f in functions}))
    print(f"{'arch':<8}{'registers':>9}{'smem':>7}{'stack':>7}{'stores':>8}{'loads':>7}  kernel")
    for f in sorted(functions, key=lambda f: (f.clean(), names[f.name], f.architecture)):
        if f.entry or not f.clean():
            mark = "" if f.clean() else "   <-- spills or has a stack frame"
            print(f"{f.architecture:<8}{f.registers:>9}{f.shared:>7}{f.stack:>7}{f.spill_stores:>8}{f.spill_loads:>7}  {names[f.name]}{mark}")

    for o in missing:
        print(f"check_spills: {o} has no report beside it: compile it again (delete the object, then build)", file=sys.stderr)
    if not kernels:
        print(f"check_spills: no kernel is reported under {' '.join(folders)}: nothing was checked", file=sys.stderr)
    print(f"check_spills: {len(kernels)} kernels in {len(objects)} objects, {len(bad)} with a stack frame or spills")
    return 2 if missing or not kernels else 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
