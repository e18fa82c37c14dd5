#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares bench_host with what Python users have: SciPy's cdist, scikit-learn's pairwise distances with two jobs, and NumPy's
sgemm. All run within the same minutes on the same threads. Prints one table with ratios and targets, and writes it as JSON.

    compare.py build/…/bin/bench_host bench/results/host/<processor>.json

Needs numpy, scipy, scikit-learn and threadpoolctl.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy
import scipy
import scipy.spatial.distance
import sklearn
import sklearn.metrics
import threadpoolctl

M, N, K, P = 2048, 2048, 256, 1.3
THREADS = 2

# (name, compared with, least ratio). Names stand for rates in pairs per second.
TARGETS = [
    ("host/l1/f32", "ceiling/l1/f32", 0.65),
    ("host/min_plus/f32", "ceiling/min_plus/f32", 0.65),
    ("host/l1/f32", "scikit-learn/manhattan/f32", 6),
    ("host/l1/f64", "scipy/cityblock/f64", 6),
    ("host/plus_times/f32", "host.blas/plus_times/f32", 0.75),
    ("host/plus_times/f32", "numpy/sgemm/f32", 0.75),
    ("host/lp/f64", "scipy/minkowski/f64", 20),
]
LEAST_RATES = {"host/lp/f32": 3e9}
LARGEST_ERRORS = {"host/lp/f64": 4e-15, "host/lp/f32": 1.5e-6}


def commit():
    here = pathlib.Path(__file__).resolve().parent

    def git(*words):
        return subprocess.run(["git", "-C", here, *words], capture_output=True, text=True, check=False).stdout.strip()

    return git("rev-parse", "--short=12", "HEAD") + ("-modified" if git("status", "--porcelain", "-uno") else "")


def rigel(program, repetitions):
    """The report of bench_host; the fastest of several repetitions counts."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([program, f"--benchmark_repetitions={repetitions}", f"--benchmark_out={out.name}",
                        "--benchmark_out_format=json", f"--benchmark_context=commit={commit()}"],
                       check=True, stdout=subprocess.DEVNULL)
        report = json.load(open(out.name, encoding="utf-8"))
    rates, errors = {}, {}
    for run in report["benchmarks"]:
        if run["run_type"] != "iteration":
            continue
        name = run["name"].removesuffix("/process_time/real_time")
        rates[name] = max(rates.get(name, 0), run["pairs/s"])
        if "relative error" in run:
            errors[name] = run["relative error"]
    context = {key: value for key, value in report["context"].items() if key not in ("host_name", "executable")}
    return context, rates, errors


def rate(pairs, repetitions, call):
    """Pairs per second of the fastest call, not counting the first."""
    call()
    seconds = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return pairs / min(seconds)


def others(repetitions):
    random = numpy.random.default_rng(1)
    x, z = random.random((M, K)), random.random((N, K))
    xf, zf = x.astype(numpy.float32), z.astype(numpy.float32)
    few = 128  # rows of x for the slow ones, whose rate does not depend on it
    cdist, pairwise = scipy.spatial.distance.cdist, sklearn.metrics.pairwise_distances
    with threadpoolctl.threadpool_limits(THREADS):
        return {
            "numpy/sgemm/f32": rate(M * N * K, 3 * repetitions, lambda: xf @ zf.T),
            "scikit-learn/manhattan/f32": rate(M * N * K, repetitions,
                                               lambda: pairwise(xf, zf, metric="manhattan", n_jobs=THREADS)),
            "scipy/cityblock/f64": rate(M * N * K, repetitions, lambda: cdist(x, z, "cityblock")),
            "scipy/minkowski/f64": rate(few * N * K, repetitions, lambda: cdist(x[:few], z, "minkowski", p=P)),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="bench_host")
    parser.add_argument("output", type=pathlib.Path, help="JSON file to write")
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()

    context, rates, errors = rigel(arguments.program, arguments.repetitions)
    rates |= others(arguments.repetitions)
    context |= {"numpy": numpy.__version__, "scipy": scipy.__version__, "scikit-learn": sklearn.__version__}

    rows = [(a, b, rates[a] / rates[b], ">=", least) for a, b, least in TARGETS if a in rates and b in rates]
    rows += [(a, "pairs/s", rates[a], ">=", least) for a, least in LEAST_RATES.items()]
    rows += [(a, "relative error", errors[a], "<=", most) for a, most in LARGEST_ERRORS.items()]
    table = [{"what": a, "against": b, "value": value, "relation": relation, "target": target,
              "met": value >= target if relation == ">=" else value <= target} for a, b, value, relation, target in rows]

    print(f"{M} x {N} x {K}, {context['threads']} threads, {context['processor']}, commit {context['commit']}\n")
    for name, value in rates.items():
        print(f"{name:32} {value / 1e9:8.2f} G pairs/s" + (f"   relative error {errors[name]:.1e}" if name in errors else ""))
    print()
    for row in table:
        print(f"{row['what']:24} / {row['against']:28} {row['value']:10.3g} {row['relation']} {row['target']:<8g} "
              f"{'met' if row['met'] else 'MISSED'}")

    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps({"context": context, "rates": rates, "errors": errors, "targets": table},
                                           indent=1) + "\n", encoding="utf-8")
    return 0 if all(row["met"] for row in table) else 1


if __name__ == "__main__":
    sys.exit(main())
