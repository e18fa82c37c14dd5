#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the tables of docs/performance.md, docs/reductions.md and of the NOTES.md next to the kernels from the files under bench/results/. A table
stands between the comments <!-- table: <name> --> and <!-- end -->; all else in these documents is written by hand.

    report.py                           writes them
    report.py --check                   fails if a document is not what this would write, or docs/performance.md is too long
    report.py --take <report> <result>  keeps of a report of bench_simt or bench_mma (--benchmark_out) what is to be kept:
                                        medians, and what ran where, but for the machine's names and folders; of one of
                                        bench_choice or bench_walk (--json) the chosen and the fastest kernel of each problem
"""
import argparse
import difflib
import json
import os
import pathlib
import re
import statistics
import sys
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
PAGE = "docs/performance.md"
LONGEST_PAGE = 200  # lines: a page to read at a sitting; the rest belongs to the notes
NOTES = ("docs/reductions.md", "src/NOTES.md", "backends/host/NOTES.md", "backends/cuda/simt/NOTES.md", "backends/cuda/mma/NOTES.md",
         "backends/cuda/hopper/NOTES.md")

# Entries in the context of Google Benchmark's reports that --take drops.
LOCAL = ("host_name", "executable", "num_cpus", "mhz_per_cpu", "cpu_scaling_enabled", "caches", "load_avg",
         "library_build_type")


# ---- results ---------------------------------------------------------------------------------------------------------


class NoResult(Exception):
    pass


def load(name, part):
    """The contents of a result file, which must have that part."""
    path = RESULTS / name
    if not path.exists():
        raise NoResult(f"Not measured: there is no bench/results/{name}.")
    result = json.loads(path.read_text(encoding="utf-8"))
    if part not in result:
        raise NoResult(f"Not measured: bench/results/{name} comes from an earlier program, whose numbers are not these.")
    return result


def condense(report):
    """A report of Google Benchmark as one line per benchmark: seconds, counters, the coefficient of variation."""
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
    """A report of bench_choice or bench_walk as one line per problem: its floor, the chosen kernel and the fastest one."""
    of_problem = {}
    for row in report["rows"]:
        of_problem.setdefault(row["index"], []).append(row)
    problems = []
    for rows in of_problem.values():
        chosen = next(row for row in rows if row["chosen"])
        best = min((row for row in rows if row["seconds"]), key=lambda row: row["seconds"])
        problems.append({"problem": chosen["problem"], "kind": chosen["kind"], "data": chosen.get("data", "ordinary"),
                         "floor": chosen["floor"],
                         "chosen": chosen["kernel"], "family": chosen["family"],
                         "predicted": chosen["predicted"], "seconds": chosen["seconds"], "best": best["kernel"],
                         "best_seconds": best["seconds"]})
    return {"context": report["context"], "problems": problems}


def write_condensed(report, path):
    report = json.loads(pathlib.Path(report).read_text(encoding="utf-8"))
    result, part = (condense_choices(report), "problems") if "rows" in report else (condense(report), "benchmarks")
    lines = ",\n  ".join(json.dumps(line) for line in result[part])
    path.parent.mkdir(parents=True, exist_ok=True)
    context = json.dumps(result["context"], indent=1)
    path.write_text(f'{{"context": {context},\n"{part}": [\n  {lines}]}}\n', encoding="utf-8")


# ---- tables ----------------------------------------------------------------------------------------------------------


class Table(typing.NamedTuple):
    sources: list[tuple[str, dict]]  # result files and their contexts
    header: list[str]
    rows: list[list[str]]


def cells(row):
    return "| " + " | ".join(row) + " |"


def provenance(name, context, results):
    """One line: the result file in the folder `results`, and what ran where."""
    words = [f"[{name}]({results}/{name})"]
    words += [f"commit {context['commit']}"] if "commit" in context else []
    words += [context[key] for key in ("gpu", "processor", "compiler") if key in context]
    if "sm_clock_mhz" in context:
        words.append(f"multiprocessors at {context['sm_clock_mhz']} MHz")
    if "versions" in context:
        words.append(", ".join(f"{library} {version}" for library, version in context["versions"].items()))
    words += [f"{library} is missing ({why})" for library, why in context.get("missing", {}).items()]
    return "; ".join(words) + "."


def shape(m, n, k):
    if m == n == k:
        return f"{m}³"
    return f"{m}² × {k}" if m == n else f"{m} × {n} × {k}"


def three_digits(x):
    return f"{x:.3g}" if x < 1000 else f"{x:.0f}"


def tera(rate):
    return three_digits(1e-12 * rate)


def microseconds(seconds):
    return three_digits(1e6 * seconds)


def milliseconds(seconds):
    return f"{1e3 * seconds:.3g}" if seconds < 0.1 else f"{1e3 * seconds:.1f}"


def task(name):
    """'l1/f32/8192x8192x64/columns/unaligned' as words."""
    words = name.split("/")
    for i, word in enumerate(words):
        if re.fullmatch(r"\d+x\d+x\d+", word):
            words[i] = shape(*map(int, word.split("x")))
        elif word in ("rows", "columns"):
            words[i] = {"rows": "B N-major", "columns": "B K-major"}[word]
    return ", ".join([" ".join(words[:2]), *words[2:]])


def share(line, key):
    return f"{line[key]:.2f}" if key in line else ""


def benchmarks(name):
    """The context of a result, and its benchmarks by name."""
    result = load(name, "benchmarks")
    return result["context"], {line["name"]: line for line in result["benchmarks"]}


def of_these(lines, name, names):
    """The benchmarks of those names, in their order."""
    for one in names:
        if one not in lines:
            raise NoResult(f"Not measured: bench/results/{name} has no benchmark {one}.")
    return [lines[one] for one in names]


def rates(lines, prefix=""):
    """Rows of benchmarks whose names begin with `prefix`: task, ms, T pairs/s, shares of the ceiling and of the issue limit."""
    rows = []
    for line in lines:
        words = task(line["name"].removeprefix(prefix))
        if "error" in line:
            rows.append([words, f"failed: {line['error']}", "", "", ""])
        else:
            rows.append([words, milliseconds(line["seconds"]), tera(line["pairs/s"]), share(line, "of ceiling"),
                         share(line, "of issue limit")])
    return rows


def beginning(lines, *prefixes):
    return [line for name, line in lines.items() if name.startswith(prefixes)]


def not_beginning(lines, *prefixes):
    return [line for name, line in lines.items() if not name.startswith(prefixes)]


# ---- tables of docs/performance.md


def semirings():
    """cuda.simt's main figures."""
    context, lines = benchmarks("h200/simt.json")
    names = ("plus_times/f32/8192x8192x8192/rows", "l1/f32/30000x30000x1024/columns",
             "l2_squared/f32/30000x30000x1024/columns", "lp/f32/p=1.3/30000x30000x1024/columns",
             "min_plus/f32/8192x8192x8192/rows", "min_plus/f32/8192x8192x8192/rows/unaligned",
             "min_plus/s16/8192x8192x8192/rows", "max_min/f32/8192x8192x8192/rows", "log_plus/f32/4096x4096x4096/rows",
             "l1/u8/8192x8192x8192/columns", "or_and/b32/8192x8192x8192/rows", "l1 of a user/f32/8192x8192x8192/columns",
             "closure of min_plus/f32/16384", "transitive_closure/u32/65536")
    rows = []
    for line in of_these(lines, "h200/simt.json", names):
        words, time, rate, of_ceiling, of_limit = rates([line])[0]
        rows.append([words, time, rate, tera(line["pairs/s"] / line["of ceiling"]), of_ceiling, of_limit])
    return Table([("h200/simt.json", context)],
                 ["task", "ms", "T pairs/s", "ceiling, T pairs/s", "share of the ceiling", "of the issue limit"], rows)


