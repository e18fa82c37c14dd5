#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fits the numbers of backends/cuda/fitted/<architecture>.hpp to measured times of forced kernels, and writes that header.

    fit.py --variables OUT                           the header with variables for constants, and a table of them (RIGEL_FIT)
    fit.py FILE... --held-out FILE... [--write]      fits to the first files, prints the quality of choices on both, writes the header

Files are what `bench_walk --forced --json FILE` or `bench_choice --json FILE` of a build with -DRIGEL_FIT=ON write: for each problem and
kernel the measured seconds, the predicted `cost`, and its `parts`: by how much the cost changes, in seconds, if a constant becomes
twice what it is, taken from a small change of it. With c·exp(x) in place of each constant c, a cost is then about cost + sum(part·x). The
fit is the x with the least

    sum over rows  w·huber((cost + sum(part·x) − seconds) / (0.1·seconds))  +  sum over constants  (x / 0.2)²

where w, the seconds of the problem's fastest kernel over the row's, counts kernels less that nobody would choose. A constant that no row
has a part of keeps its text, so the header is the same, byte for byte, for the same files. Build and measure again after a large step: only
then are costs those of the new constants.
"""

import argparse
import json
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = ROOT / "backends/cuda/fitted/sm_90.hpp"
ERROR, CHANGE, MOST = 0.1, 0.2, 1.0  # a cost's expected error; a constant's expected change, and the largest, as logarithms


# ---- the header ----------------------------------------------------------------------------------------------------------


class Constant:
    """A number of the header: its qualified name, the type of what it is part of, and where its text stands. In a struct it has its place,
    or its name, after a point."""

    def __init__(self, name, kind, text, begin):
        self.name, self.kind, self.text, self.begin = name, kind, text, begin
        over, _, under = text.partition(" / ")
        self.value = float(over) / float(under or 1)


NUMBER = re.compile(r"[0-9][0-9.]*(?:e[+-]?[0-9]+)?(?: / [0-9][0-9.]*)?")
TOKEN = re.compile(
    r"(?P<comment>//[^\n]*)|(?P<open>namespace (?P<space>[\w:]+) \{)|(?P<struct>struct \w+ \{[^}]*\};)"
    r"|(?P<constants>inline constexpr [\w:]+ )|(?P<close>\})"
)
NAME = re.compile(r"\s*(\w+)\s*=\s*")


def constants_of(text):
    """The constants of a header, in its order."""
    found, spaces, at = [], [], 0
    while match := TOKEN.search(text, at):
        at = match.end()
        if match["open"]:
            spaces.append(match["space"])
        elif match["close"]:
            spaces.pop()
        elif match["constants"]:
            at = _definitions(text, at, "::".join(spaces[1:]), match["constants"].split()[-1], found)
    if spaces:
        raise ValueError("a namespace has no end")
    return found


def _definitions(text, at, space, kind, found):
    """Reads `name = value, name = value;` and returns where it ends."""
    while True:
        name = NAME.match(text, at)
        if not name:
            raise ValueError(f"no constant is defined at {text[at:at + 40]!r}")
        at = _value(text, name.end(), f"{space}::{name[1]}", kind, found)
        while text[at] in " \n":
            at += 1
        if text[at] == ";":
            return at + 1
        if text[at] != ",":
            raise ValueError(f"expected ',' or ';', got {text[at:at + 40]!r}")
        at += 1


def _value(text, at, name, kind, found):
    """Reads a number, or members in braces, by place or by name."""
    if text[at] != "{":
        number = NUMBER.match(text, at)
        if not number:
            raise ValueError(f"{name}: {text[at:at + 40]!r} is no number")
        found.append(Constant(name, kind, number[0], at))
        return number.end()
    at, place = at + 1, 0
    while True:
        while text[at] in " \n,":
            at += 1
        if text[at] == "}":
            return at + 1
        member = re.match(r"\.(\w+) = ", text[at:])
        at = _value(text, at + member.end() if member else at, f"{name}.{member[1] if member else place}", kind, found)
        place += 1


def written(value):
    """A number as the header has it: twelve digits."""
    return f"{value:.12g}"


def with_values(text, values):
    """The header with other values, by name. A constant whose value stays keeps its text."""
    parts, end = [], 0
    for c in constants_of(text):
        value = values.get(c.name, c.value)
        parts += [text[end : c.begin], c.text if written(value) == written(c.value) else written(value)]
        end = c.begin + len(c.text)
    return "".join(parts) + text[end:]


def members_of(text):
    """Names of the members of the header's structs."""
    structs = {}
    for name, body in re.findall(r"struct (\w+) \{([^}]*)\};", text):
        members = []
        for kind, names in re.findall(r"(\w+) ([^;]+);", re.sub(r"//[^\n]*", "", body)):
            members += [(re.match(r"\w+", one.strip())[0], kind) for one in names.split(",")]
        structs[name] = members
    return structs


def variables(text):
    """The header with variables in place of constants, and fitted_constants(), which lists them by name."""
    structs = members_of(text)
    rows = []
    for c in constants_of(text):
        name, *places = c.name.split(".")
        kind, path = c.kind.split("::")[-1], name
        for place in places:
            member, inner = structs[kind][int(place)] if place.isdigit() else next(m for m in structs[kind] if m[0] == place)
            path, kind = f"{path}.{member}", inner
        rows.append(f'      {{"{c.name}", &{path}}},\n')
    close = text.rindex("}  // namespace rigel::backends::cuda::fitted::sm_90")
    table = (
        "/// All of them, by the names that bench/fit.py has for them.\nstruct Variable {\n  const char* name;\n  double* value;\n};\n"
        "inline const auto& fitted_constants() {\n  static const Variable all[] = {\n" + "".join(rows) + "  };\n  return all;\n}\n\n"
    )
    return text[:close].replace("inline constexpr", "inline") + table + text[close:]


