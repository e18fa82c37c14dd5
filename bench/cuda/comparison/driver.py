# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The run: command line, timing, the table that is printed and the JSON that is written."""
import argparse
import contextlib
import importlib.metadata
import io
import itertools
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import torch

from comparison.peers import Torch, TorchProduct, Unsupported, begin_peers, first_jobs, import_peers, product_of_torch
from comparison.references import Reference, SumsReference
from comparison.rigel import Rigel
from comparison.tasks import DEVICE, PRODUCTS, SWEEP, TABLE, Job, Product, matrices, random_factors, sweep_shapes

NOISE = 0.02  # repeated runs differ by about this much: Rigel counts as slower from there on
PATIENCE = 0.25  # seconds of a call that is timed only once
FAR, LONG = 4, 0.01  # so is one of so many times the best one's seconds, if it takes as many as that, too
RESERVED = 2**35  # bytes that torch may keep for itself


def is_far(seconds, best):
    """Whether a call is timed only once."""
    return seconds >= PATIENCE or (seconds >= LONG and seconds >= FAR * best)


class Clock:
    def __init__(self):
        self.filler = torch.empty(2**30, dtype=torch.uint8, device=DEVICE)
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def seconds(self, call):
        self.filler.fill_(1)
        self.begin.record()
        call()
        self.end.record()
        self.end.synchronize()
        return 1e-3 * self.begin.elapsed_time(self.end)

    def median(self, call, repetitions, best=math.inf):
        """`best`: the time of the fastest other one, in seconds."""
        seconds = [self.seconds(call)]
        if not is_far(seconds[0], best):
            seconds += [self.seconds(call) for _ in range(repetitions - 1)]
        return statistics.median(seconds)


def rounded(value):
    return float(f"{value:.4g}")


def compare(job, rigel, peers, clock, repetitions):
    """One row: seconds and errors by name, the ratio of the best peer to Rigel."""
    a, b = matrices(job)
    reference = Reference(job, a, b)
    row = {"operation": job.operation, "m": job.m, "n": job.n, "k": job.k, "kernel": None, "seconds": {},
           "largest_error": {}, "mean_error": {}, "failed": {}}

    def record(name, seconds, rows):
        largest, mean = reference.errors(rows)
        row["seconds"][name], row["largest_error"][name], row["mean_error"][name] = map(rounded, (seconds, largest, mean))

    try:
        row["kernel"], seconds, rows = rigel.run(job, a, b, repetitions, reference.rows)
        record(rigel.name, seconds, rows)
    except Exception as error:
        row["failed"][rigel.name] = str(error)
    out = torch.empty(job.m, job.n, device=DEVICE)
    for peer in peers:
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # compilers talk
                call = peer.call(job, a, b, out.fill_(math.nan))
                result = []
                first = clock.seconds(lambda: result.append(call()))
                rows = result.pop()[reference.rows]
                best = min((s for name, s in row["seconds"].items() if name != TorchProduct.name), default=math.inf)
                once = first >= PATIENCE and not peer.compiles  # else what a peer loads in its first call is outside of the clock
                record(peer.name, first if once else clock.median(call, repetitions, best), rows)
        except Unsupported:
            pass
        except Exception as error:
            row["failed"][peer.name] = f"{type(error).__name__}: {error}"
    opponents = {name: s for name, s in row["seconds"].items() if name not in (rigel.name, TorchProduct.name)}
    if opponents and rigel.name in row["seconds"]:
        row["best_peer"] = min(opponents, key=opponents.get)
        row["ratio"] = rounded(opponents[row["best_peer"]] / row["seconds"][rigel.name])
        row["slower"] = row["ratio"] < 1 - NOISE
    return row


def compare_product(product, rigel, clock, repetitions):
    """One row: seconds and errors of Rigel and of torch, the ratio of their times."""
    a, b = random_factors(product)
    reference = SumsReference(product, a, b)
    row = {**product._asdict(), "kernel": None, "seconds": {}, "largest_error": {}, "mean_error": {}, "failed": {}}

    def record(name, seconds, rows):
        largest, mean = reference.errors(rows)
        row["seconds"][name], row["largest_error"][name], row["mean_error"][name] = map(rounded, (seconds, largest, mean))

    def by_rigel():
        row["kernel"], seconds, rows = rigel.run(product, a, b, repetitions, reference.rows)
        record(rigel.name, seconds, rows)

    def by_torch():
        call = product_of_torch(product, a, b)
        rows = call()[reference.rows]
        record(Torch.name, clock.median(call, repetitions), rows)

    for name, run in ((rigel.name, by_rigel), (Torch.name, by_torch)):
        try:
            run()
        except Exception as error:
            row["failed"][name] = f"{type(error).__name__}: {error}"
    if len(row["seconds"]) == 2:
        row["ratio"] = rounded(row["seconds"][Torch.name] / row["seconds"][rigel.name])
        row["slower"] = row["ratio"] < 1 - NOISE
    return row