def tensor_distances():
    """Distances, sums of exponentials and codes on tensor cores."""
    context, lines = benchmarks("h200/mma.json")
    names = ("l2_squared/f32/root/30000x30000x1024/columns/promoted", "l2_squared/f32/root/30000x30000x1024/columns/exact_products",
             "l2_squared/f64/root/30000x30000x1024/columns/promoted",
             "distances of a matrix's rows to themselves/f32/30000x30000x1024",
             "distances of near points/f32/30000x30000x1024", "distances of near points/f32/30000x30000x1024/cuda.simt",
             "log_plus/f32/4096x4096x4096/rows/split", "or_and/words along k/65536x65536x2048/columns",
             "bit_hamming/u32/65536x65536x32/columns")
    return Table([("h200/mma.json", context)], ["task", "ms", "T pairs/s"],
                 [row[:3] for row in rates(of_these(lines, "h200/mma.json", names))])


def kernel_of(row):
    return f"`{row['kernel']}`" if row["kernel"] else ""


def compared():
    """The main tasks compared with other libraries."""
    wanted = [("cdist:1", 30000, 1024), ("cdist:2", 30000, 1024), ("cdist:1.3", 30000, 1024), ("cdist:3", 30000, 1024),
              ("cdist:1", 8192, 64), ("cdist:1", 1000, 1000), ("min_plus", 8192, 8192), ("max_min", 8192, 8192),
              ("plus_times", 8192, 8192), ("log_plus", 4096, 4096)]  # operation, M and N, K
    result = load("h200/compare.json", "table")
    of_task = {(row["operation"], row["m"], row["k"]): row for row in result["table"] if row["m"] == row["n"]}
    peers = list(dict.fromkeys(name for row in result["table"] for name in row["seconds"] if name != "rigel"))
    rows = []
    for one in wanted:
        if one not in of_task:
            raise NoResult(f"Not measured: bench/results/h200/compare.json has no {one[0]} of {shape(one[1], *one[1:])}.")
        row = of_task[one]
        seconds, failed = row["seconds"], row["failed"]
        cell = lambda name: milliseconds(seconds[name]) if name in seconds else "failed" if name in failed else ""
        error = row["largest_error"].get("rigel")
        rows.append([f"{row['operation']}, {shape(row['m'], row['n'], row['k'])}", kernel_of(row), cell("rigel"), *map(cell, peers),
                     f"{row['ratio']:.2f}" if "ratio" in row else "", f"{error:.1e}" if error is not None else ""])
    return Table([("h200/compare.json", result["context"])],
                 ["task", "kernel", "Rigel, ms", *peers, "best peer / Rigel", "Rigel's largest relative error"], rows)


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
    return Table([("h200/sweep.json", result["context"])],
                 ["operation", "shapes", "Rigel failed", "Rigel slower than a peer", "median of best peer / Rigel", "least of it"],
                 rows)


