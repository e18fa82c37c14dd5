#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fails unless the tensor-core kernels of Rigel hold the instructions that they are made of: their kind of mma.sync, ldmatrix and
asynchronous copies, or of wgmma and tensor copies, as many products as a slab has, and no load or store of a register that was
spilled.

usage: check_instructions.py [--cuobjdump PROGRAM] FOLDER...

Each FOLDER holds object files of CUDA kernels for one architecture or several; PROGRAM (NVIDIA's cuobjdump, which wants nvdisasm on
the PATH) lists their machine code. Prints a line for every kind of kernel. Exit status: 0, all have them; 1, one has not; 2, there
is no tensor-core kernel.
"""

import argparse
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

# mma::multiply<semiring, element, decomposition, finish, mma::Shape<warps m, warps n, outputs m, outputs n, …>, …>, as mangled
KERNEL = re.compile(r"3mma8multiplyI.*5ShapeILi(\d+)ELi(\d+)ELi(\d+)ELi(\d+)ELi\d+ELi\d+EE")
# tensor::Decomposition{planes, products, promoted, grouping}, without zeros at its end
DECOMPOSITION = re.compile(r"13DecompositionE((?:Li\d+E)+)E")
DIRECTIONS = re.compile(r"9DirectionE(\d)ELS\w*_(\d)E")  # tile::Direction of A and of B
# hopper::multiply<semiring, element, hopper::Parts<planes, products, promoted>, finish, hopper::Shape<tiles, rows, n, stages, cluster, long sums>, …>
GROUPS = re.compile(r"6hopper8multiplyI.*5PartsILi(\d+)ELi(\d+)ELb\d.*5ShapeIL\w+?5TilesE\dELi(\d+)ELi(\d+)ELi\d+ELi(\d+)ELb\dEE")
# hopper::multiply_once<semiring, element, finish, hopper::Once<n, parts, tiles, stages, long sums, groups>, …>
ONCE = re.compile(r"6hopper13multiply_onceI.*4OnceILi(\d+)ELi(\d+)ELi(\d+)ELi\d+ELb\dELi\d+EE")
ANY = re.compile(r"(3mma|6hopper)(8multiply|13multiply_once)I")
# Instructions for 16 rows by 8 columns of outputs and a slab of 128 bytes of k.
PRODUCTS = {"HMMA.16816.F32": 4, "HMMA.16816.F32.BF16": 4, "HMMA.1688.F32.TF32": 4, "IMMA.16832.S8.S8": 4, "IMMA.16832.U8.U8": 4,
            "BMMA.168256.AND.POPC": 4, "DMMA.16x8x8": 2, "DMMA.884": 8}
# The kernels that each architecture must have, in addition to those of doubles.
KINDS = [kind for kind in PRODUCTS if not kind.startswith("DMMA")]
# Kinds of wgmma, without their columns, that there are kernels of where there are any.
WGMMA = ["HGMMA.16.F32", "HGMMA.16.F32.BF16", "HGMMA.8.F32.TF32", "IGMMA.32.S8.S8", "IGMMA.32.U8.U8"]


def enumerators(header, enumeration):
    """Their names, in the order of their values."""
    text = (Path(__file__).parent.parent / header).read_text()
    return re.findall(r"\w+", re.search(rf"enum class {enumeration}\b[^{{]*{{([^}}]*)}}", text)[1])


ALONG_LINES = enumerators("backends/cuda/tile/direction.hpp", "Direction").index("along_lines")


def functions(text):
    """(architecture, name, instructions) of each function in a listing."""
    architecture, name, found = "?", None, Counter()
    for line in text.splitlines():
        if match := re.match(r"\s*code for (sm_\w+)", line):
            architecture = match[1]
        elif match := re.match(r"\s*Function : (\S+)", line):
            if name:
                yield of, name, found
            of, name, found = architecture, match[1], Counter()
        elif match := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][\w.]*)", line):
            found[match[1]] += 1
    if name:
        yield of, name, found


def kind_of(instruction):
    """A product's kind: of wgmma without the extents of its outputs."""
    return re.sub(r"GMMA\.64x\d+x", "GMMA.", instruction)


