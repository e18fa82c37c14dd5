#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fails if a function in C++ files is longer than LINES, from the first line of its declaration to its last brace.

usage: check_functions.py LINES FILE...

Braces are counted; comments, literals and preprocessor lines are left out. A lambda is part of the function that holds it.
Exit status: 0, all are short enough; 1, one is not; 2, the braces of a file do not match, or there is nothing to check.
"""

import re
import sys

LEFT_OUT = re.compile(r"""//[^\n]* | /\*.*?\*/ | R"(\w*)\(.*?\)\1" | "(?:\\.|[^"\\\n])*" | (?<!\w)'(?:\\[^\n']+|[^'\\\n])'
                          | =[ ]\{\} | ^[ ]*\#(?:[^\n]*\\\n)*[^\n]*""", re.DOTALL | re.MULTILINE | re.VERBOSE)
HOLDS_FUNCTIONS = re.compile(r"(?:^|[>)\]] ?|typedef )(?:inline )?(?:namespace|struct|class|union|enum|extern)\b")


def is_function(head):
    """Whether what precedes a brace, outside of functions, declares one: it has parameters, and gives nothing a value."""
    return ")" in head and head.count("(") == head.count(")") and not head.endswith("=") and not HOLDS_FUNCTIONS.search(head)


def functions(text):
    """(first line, length, declaration) of each function; None if braces do not match."""
    text = LEFT_OUT.sub(lambda m: " " + "\n" * m[0].count("\n"), text)
    blocks = []  # for each open brace the function that it begins, or None
    begin, last = 0, None
    for mark in re.finditer(r"[{};]", text):
        if mark[0] == "{":
            head = " ".join(text[begin:mark.start()].split())
            line = text.count("\n", 0, mark.start() - len(text[begin:mark.start()].lstrip())) + 1
            found = (line, head) if is_function(head) else last if head[:1] in ("", ",") else None  # a member's initializer comes before
            blocks.append(None if any(blocks) else found)
        elif mark[0] == "}":
            if not blocks:
                yield None
                return
            last = blocks.pop()
            if last:
                yield last[0], text.count("\n", 0, mark.start()) + 2 - last[0], last[1]
        else:
            last = None
        begin = mark.end()
    if blocks:
        yield None


def main():
    most, files = int(sys.argv[1]), sys.argv[2:]
    status = 0 if files else 2
    for file in files:
        with open(file, encoding="utf-8") as opened:
            for found in functions(opened.read()):
                if found is None:
                    print(f"{file}: braces do not match")
                    status = 2
                elif found[1] > most:
                    print(f"{file}:{found[0]}: a function of {found[1]} lines, expected at most {most}: {found[2][-60:]}")
                    status = max(status, 1)
    return status


sys.exit(main())