def products(wanted):
    """Products compared with torch's: those rows for which wanted(row) holds."""
    result = load("h200/products.json", "products")
    rows = []
    for row in filter(wanted, result["products"]):
        seconds = row["seconds"]
        pairs = row["m"] * row["n"] * row["k"]
        types = f"{row['element']} → {row['result']}" + (f", {row['precision']}" if row["element"] == "f32" else "")
        time = lambda name: milliseconds(seconds[name]) if name in seconds else "failed"
        error = lambda name: (f"{row['largest_error'][name]:.1e}, {row['mean_error'][name]:.1e}"
                              if name in row["largest_error"] else "")
        rows.append([types, shape(row["m"], row["n"], row["k"]), kernel_of(row), time("rigel"), tera(pairs / seconds["rigel"])
                     if "rigel" in seconds else "", time("torch"),
                     f"{row['ratio']:.2f}" if "ratio" in row else "", error("rigel"), error("torch")])
    return Table([("h200/products.json", result["context"])],
                 ["types", "task", "kernel", "Rigel, ms", "T pairs/s", "torch, ms", "torch / Rigel",
                  "Rigel's errors: largest, mean", "torch's errors"], rows)


def tensor_products():
    """Products by the chosen kernel, of types other than float; 16-bit floats with a C of their own type."""
    return products(lambda row: row["kernels"] == "" and row["element"] != "f32" and row["result"] in (row["element"], "i32"))


def precisions():
    """Products of floats, by option."""
    return products(lambda row: row["kernels"] == "" and row["element"] == "f32")


def quantiles(values):
    """Cells: how many values, their median, 90 %, 99 % and maximum."""
    values = sorted(values)
    at = lambda share: three_digits(values[min(int(share * len(values)), len(values) - 1)])
    return [str(len(values)), at(0.5), at(0.9), at(0.99), at(1)]


def losses_of(problems):
    """Cells: the quantiles of the loss, and the share above 1.2 and 1.5."""
    losses = [p["seconds"] / p["best_seconds"] for p in problems]
    above = lambda bound: f"{100 * sum(loss > bound for loss in losses) / len(losses):.1f} %"
    return [*quantiles(losses), above(1.2), above(1.5)]


LOSSES = ["problems", "loss: median", "90 %", "99 %", "worst", "above 1.2", "above 1.5"]


def host():
    """Rates on the host, and their ratios to the ceilings and to other libraries."""
    result = load("host/xeon-cascade-lake.json", "targets")
    rates_of = result["rates"]
    rows = [[row["what"], f"{1e-9 * rates_of[row['what']]:.3g}", row["against"], f"{row['value']:.2g}", f"≥ {row['target']:g}"]
            for row in result["targets"] if row["against"] in rates_of]
    return Table([("host/xeon-cascade-lake.json", result["context"])],
                 ["kernel", "G pairs/s", "compared with", "ratio", "target"], rows)