def wgmma_lacks(name, found):
    """What a kernel of wgmma lacks, as texts: a slab has 128 bytes of k, or of each of several planes 64."""
    if once := ONCE.search(name):
        n, parts, cluster = map(int, once.groups())
        planes = of_number = rows = 1
    else:
        planes, of_number, rows, n, cluster = map(int, GROUPS.search(name).groups())
        parts = 1
    products = [kind for kind in found if "MMA" in kind]
    if len(products) != 1 or kind_of(products[0]) not in WGMMA or f".64x{n}x" not in products[0]:
        return [f"one kind of products, of {n} columns: {products}"]
    wanted = rows * (4 if planes == 1 else 2 * of_number)
    texts = []
    if found[products[0]] != wanted:
        texts.append(f"{wanted} {products[0]}: {found[products[0]]}")
    if not found["UTMALDG.3D"] or bool(found["UTMALDG.3D.MULTICAST"]) != (cluster > 1):
        texts.append("UTMALDG, to all blocks of a cluster where there are several")
    if bool(found["STAS.128"]) != (parts > 1):
        texts.append("STAS of 16 bytes, where blocks of a cluster have parts of K")
    return texts + [f"no {kind}" for kind in found if re.match(r"(LDL|STL)\b", kind)]


def lacks(name, found):
    """What a kernel lacks, as texts."""
    if GROUPS.search(name) or ONCE.search(name):
        return wgmma_lacks(name, found)
    warps_m, warps_n, outputs_m, outputs_n = map(int, KERNEL.search(name).groups())
    products = [kind for kind in found if "MMA" in kind]
    if len(products) != 1 or products[0] not in PRODUCTS:
        return [f"one kind of products: {products}"]
    # A slab has 128 bytes of k, of each of several planes 64.
    planes, of_number, promoted, _ = ([*map(int, re.findall(r"\d+", DECOMPOSITION.search(name)[1])), 0, 0, 0])[:4]
    wanted = PRODUCTS[products[0]] * (outputs_m // 16) * (outputs_n // 8) * of_number // min(planes, 2)
    turns = 2 if planes > 1 and promoted == 16 else 1  # the two steps of a slab are a loop
    wanted //= turns
    texts = []
    if found[products[0]] != wanted:
        texts.append(f"{wanted} {products[0]}: {found[products[0]]}")
    doubles, halves = products[0].startswith("DMMA"), products[0].startswith("HMMA.16816")
    for outputs, direction in zip((outputs_m, outputs_n), DIRECTIONS.search(name).groups()):
        one_by_one = doubles or (int(direction) == ALONG_LINES and not halves)
        reads = "LDS.64" if doubles else "LDS" if one_by_one else "LDSM"
        wanted = outputs // 16 * (2 if doubles else 6 if planes == 3 else 4) * (4 if one_by_one else 1) // turns
        if (count := sum(found[kind] for kind in found if kind == reads or kind.startswith(reads + ".") and reads != "LDS")) < wanted:
            texts.append(f"at least {wanted} {reads}: {count}")
    if not any(kind.startswith("LDGSTS") and ".128" in kind for kind in found):
        texts.append("LDGSTS of 16 bytes")
    texts += [f"no {kind}" for kind in found if re.match(r"(LDL|STL)\b", kind)]
    return texts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuobjdump", default="cuobjdump")
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    arguments = parser.parse_args()
    kinds, bad, checked = Counter(), 0, 0
    for folder in arguments.folders:
        before = checked
        for path in sorted(Path(folder).rglob("*.o")):
            if not ANY.search(path.read_bytes().decode("latin-1")):
                continue
            listing = subprocess.run([arguments.cuobjdump, "-sass", path], capture_output=True, text=True, check=True).stdout
            for architecture, name, found in functions(listing):
                if not ANY.search(name):
                    continue
                if not any(kind.search(name) for kind in (KERNEL, GROUPS, ONCE)):
                    bad += 1
                    print(f"check_instructions: {architecture} {name} is not understood")
                    continue
                checked += 1
                kinds.update((architecture, kind_of(kind)) for kind in found if "MMA" in kind)
                if missing := lacks(name, found):
                    bad += 1
                    print(f"check_instructions: {architecture} {name} lacks {', '.join(missing)}")
        if checked == before:
            bad += 1
            print(f"check_instructions: {folder} has no tensor-core kernel")
    for architecture in {architecture for architecture, _ in kinds}:
        of = {kind for where, kind in kinds if where == architecture}
        wanted = list(WGMMA) if any("GMMA" in kind for kind in of) else []
        if any("GMMA" not in kind for kind in of):
            wanted += [*KINDS, "DMMA.884" if architecture == "sm_80" else "DMMA.16x8x8"]
        for kind in wanted:
            if not kinds[architecture, kind]:
                bad += 1
                print(f"check_instructions: {architecture} has no kernel of {kind}")
    for (architecture, kind), count in sorted(kinds.items()):
        print(f"{architecture:<8} {count:>4} kernels of {kind}")
    print(f"check_instructions: {checked} tensor-core kernels, {bad} without their instructions")
    return 2 if checked == 0 else 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
