#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fails when code for one level of the host kernels could be linked into another.

usage: check_levels.py NM LEVEL=FOLDER... [any=FOLDER]

The objects in each FOLDER are compiled for the level LEVEL (v2, v3, v4; neon, sve256, sve512). Of an inline function or a
template that several levels share, the linker keeps one copy, whichever comes first: an older processor would then meet
instructions that it lacks. So every such symbol (weak, in nm's terms) that holds code must name its level, as in
loop<rigel::backends::host::v3, …>.
The objects in the folder of `any` are compiled for any processor. What they define must not be what a level's objects define: the linker
could keep their copy, which has no wide vectors.
Exit status: 0, none is shared; 1, one is; 2, there is nothing to check.
"""

import subprocess
import sys
from pathlib import Path


def main(nm, folders):
    shared, checked, of_levels, of_any = set(), 0, set(), set()
    for level, folder in (entry.split("=", 1) for entry in folders):
        objects = sorted(Path(folder).rglob("*.o"))
        if not objects:
            print(f"check_levels: no object is in {folder}: nothing was checked", file=sys.stderr)
            return 2
        output = subprocess.run([nm, "-C", "--defined-only", *map(str, objects)], capture_output=True, text=True, check=True).stdout
        for line in output.splitlines():
            words = line.split(" ", 2)
            if len(words) == 3 and words[1] in "Ww" and level == "any":
                of_any.add(words[2])
            elif len(words) == 3 and words[1] in "Ww":
                checked += 1
                of_levels.add(words[2])
                if f"host::{level}" not in words[2]:
                    shared.add(f"{level}: {words[2]}")
    for symbol in sorted(shared):
        print(f"shared between levels, {symbol}")
    copies = {symbol for symbol in of_levels & of_any if "backends::host::" in symbol}
    for symbol in sorted(copies):
        print(f"compiled for any processor, too: {symbol}")
    shared |= copies
    print(f"check_levels: {checked} weak functions, {len(shared)} of them without their level in the name, or compiled for any processor, too")
    return 1 if shared else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__.strip())
    sys.exit(main(sys.argv[1], sys.argv[2:]))