# ---- the table of docs/reductions.md


def reductions():
    """Reductions by the chosen kernel, and by strips of scores."""
    result = load("h200/reduce.json", "rows")
    strips = {row["task"]: row["seconds"] for row in result["rows"] if row["kernel"].startswith("portable.") and not row["chosen"]}
    rows = [[f"{row['task'].replace('_', ' ')}, {shape(row['m'], row['n'], row['k'])}", kernel_of(row), milliseconds(row["seconds"]),
             tera(row["pairs_per_second"]), milliseconds(strips[row["task"]]) if row["task"] in strips else "", row.get("commit", "")]
            for row in result["rows"] if row.get("chosen")]
    return Table([("h200/reduce.json", {**result["context"], "commit": "of each row"})],
                 ["task", "kernel", "ms", "T pairs/s", "by strips, ms", "commit"], rows)


# ---- tables of the notes


def host_metrics():
    """Every metric on the host, compared with SciPy."""
    result = load("host/metrics.json", "metrics")
    rows = [[row["metric"], row["type"], f"{1e3 * row['seconds']:.1f}", f"{1e-9 * row['rate']:.3g}", row["against"],
             f"{row['ratio']:.2g}" if row["ratio"] < 100 else f"{row['ratio']:.0f}"] for row in result["metrics"]]
    return Table([("host/metrics.json", result["context"])],
                 ["metric", "type", "ms", "G terms/s", "compared with", "ratio"], rows)


def metrics():
    """Every metric on a GPU, compared with the ceilings of its instructions."""
    result = load("h200/metrics.json", "metrics")
    rows = []
    for row in result["metrics"]:
        if "error" in row:
            rows.append([row["metric"], row["type"], "", "failed", "", ""])
        else:
            rows.append([row["metric"], row["type"], kernel_of(row), milliseconds(row["seconds"]), tera(row["pairs/s"]),
                         share(row, "of ceiling")])
    return Table([("h200/metrics.json", result["context"])],
                 ["metric", "type", "kernel", "ms", "T terms/s", "share of the ceiling"], rows)


def simt():
    context, lines = benchmarks("h200/simt.json")
    return Table([("h200/simt.json", context)], ["task", "ms", "T pairs/s", "of the registers' ceiling", "of the issue limit"],
                 rates(not_beginning(lines, "ceiling/", "host/")))


def simt_ceilings():
    context, lines = benchmarks("h200/simt.json")
    return Table([("h200/simt.json", context)], ["pair", "T pairs/s", "of the issue limit"],
                 [[row[0], row[2], row[4]] for row in rates(beginning(lines, "ceiling/"), "ceiling/")])


def mma():
    context, lines = benchmarks("h200/mma.json")
    return Table([("h200/mma.json", context)], ["task", "ms", "T pairs/s", "of the registers' ceiling"],
                 [row[:4] for row in rates(not_beginning(lines, "ceiling/", "hopper/"))])


def mma_ceilings():
    context, lines = benchmarks("h200/mma.json")
    return Table([("h200/mma.json", context)], ["pair", "T pairs/s"],
                 [[row[0], row[2]] for row in rates(beginning(lines, "ceiling/"), "ceiling/")])


def mma_products():
    """Products by the kernels of cuda.mma."""
    return products(lambda row: row["kernels"] == "cuda.mma")


def hopper():
    context, lines = benchmarks("h200/mma.json")
    return Table([("h200/mma.json", context)], ["task", "ms", "T pairs/s", "of the ceiling of mma.sync"],
                 [row[:4] for row in rates(beginning(lines, "hopper/"), "hopper/")])


def overhead():
    context, lines = benchmarks("h200/simt.json")
    rows = [[task(line["name"].removeprefix("host/")), f"{1e6 * line['seconds']:.2f}"] for line in beginning(lines, "host/")]
    return Table([("h200/simt.json", context)], ["call", "µs of the host"], rows)


def choices_over_time():
    """The loss over random problems, before and now."""
    sources, rows = [], []
    for name in ("h200/choice_before.json", "h200/choice.json"):
        result = load(name, "problems")
        sources.append((name, result["context"]))
        portable = sum(p["family"] == "portable" for p in result["problems"])
        rows.append([result["context"]["commit"], *losses_of(result["problems"]), str(portable)])
    return Table(sources, ["commit", *LOSSES, "`portable` chosen"], rows)


def kind_of(problem):
    return problem["kind"]


