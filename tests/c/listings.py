#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The JSON that `test_c11 --json` prints: it can be read, and holds what rigel.h says. usage: listings.py <program>"""
import json
import os
import subprocess
import sys
import tempfile

# In German a comma comes before decimals, but not in JSON. Without Debian's package locales the program runs in the C locale.
with tempfile.TemporaryDirectory() as folder:
    try:
        subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", f"{folder}/de_DE.UTF-8"], capture_output=True)
    except FileNotFoundError:
        pass
    environment = dict(os.environ, LOCPATH=folder, LC_ALL="de_DE.UTF-8")
    run = subprocess.run([sys.argv[1], "--json"], capture_output=True, text=True, env=environment)
if run.returncode == 77:
    print(run.stdout, end="")
    sys.exit(77)
assert run.returncode == 0, run.stdout + run.stderr
everything, references, product, distance, kernel, difference, system, gradient, reduction, neighbours = json.loads(run.stdout)

assert len(everything) > len(references) > 0
assert {kernel["family"] for kernel in references} == {"reference"}
reference = next(kernel for kernel in references if kernel["name"] == "reference.min_plus.f32")
assert reference["promises"] == ["reference_bits", "repeatable", "batch_invariant"]
assert reference["operation"] == "contract" and reference["accumulator"] == "f32" and "serial" in reference["spaces"]
assert reference["operands"] == {name: {"layout": "any", "alignment": 1} for name in "ABC"} and reference["transposes"] is False
assert reference["tile"] == {"m": 0, "n": 0, "k": 0} and reference["accumulates"] is True

parts = {part["part"]: part for part in gradient["parts"]}
assert list(parts) == ["distances", "dZ", "dX"] and gradient["bytes"] > 0 and gradient["block_rows"] == 2
for explained, problem in (
    (product, "plus_times f32, 2x2x2"),
    (distance, "l2_squared f32, 2x2x2"),
    (kernel, "l1 f32, 2x2x2"),
    (difference, "euclidean f32, 2x2x2, k 2"),
    (system, "lu f32, 2x2, 2 right sides"),
    (reduction, "2 smallest of min_plus f32, 2x2x2"),
    (neighbours, "2 smallest of l2_squared f32, 2x2x2"),
    (parts["distances"], "l1 f32, 2x2x2"),
    (parts["dZ"], "manhattan f32, 1x2x2, k 2"),
    (parts["dX"], "manhattan f32, 1x2x2, k 2"),
):
    assert explained["problem"] == problem, explained["problem"]
    candidates = explained["candidates"]
    assert sum(one["chosen"] for one in candidates) == 1
    for one in candidates:
        facts = one["facts"]
        assert facts["name"] == one["kernel"] and facts.keys() == reference.keys()
        if one["covers"]:
            assert one["seconds"] > 0 and one["workspace_bytes"] >= 0
        else:
            assert one["reason"] and not one["chosen"]
    fastest = min((one for one in candidates if one["covers"]), key=lambda one: one["seconds"])
    assert fastest["seconds"] == next(one for one in candidates if one["chosen"])["seconds"]
print(f"{len(everything)} kernels, {len(product['candidates'])} candidates")