# ---- measurements --------------------------------------------------------------------------------------------------------


class Row:
    def __init__(self, row):
        self.kernel, self.cost, self.seconds, self.parts = row["kernel"], row["cost"], row["seconds"], row["parts"]

    def predicted(self, x):
        return self.cost + sum(part * x.get(name, 0.0) for name, part in self.parts.items())


def problems_in(paths):
    """Timed rows, by problem; problems with one row tell nothing about choices, but about costs."""
    problems = []
    for path in paths:
        by_index = {}
        for row in json.loads(pathlib.Path(path).read_text())["rows"]:
            if row.get("parts") is None:
                raise ValueError(f"{path} has no parts: expected the output of a build with -DRIGEL_FIT=ON")
            if row["seconds"] and not row["error"]:
                by_index.setdefault(row["index"], []).append(Row(row))
        problems += by_index.values()
    return problems


# ---- the fit -------------------------------------------------------------------------------------------------------------


def solved(matrix, right):
    """The solution of a symmetric positive definite system, by Cholesky."""
    n = len(right)
    lower = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            rest = matrix[i][j] - sum(a * b for a, b in zip(lower[i][:j], lower[j][:j]))
            lower[i][j] = math.sqrt(rest) if i == j else rest / lower[j][j]
    y = []
    for i in range(n):
        y.append((right[i] - sum(a * b for a, b in zip(lower[i], y))) / lower[i][i])
    x = [0.0] * n
    for i in reversed(range(n)):
        x[i] = (y[i] - sum(lower[k][i] * x[k] for k in range(i + 1, n))) / lower[i][i]
    return x


def fitted(problems, rounds=20):
    """The logarithms of the factors by which constants change."""
    names = sorted({name for rows in problems for row in rows for name in row.parts})
    place = {name: i for i, name in enumerate(names)}
    x = dict.fromkeys(names, 0.0)
    for _ in range(rounds):
        matrix = [[0.0] * len(names) for _ in names]
        right = [0.0] * len(names)
        for i in range(len(names)):
            matrix[i][i] = 1 / CHANGE**2
        for rows in problems:
            best = min(row.seconds for row in rows)
            for row in rows:
                scale = ERROR * row.seconds
                residual = (row.predicted(x) - row.seconds) / scale
                weight = best / row.seconds / max(1.0, abs(residual))  # Huber's
                terms = [(place[name], part / scale) for name, part in row.parts.items()]
                error = (row.seconds - row.cost) / scale
                for i, a in terms:
                    right[i] += weight * a * error
                    for j, b in terms:
                        matrix[i][j] += weight * a * b
        new = solved(matrix, right)
        step = max((abs(value - x[name]) for name, value in zip(names, new)), default=0)
        x = {name: max(-MOST, min(MOST, value)) for name, value in zip(names, new)}
        if step < 1e-6:
            break
    return x


# ---- quality -------------------------------------------------------------------------------------------------------------


def losses(problems, x):
    """For each problem the seconds of the kernel with the least predicted time over those of the fastest."""
    return [min(rows, key=lambda row: row.predicted(x)).seconds / min(row.seconds for row in rows) for rows in problems]


def quality(problems, x):
    """Quality in words."""
    if not problems:
        return "no problems"
    loss = sorted(losses(problems, x))
    errors = sorted(abs(math.log(max(row.predicted(x), 1e-12) / row.seconds)) for rows in problems for row in rows)
    at = lambda values, share: values[min(int(share * len(values)), len(values) - 1)]
    near = sum(one <= 1.2 for one in loss) / len(loss)
    return (
        f"within 1.2 x of the best {100 * near:5.1f} %, loss {at(loss, 0.5):.3f} (50 %) {at(loss, 0.9):.3f} (90 %) {at(loss, 0.99):.3f} (99 %), "
        f"predicted within {100 * math.expm1(at(errors, 0.5)):.1f} % (50 %) {100 * math.expm1(at(errors, 0.9)):.1f} % (90 %)"
    )


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--held-out", nargs="+", default=[], help="files of other seeds, which the fit does not see")
    parser.add_argument("--header", type=pathlib.Path, default=HEADER)
    parser.add_argument("--write", action="store_true", help="writes the header, else only prints")
    parser.add_argument("--variables", type=pathlib.Path, help="writes the header with variables to this file, and fits nothing")
    options = parser.parse_args(arguments)
    text = options.header.read_text()
    if options.variables:
        options.variables.parent.mkdir(parents=True, exist_ok=True)
        options.variables.write_text(variables(text))
        return 0
    if not options.files or not options.held_out:
        parser.error("expected files to fit, and others after --held-out")
    problems, others = problems_in(options.files), problems_in(options.held_out)
    x = fitted(problems)
    constants = {c.name: c for c in constants_of(text)}
    unknown = sorted(set(x) - set(constants))
    if unknown:
        raise ValueError(f"{options.header} has no constant {unknown[0]}")
    for name, change in sorted(x.items(), key=lambda item: -abs(item[1])):
        old = constants[name].value
        print(f"{name:60s} {written(old):>16s} -> {written(old * math.exp(change)):>16s}  x {math.exp(change):.3f}")
    for what, some in (("fitted", problems), ("held out", others)):
        print(f"{what}, {len(some)} problems:\n  before  {quality(some, {})}\n  after   {quality(some, x)}")
    if options.write:
        options.header.write_text(with_values(text, {name: constants[name].value * math.exp(c) for name, c in x.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
