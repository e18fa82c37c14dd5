#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds README.md and docs/tutorial.md to the programs in examples/tutorial. A page shows a program in the block after the comment
<!-- program: first -->, which is first.cpp but for its line with the licence; and what it prints in the block after <!-- output: first -->.
The latter may be followed by a comma and words: what the program prints elsewhere. In what is printed, … stands for any text of a line, and
as a line of its own for any lines: times, and the names of instruction sets.

    programs.py                         fails if a page shows another program than examples/tutorial has, or one of these is on no page;
                                        also if README.md is too long, or a link of a page leads nowhere
    programs.py --run <name> <word>…    runs the program by this command, and fails if it prints what no page shows; exits with 77 if
                                        the program says that it is skipped
    programs.py --write <folder>        writes the programs into the pages, and what those in <folder> (tutorial_first, …) print where
                                        that differs from what the page shows
"""
import difflib
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ROOT / "examples" / "tutorial"
PAGES = ("README.md", "docs/tutorial.md")
LONGEST_README = 150
BLOCK = re.compile(r"<!-- (program|output): (\w+)(, [^>]*)? -->\n```\w*\n(.*?)```\n", re.S)


def source(name):
    """A program as a page shows it."""
    return (SOURCES / f"{name}.cpp").read_text(encoding="utf-8").split("\n", 1)[1]


def blocks(kind):
    """(page, name, text) of all blocks of a kind."""
    for page in PAGES:
        for match in BLOCK.finditer((ROOT / page).read_text(encoding="utf-8")):
            if match[1] == kind:
                yield page, match[2], match[4]


def agrees(shown, printed):
    pattern = "".join(r"(.*\n)*" if line == "…\n" else ".*".join(map(re.escape, line.split("…")))
                      for line in shown.splitlines(keepends=True))
    return re.fullmatch(pattern, printed) is not None


def difference(shown, actual, page, what):
    return "".join(difflib.unified_diff(shown.splitlines(keepends=True), actual.splitlines(keepends=True), page, what))


def anchors(page):
    """What GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def broken_links():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/*.md"), *ROOT.glob("src/*.md"),
                 *ROOT.glob("backends/**/*.md")]:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            if not link.startswith("http") and (not target.exists() or (anchor and anchor not in anchors(target))):
                yield f"{page.relative_to(ROOT)}: the link {link} leads nowhere"


def check():
    failures = list(broken_links())
    names = {path.stem for path in SOURCES.glob("*.cpp")}
    for kind in "program", "output":
        shown = list(blocks(kind))
        for page, name, text in shown:
            if name not in names:
                failures.append(f"{page}: there is no examples/tutorial/{name}.cpp")
            elif kind == "program" and text != source(name):
                failures.append(difference(text, source(name), page, f"examples/tutorial/{name}.cpp"))
        failures += [f"no page has <!-- {kind}: {name} -->" for name in sorted(names - {name for _, name, _ in shown})]
    length = len((ROOT / "README.md").read_text(encoding="utf-8").splitlines())
    if length > LONGEST_README:
        failures.append(f"README.md has {length} lines, at most {LONGEST_README} are expected: move reference material to docs/")
    for failure in failures:
        print(failure)
    return 1 if failures else 0


def run(name, command):
    result = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=False)
    print(result.stdout, end="")
    if result.returncode != 0:
        print(f"{name} exits with {result.returncode}")
        return 1
    shown = [(page, text) for page, of, text in blocks("output") if of == name]
    if not any(agrees(text, result.stdout) for _, text in shown):
        for page, text in shown:
            print(difference(text, result.stdout, page, "what it prints"))
        print("if it is right, docs/programs.py --write <folder of the programs> mends the page")
        return 1
    return 77 if result.stdout.startswith("skipped: ") else 0


def write(folder):
    printed = {path.stem: subprocess.run([str(folder / f"tutorial_{path.stem}")], stdout=subprocess.PIPE, encoding="utf-8",
                                         check=True).stdout for path in SOURCES.glob("*.cpp")}
    fitting = {name for _, name, text in blocks("output") if name in printed and agrees(text, printed[name])}

    def replaced(match):
        kind, name, text = match[1], match[2], match[4]
        if kind == "program":
            text = source(name)
        elif name not in fitting and not match[3]:
            text = printed[name]
        return match[0].replace(f"\n{match[4]}```\n", f"\n{text}```\n") if text != match[4] else match[0]

    for page in PAGES:
        path = ROOT / page
        old = path.read_text(encoding="utf-8")
        new = BLOCK.sub(replaced, old)
        if new != old:
            path.write_text(new, encoding="utf-8")
            print(f"wrote {page}")
    return 0


def main():
    words = sys.argv[1:]
    if not words:
        return check()
    if words[0] == "--run" and len(words) >= 3:
        return run(words[1], words[2:])
    if words[0] == "--write" and len(words) == 2:
        return write(pathlib.Path(words[1]))
    print(__doc__)
    return 2


if __name__ == "__main__":
    os.environ.setdefault("OMP_PROC_BIND", "false")
    sys.exit(main())
