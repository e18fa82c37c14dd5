#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares bench_metrics with SciPy's cdist, metric by metric: 2048 × 2048 distances of 256 doubles, of 256 truth values (bytes for
Rigel's unpacked metrics, bool for SciPy's), and for haversine of 2. Rigel has two threads; SciPy's cdist has one, and no option for
more. Both run within the same minutes, SciPy on fewer rows where it takes long. Prints a table, and writes it as JSON.

    compare_metrics.py build/…/bin/bench_metrics bench/results/host/<name>.json

Needs numpy, scipy and, for haversine, scikit-learn.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy
import scipy
import scipy.spatial.distance
import scipy.special
import sklearn
import sklearn.metrics

import compare

N, K, P = 2048, 256, 1.3
THREADS = 2
TARGET = 5  # times SciPy's rate


def rate(rows, coordinates, call):
    """Distances per second of the fastest of several calls, not counting the first, on as many rows as take a quarter of a second."""
    begin = time.perf_counter()
    call(rows[:16])
    few = int(min(N, max(16, 16 * 0.25 / (time.perf_counter() - begin))))
    return compare.rate(few * N, 5, lambda: call(rows[:few])) * coordinates


def peers():
    """Of each metric of bench_metrics: what is compared, and a call on some rows. A metric without a peer is missing."""
    random = numpy.random.default_rng(1)
    x, z = random.random((N, K)), random.random((N, K))
    truths = random.random((N, K)) < 0.5, random.random((N, K)) < 0.5
    positions = numpy.ascontiguousarray(x[:, :2]), numpy.ascontiguousarray(z[:, :2])
    weights = random.random(K)
    factor = random.random((K, K))
    inverse = factor @ factor.T
    cdist = scipy.spatial.distance.cdist
    of = {}

    def add(metric, name=None, rows=(x, z), **options):
        of[metric] = (f"scipy.cdist, {name or metric}", rows[0], lambda few: cdist(few, rows[1], name or metric, **options))

    add("manhattan", "cityblock")
    add("squared_euclidean", "sqeuclidean")
    add("seuclidean", V=weights)
    add("mahalanobis", VI=inverse)
    add("minkowski, p = 1.3", "minkowski", p=P)
    add("minkowski, p = 3", "minkowski", p=3)
    add("weighted_minkowski, p = 1.3", "minkowski", p=P, w=weights)
    for metric in ("euclidean", "chebyshev", "cosine", "correlation", "canberra", "braycurtis", "jensenshannon", "hamming"):
        add(metric)
    for metric in ("jaccard", "dice", "rogerstanimoto", "russellrao", "sokalsneath", "yule"):
        add(metric, rows=truths)
        add(f"bit_{metric}", metric, rows=truths)
    add("bit_hamming", "hamming", rows=truths)
    of["haversine"] = ("scikit-learn, haversine", positions[0],
                       lambda few: sklearn.metrics.pairwise.haversine_distances(few, positions[1]))
    of["hellinger"] = ("scipy.cdist, euclidean of square roots", x, lambda few: cdist(few**0.5, z**0.5) / 2**0.5)
    of["kl_divergence"] = ("scipy.special.rel_entr, a row at a time", x,
                           lambda few: numpy.stack([scipy.special.rel_entr(row, z).sum(1) for row in few]))
    return of


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="bench_metrics")
    parser.add_argument("output", type=pathlib.Path, help="JSON file to write")
    parser.add_argument("--metric", default="", help="leading part of a name")
    arguments = parser.parse_args()

    table, context = [], {}
    for metric, (name, rows, call) in peers().items():
        if not metric.startswith(arguments.metric):
            continue
        # One after the other, so that both meet the same clock.
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            subprocess.run([arguments.program, "--metric", metric, "--threads", str(THREADS), "--json", out.name,
                            "--commit", compare.commit()], check=True, stdout=subprocess.DEVNULL,
                           env={**os.environ, "OMP_PROC_BIND": "false"})
            report = json.load(open(out.name, encoding="utf-8"))
        context = report["context"]
        row = next(row for row in report["metrics"] if row["metric"] == metric)
        coordinates = rows.shape[1]  # a packed row has as many truth values
        ours, theirs = N * N * coordinates / row["seconds"], rate(rows, coordinates, call)
        table.append({"metric": metric, "type": row["type"], "kernel": row["kernel"], "seconds": row["seconds"],
                      "rate": float(f"{ours:.4g}"), "against": name, "peer": float(f"{theirs:.4g}"),
                      "ratio": float(f"{ours / theirs:.4g}"), "target": TARGET, "met": ours >= TARGET * theirs})
        print(f"{metric:28} {ours / 1e9:8.2f} G terms/s  {ours / theirs:8.1f} x {name:40} "
              f"{'met' if table[-1]['met'] else 'MISSED':6}  {row['kernel']}", flush=True)

    context |= {"versions": {"numpy": numpy.__version__, "scipy": scipy.__version__, "scikit-learn": sklearn.__version__}}
    lines = ",\n".join(json.dumps(row) for row in table)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(f'{{"context": {json.dumps(context)},\n"metrics": [\n{lines}\n]}}\n', encoding="utf-8")
    return 0 if all(row["met"] for row in table) else 1


if __name__ == "__main__":
    sys.exit(main())
