#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the tables of docs/performance.md from the files under bench/results/. A table stands between the comments
<!-- table: <name> --> and <!-- end -->; all else there is written by hand.

    report.py                           writes them
    report.py --check                   fails where docs/performance.md is not what this would write
    report.py --take <report> <result>  keeps of a report of bench_simt or bench_mma (--benchmark_out) what is to be kept:
                                        medians, and what ran where, but for the machine's names and folders; of one of
                                        bench_choice (--json) the chosen and the fastest kernel of each problem
"""
import argparse
import difflib
import json
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "bench" / "results"

# Of the context of Google Benchmark's reports.
LOCAL = ("host_name", "executable", "num_cpus", "mhz_per_cpu", "cpu_scaling_enabled", "caches", "load_avg",
         "library_build_type")


# ---- results ---------------------------------------------------------------------------------------------------------


class NoResult(Exception):
    pass


def load(name, part):
    """A result file, which has that part."""
    path = RESULTS / name
    if not path.exists():
        raise NoResult(f"Not measured: there is no bench/results/{name}.")
    result = json.loads(path.read_text(encoding="utf-8"))
    if part not in result:
        raise NoResult(f"Not measured: bench/results/{name} comes from an earlier program, whose numbers are not these.")
    return result


def condense(report):
    """A report of Google Benchmark with a line a benchmark: seconds, counters, the coefficient of variation."""
    runs = {}
    for run in report["benchmarks"]:
        runs.setdefault(run["run_name"].removesuffix("/manual_time"), []).append(run)
    benchmarks = []
    for name, group in runs.items():
        errors = [run["error_message"] for run in group if run.get("error_occurred")]
        if errors:
            benchmarks.append({"name": name, "error": errors[0]})
            continue
        of = {run.get("aggregate_name", "one"): run for run in group}
        run = of.get("median", group[0])
        line = {"name": name}
        if "label" in group[0]:
            line["kernel"] = group[0]["label"]
        line["seconds"] = run["real_time"] * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[run["time_unit"]]
        line |= {key: run[key] for key in ("pairs/s", "of ceiling", "of issue limit") if key in run}
        if "cv" in of:
            line["variation"] = of["cv"]["real_time"]
        benchmarks.append({key: float(f"{value:.5g}") if isinstance(value, float) else value for key, value in line.items()})
    context = {key: value for key, value in report["context"].items() if key not in LOCAL}
    return {"context": context, "benchmarks": benchmarks}


def condense_choices(report):
    """A report of bench_choice with a line a problem: the chosen kernel and the fastest one."""
    of_problem = {}
    for row in report["rows"]:
        of_problem.setdefault(row["index"], []).append(row)
    problems = []
    for rows in of_problem.values():
        chosen = next(row for row in rows if row["chosen"])
        best = min((row for row in rows if row["seconds"]), key=lambda row: row["seconds"])
        problems.append({"problem": chosen["problem"], "chosen": chosen["kernel"], "predicted": chosen["predicted"],
                         "seconds": chosen["seconds"], "best": best["kernel"], "best_seconds": best["seconds"]})
    return {"context": report["context"], "problems": problems}


def write_condensed(report, path):
    report = json.loads(pathlib.Path(report).read_text(encoding="utf-8"))
    result, part = (condense_choices(report), "problems") if "rows" in report else (condense(report), "benchmarks")
    lines = ",\n  ".join(json.dumps(line) for line in result[part])
    path.parent.mkdir(parents=True, exist_ok=True)
    context = json.dumps(result["context"], indent=1)
    path.write_text(f'{{"context": {context},\n"{part}": [\n  {lines}]}}\n', encoding="utf-8")


# ---- tables ----------------------------------------------------------------------------------------------------------


def table(header, rows):
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *rows])


def provenance(name, context):
    """One line: the result file, and what ran where."""
    words = [f"[{name}](../bench/results/{name})"]
    words += [f"commit {context['commit']}"] if "commit" in context else []
    words += [context[key] for key in ("gpu", "processor", "compiler") if key in context]
    if "sm_clock_mhz" in context:
        words.append(f"multiprocessors at {context['sm_clock_mhz']} MHz")
    if "versions" in context:
        words.append(", ".join(f"{name} {version}" for name, version in context["versions"].items()))
    return "; ".join(words) + "."


def shape(m, n, k):
    if m == n == k:
        return f"{m}³"
    return f"{m}² × {k}" if m == n else f"{m} × {n} × {k}"


def milliseconds(seconds):
    return f"{1e3 * seconds:.3g}" if seconds < 0.1 else f"{1e3 * seconds:.1f}"


def task(name):
    """'l1/f32/8192x8192x64/columns/unaligned' as words."""
    words = name.split("/")
    for i, word in enumerate(words):
        if re.fullmatch(r"\d+x\d+x\d+", word):
            words[i] = shape(*map(int, word.split("x")))
        elif word in ("rows", "columns"):
            words[i] = "B by " + word
    return ", ".join([" ".join(words[:2]), *words[2:]])


def share(line, key):
    return f"{line[key]:.2f}" if key in line else ""


def rates(result, prefix="", skip=()):
    """Rows of a result's benchmarks whose names begin with `prefix` and with none of `skip`."""
    rows = []
    for line in load(result, "benchmarks")["benchmarks"]:
        name = line["name"]
        if not name.startswith(prefix) or name.startswith(skip):
            continue
        words = task(name.removeprefix(prefix))
        if "error" in line:
            rows.append([words, f"failed: {line['error']}", "", "", ""])
        else:
            rows.append([words, milliseconds(line["seconds"]), f"{1e-12 * line['pairs/s']:.3g}", share(line, "of ceiling"),
                         share(line, "of issue limit")])
    return rows