def print_row(row):
    times = "  ".join(f"{name} {1e3 * seconds:.4g}" for name, seconds in row["seconds"].items())
    what = (row["operation"] if "operation" in row else
            " ".join(filter(None, (row["element"], row["result"], row["precision"], row["kernels"]))))
    print(f"{what:10} {row['m']:6} x {row['n']:5} x {row['k']:5}  ms: {times}"
          + (f"  ratio {row['ratio']:.3g}" if "ratio" in row else "")
          + (f"  error {row['largest_error']['rigel']:.1e}" if "rigel" in row["largest_error"] else "")
          + ("  SLOWER" if row.get("slower") else "")
          + "".join(f"  {name} FAILED: {why.splitlines()[0][:120]}" for name, why in row["failed"].items()), flush=True)


def commit():
    here = pathlib.Path(__file__).resolve().parent

    def git(*words):
        return subprocess.run(["git", "-C", here, *words], capture_output=True, text=True, check=False).stdout.strip()
    return git("rev-parse", "--short=12", "HEAD") + ("-modified" if git("status", "--porcelain", "-uno") else "")


def context(arguments, rigel, peers, missing):
    return {"date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "commit": arguments.commit or commit(),
            **rigel.machine, "versions": {p.package: importlib.metadata.version(p.package) for p in peers}, "missing": missing}


def roomy_folder():
    """A folder in memory, if that has room for more than the table's largest matrix."""
    memory = "/dev/shm"
    return memory if os.path.isdir(memory) and shutil.disk_usage(memory).free > 2**33 else None


def jobs_of(arguments):
    """(part of the report, job, repetitions)."""
    if arguments.products:
        return [("products", Product(*product), arguments.repetitions) for product in PRODUCTS]
    table = [] if arguments.no_table else TABLE
    return [("table", Job(*task), arguments.repetitions) for task in table] + [
        ("sweep", Job(operation, *shape), (arguments.repetitions + 1) // 2)
        for shape, operation in itertools.product(sweep_shapes(arguments.shapes), SWEEP)]


def text_of(report):
    """The report as JSON, one line per row."""
    members = [f'"{name}": ' + ("[\n  " + ",\n  ".join(map(json.dumps, value)) + "]" if isinstance(value, list) else
                               json.dumps(value, indent=1)) for name, value in report.items()]
    return "{" + ",\n".join(members) + "}\n"


def main(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="bench_serve")
    parser.add_argument("output", type=pathlib.Path, help="JSON file to write")
    parser.add_argument("--commit", help="of Rigel, where git is not here to ask")
    parser.add_argument("--repetitions", type=int, default=9, help="of a task of the table; the sweep takes half")
    parser.add_argument("--shapes", type=int, default=200, help="of the sweep")
    parser.add_argument("--without", action="append", default=[], metavar="PEER", help="leave this peer out")
    parser.add_argument("--products", action="store_true", help="the products of tensor cores instead, compared with torch")
    parser.add_argument("--no-table", action="store_true", help="the sweep alone")
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds after which no further row is begun")
    parser.add_argument("--folder", default=roomy_folder(), help="for the matrices' files (default: memory)")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("compare.py: no GPU", file=sys.stderr)
        return 77

    begin = time.monotonic()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        try:
            rigel = Rigel(arguments.program, pathlib.Path(folder))
        except (OSError, RuntimeError) as error:
            print(f"compare.py: {error}", file=sys.stderr)
            return 1
        peers, missing = ([Torch()], {}) if arguments.products else import_peers(arguments.without)
        clock, jobs = Clock(), jobs_of(arguments)
        if not arguments.products:
            begin_peers(peers, first_jobs(job for _, job, _ in jobs))
        parts = ["products"] if arguments.products else ["table", "sweep"]
        report = {"context": context(arguments, rigel, peers, missing), "not_run": 0} | {part: [] for part in parts}
        print(json.dumps(report["context"], indent=1), flush=True)
        for part, job, repetitions in jobs:
            if time.monotonic() - begin > arguments.limit:
                report["not_run"] += 1
                continue
            try:
                if torch.cuda.memory_reserved() > RESERVED:
                    torch.cuda.empty_cache()
                row = (compare_product(job, rigel, clock, repetitions) if arguments.products
                       else compare(job, rigel, peers, clock, repetitions))
            except Exception as error:  # no memory, or a peer left the device in disorder: the rows so far are kept
                row = {**job._asdict(), "kernel": None, "seconds": {}, "largest_error": {}, "mean_error": {},
                       "failed": {"all": f"{type(error).__name__}: {error}"}}
            report[part].append(row)
            print_row(row)

    rows = [row for part in parts for row in report[part]]
    slower, failed = [r for r in rows if r.get("slower")], [r for r in rows if r["failed"]]
    print(f"{len(rows)} tasks in {time.monotonic() - begin:.0f} s: Rigel slower than a peer in {len(slower)}, a failure in "
          f"{len(failed)}, {report['not_run']} not run; missing peers: {', '.join(missing) or 'none'}")
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(text_of(report), encoding="utf-8")
    return 0
