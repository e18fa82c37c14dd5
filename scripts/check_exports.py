#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fails when code that uses librigel needs a symbol that a shared librigel keeps to itself.

usage: scripts/check_exports.py <nm> <version script> <folder of a user's object files>...

Of the version script (src/exports.map) this reads the patterns of `global` and `local`. Symbols that neither names are exported.
"""

import fnmatch
import re
import subprocess
import sys
from pathlib import Path


def patterns_of(script):
    """The patterns of the symbols that are exported, and of those that are not, each as one regular expression."""
    text = re.sub(r"#.*", "", Path(script).read_text())
    match = re.fullmatch(r"\s*{\s*global:(.*)local:(.*)}\s*;\s*", text, re.DOTALL)
    if not match:
        sys.exit(f"check_exports: {script} is not {{ global: ... local: ... }};")
    return [re.compile("|".join(map(fnmatch.translate, part.replace(";", " ").split()))) for part in match.groups()]


def main():
    nm, script, *folders = sys.argv[1:]
    exported, hidden = patterns_of(script)
    objects = sorted(path for folder in folders for path in Path(folder).rglob("*.o"))
    if not objects:
        sys.exit(f"check_exports: no object files in {', '.join(folders)}")
    needed = set()
    for path in objects:
        listing = subprocess.run([nm, "--undefined-only", path], capture_output=True, text=True, check=True).stdout
        needed.update(line.split()[-1] for line in listing.splitlines())
    missing = sorted(symbol for symbol in needed if hidden.match(symbol) and not exported.match(symbol))
    for symbol in missing:
        print(f"check_exports: not exported: {symbol}")
    called = sum(bool(exported.match(symbol)) for symbol in needed)
    print(f"check_exports: {len(objects)} objects need {len(needed)} symbols, {called} of which {script} names, and {len(missing)} of which it hides")
    sys.exit(bool(missing))


if __name__ == "__main__":
    main()