def semiring_of(problem):
    return problem["problem"].split(",")[0]


def data_of(problem):
    return "ordinary data" if problem["data"] == "ordinary" else "special data"


def walk_by(name, *keys):
    """Time over floor on a random walk: of all problems, and of the groups by each key and by their data."""
    result = load(name, "problems")
    groups = {}
    if "data" in result["problems"][0]:
        keys = (data_of, *keys)
    for key in (lambda problem: "all", *keys):
        for problem in sorted(result["problems"], key=key):
            groups.setdefault(key(problem), []).append(problem["seconds"] / problem["floor"])
    return Table([(name, result["context"])], ["problems of", "number", "time / floor: median", "90 %", "99 %", "worst"],
                 [[group, *quantiles(ratios)] for group, ratios in groups.items()])


def walk():
    return walk_by("h200/walk.json", kind_of)


def walk_by_semiring():
    return walk_by("h200/walk.json", semiring_of)


def host_walk():
    return walk_by("host/walk.json", kind_of, semiring_of)


def choices_of_shapes():
    """The chosen kernel of a few problems, before and now."""
    before, now = load("h200/choice_shapes_before.json", "problems"), load("h200/choice_shapes.json", "problems")
    rows = []
    for old, new in zip(before["problems"], now["problems"], strict=True):
        if old["problem"] != new["problem"]:
            raise NoResult(f"Not comparable: {old['problem']} and {new['problem']} differ.")
        rows.append([new["problem"], old["chosen"], microseconds(old["seconds"]), new["chosen"], microseconds(new["seconds"]),
                     microseconds(new["best_seconds"])])
    return Table([("h200/choice_shapes_before.json", before["context"]), ("h200/choice_shapes.json", now["context"])],
                 ["problem", f"chosen at {before['context']['commit']}", "µs", f"chosen at {now['context']['commit']}", "µs",
                  "fastest kernel, µs"], rows)


TABLES = {make.__name__: make for make in (
    semirings, tensor_distances, compared, swept, tensor_products, precisions, host, reductions, host_metrics, simt, simt_ceilings,
    metrics, mma, mma_ceilings, mma_products, hopper, overhead, choices_over_time, choices_of_shapes, walk, walk_by_semiring,
    host_walk)}


# ---- documents -------------------------------------------------------------------------------------------------------


def render(document, text, seen):
    """The document's text with its tables as they should be, whose names are added to `seen`."""
    results = os.path.relpath(RESULTS, (ROOT / document).parent)

    def fill(match):
        name = match[1]
        if name not in TABLES:
            sys.exit(f"report.py: {document} asks for the table '{name}', expected one of {', '.join(TABLES)}")
        seen.append(name)
        try:
            sources, header, rows = TABLES[name]()
            lines = [provenance(*source, results) for source in sources] + ["", cells(header), cells(["---"] * len(header))]
            content = "\n".join(lines + [cells(row) for row in rows])
        except NoResult as reason:
            content = str(reason)
        return f"<!-- table: {name} -->\n{content}\n<!-- end -->"

    return re.sub(r"<!-- table: (\S+) -->\n.*?<!-- end -->", fill, text, flags=re.DOTALL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--take", nargs=2, metavar=("report", "result"))
    arguments = parser.parse_args()
    if arguments.take:
        write_condensed(arguments.take[0], pathlib.Path(arguments.take[1]))
        return 0
    texts = {document: (ROOT / document).read_text(encoding="utf-8") for document in (PAGE, *NOTES)}
    seen = []
    expected = {document: render(document, text, seen) for document, text in texts.items()}
    if sorted(seen) != sorted(TABLES):
        sys.exit(f"report.py: the documents have the tables {', '.join(seen)}, expected {', '.join(TABLES)} once each")
    lines = len(expected[PAGE].splitlines())
    if lines > LONGEST_PAGE:
        sys.exit(f"report.py: {PAGE} has {lines} lines, expected at most {LONGEST_PAGE}: what is not for every reader belongs to "
                 "the NOTES.md next to the kernels")
    if not arguments.check:
        for document, text in expected.items():
            (ROOT / document).write_text(text, encoding="utf-8")
        return 0
    stale = [document for document in texts if texts[document] != expected[document]]
    for document in stale:
        sys.stdout.writelines(difflib.unified_diff(texts[document].splitlines(True), expected[document].splitlines(True), document,
                                                   "what bench/report.py writes"))
        print(f"{document} is not up to date: run bench/report.py", file=sys.stderr)
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