def simt():
    context = load("h200/simt.json", "benchmarks")["context"]
    header = ["task", "ms", "T pairs/s", "of the registers' ceiling", "of the issue limit"]
    return provenance("h200/simt.json", context) + "\n\n" + table(
        header, rates("h200/simt.json", skip=("ceiling/", "host/")))


def ceilings():
    return table(["pair", "T pairs/s", "of the issue limit"], [[row[0], row[2], row[4]] for row in rates("h200/simt.json", "ceiling/")])


def mma():
    context = load("h200/mma.json", "benchmarks")["context"]
    header = ["task", "ms", "T pairs/s", "of the registers' ceiling"]
    return provenance("h200/mma.json", context) + "\n\n" + table(
        header, [row[:4] for row in rates("h200/mma.json", skip="ceiling/")])


def mma_ceilings():
    return table(["pair", "T pairs/s"], [[row[0], row[2]] for row in rates("h200/mma.json", "ceiling/")])


def overhead():
    host = {line["name"]: line["seconds"] for line in load("h200/simt.json", "benchmarks")["benchmarks"]
            if line["name"].startswith("host/")}
    rows = [[name.removeprefix("host/").replace("/", ", "), f"{1e6 * seconds:.2f}"] for name, seconds in host.items()]
    return table(["call", "µs of the host"], rows)


def compared():
    result = load("h200/compare.json", "table")
    peers = list(dict.fromkeys(name for row in result["table"] for name in row["seconds"] if name != "rigel"))
    rows = []
    for row in result["table"]:
        seconds, failed = row["seconds"], row["failed"]
        cell = lambda name: milliseconds(seconds[name]) if name in seconds else "failed" if name in failed else ""
        error = row["largest_error"].get("rigel")
        rows.append([f"{row['operation']}, {shape(row['m'], row['n'], row['k'])}", cell("rigel"), *map(cell, peers),
                     f"{row['ratio']:.2f}" if "ratio" in row else "", f"{error:.1e}" if error is not None else ""])
    missing = "".join(f" {name} is missing ({why})." for name, why in result["context"]["missing"].items())
    return provenance("h200/compare.json", result["context"]) + missing + "\n\n" + table(
        ["task", "Rigel, ms", *peers, "best peer / Rigel", "Rigel's largest relative error"], rows)


def swept():
    rows = []
    result = load("h200/sweep.json", "sweep")
    sweep = result["sweep"]
    for operation in dict.fromkeys(row["operation"] for row in sweep):
        those = [row for row in sweep if row["operation"] == operation]
        compared_ones = [row for row in those if "ratio" in row]
        median = least = ""
        if compared_ones:
            worst = min(compared_ones, key=lambda row: row["ratio"])
            median = f"{statistics.median(row['ratio'] for row in compared_ones):.2f}"
            least = f"{worst['ratio']:.2f}: {shape(worst['m'], worst['n'], worst['k'])}, {worst['best_peer']}"
        rows.append([operation, str(len(those)), str(sum("rigel" in row["failed"] for row in those)),
                     str(sum(row.get("slower", False) for row in those)), median, least])
    return provenance("h200/sweep.json", result["context"]) + "\n\n" + table(
        ["operation", "shapes", "Rigel failed", "Rigel slower than a peer", "median of best peer / Rigel", "least of it"], rows)


def products():
    result = load("h200/products.json", "products")
    rows = []
    for row in result["products"]:
        seconds = row["seconds"]
        pairs = row["m"] * row["n"] * row["k"]
        what = row["element"] if row["precision"] == "accumulator" else f"{row['element']}, {row['precision']}"
        time = lambda name: milliseconds(seconds[name]) if name in seconds else "failed"
        rate = lambda name: f"{1e-12 * pairs / seconds[name]:.3g}" if name in seconds else ""
        error = lambda name: (f"{row['largest_error'][name]:.1e}, {row['mean_error'][name]:.1e}"
                              if name in row["largest_error"] else "")
        rows.append([what, row["result"], shape(row["m"], row["n"], row["k"]), row["kernel"] or "", time("rigel"),
                     rate("rigel"), time("torch"), rate("torch"), f"{row['ratio']:.2f}" if "ratio" in row else "",
                     error("rigel"), error("torch")])
    return provenance("h200/products.json", result["context"]) + "\n\n" + table(
        ["A and B", "C", "task", "kernel", "Rigel, ms", "T pairs/s", "torch, ms", "T pairs/s", "torch / Rigel",
         "Rigel's errors: largest, mean", "torch's"], rows)


def microseconds(seconds):
    return f"{1e6 * seconds:.3g}"


def choices():
    """How far the choice is from the fastest kernel, over random problems."""
    rows = []
    for name in ("h200/choice_before.json", "h200/choice.json"):
        result = load(name, "problems")
        problems = result["problems"]
        losses = sorted(p["seconds"] / p["best_seconds"] for p in problems)
        at = lambda share: f"{losses[min(int(share * len(losses)), len(losses) - 1)]:.3g}"
        above = lambda bound: str(sum(loss > bound for loss in losses))
        portable = sum(p["chosen"].startswith("portable") for p in problems)
        rows.append([result["context"]["commit"], str(len(problems)), at(0.5), at(0.9), at(0.99), at(1), above(1.2), above(1.5),
                     str(portable)])
    return provenance("h200/choice.json", result["context"]) + "\n\n" + table(
        ["commit", "problems", "loss: median", "90 %", "99 %", "worst", "above 1.2", "above 1.5", "`portable` chosen"], rows)


def choices_of_shapes():
    """The chosen kernel of a few problems, before and now."""
    before, now = load("h200/choice_shapes_before.json", "problems"), load("h200/choice_shapes.json", "problems")
    rows = []
    for old, new in zip(before["problems"], now["problems"], strict=True):
        if old["problem"] != new["problem"]:
            raise NoResult(f"Not comparable: {old['problem']} and {new['problem']} differ.")
        rows.append([new["problem"], old["chosen"], microseconds(old["seconds"]), new["chosen"], microseconds(new["seconds"]),
                     microseconds(new["best_seconds"])])
    return provenance("h200/choice_shapes.json", now["context"]) + "\n\n" + table(
        ["problem", f"chosen at {before['context']['commit']}", "µs", "chosen now", "µs", "fastest kernel, µs"], rows)


def host():
    rows = []
    result = load("host/xeon-cascade-lake.json", "targets")
    for row in result["targets"]:
        rate = result["rates"].get(row["what"])
        value = f"{1e-9 * row['value']:.3g} G" if row["against"] == "pairs/s" else f"{row['value']:.2g}"
        target = f"{1e-9 * row['target']:.3g} G" if row["against"] == "pairs/s" else f"{row['target']:g}"
        rows.append([row["what"], f"{1e-9 * rate:.3g}" if rate else "", row["against"], value,
                     f"{'≥' if row['relation'] == '>=' else '≤'} {target}"])
    return provenance("host/xeon-cascade-lake.json", result["context"]) + "\n\n" + table(
        ["kernel", "G pairs/s", "beside", "ratio, or value", "target"], rows)


TABLES = {"simt": simt, "ceilings": ceilings, "overhead": overhead, "mma": mma, "mma_ceilings": mma_ceilings,
          "compared": compared, "swept": swept, "products": products, "choices": choices,
          "choices_of_shapes": choices_of_shapes, "host": host}


# ---- the document ----------------------------------------------------------------------------------------------------


def render(text):
    """The document with its tables as they should be."""
    seen = []

    def fill(match):
        name = match[1]
        if name not in TABLES:
            sys.exit(f"report.py: docs/performance.md asks for the table '{name}', expected one of {', '.join(TABLES)}")
        seen.append(name)
        try:
            content = TABLES[name]()
        except NoResult as reason:
            content = str(reason)
        return f"<!-- table: {name} -->\n{content}\n<!-- end -->"

    text = re.sub(r"<!-- table: (\S+) -->\n.*?<!-- end -->", fill, text, flags=re.DOTALL)
    if sorted(seen) != sorted(TABLES):
        sys.exit(f"report.py: docs/performance.md has the tables {', '.join(seen)}, expected {', '.join(TABLES)} once each")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--take", nargs=2, metavar=("report", "result"))
    arguments = parser.parse_args()
    if arguments.take:
        write_condensed(arguments.take[0], pathlib.Path(arguments.take[1]))
        return 0
    text = DOCUMENT.read_text(encoding="utf-8")
    expected = render(text)
    if arguments.check:
        sys.stdout.writelines(difflib.unified_diff(text.splitlines(True), expected.splitlines(True), "docs/performance.md",
                                                   "what bench/report.py writes"))
        if text != expected:
            print("docs/performance.md is not up to date: run bench/report.py", file=sys.stderr)
        return int(text != expected)
    DOCUMENT.write_text(expected, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
