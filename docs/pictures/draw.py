#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the pictures of the documentation, as SVG next to this script: call, tile, distances, bit_classes, and peers, whose numbers
come from bench/results/.

    draw.py            writes them
    draw.py --check    fails if a picture is not what this would write, or a picture is on no page
"""
import json
import math
import pathlib
import sys
from xml.sax.saxutils import escape

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

INK, GREY, PALE, WHITE = "#1f2933", "#66727f", "#eef1f4", "#ffffff"
BLUE, GREEN, ORANGE, VIOLET = "#2b6cb0", "#2f855a", "#c05621", "#6b46c1"
TINT = {BLUE: "#dbe9f8", GREEN: "#d9f0e3", ORANGE: "#fbe3d3", VIOLET: "#e7dff7", GREY: PALE}


class Picture:
    """A drawing of fixed size, in units of a pixel."""

    def __init__(self, width, height, title):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'font-family="Helvetica, Arial, sans-serif" font-size="14" role="img" aria-label="{escape(title)}">',
            f"<title>{escape(title)}</title>",
            "<defs>" + "".join(
                f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
                f'<path d="M0 0L10 5L0 10z" fill="{colour}"/></marker>'
                for name, colour in (("ink", INK), ("orange", ORANGE), ("green", GREEN))) + "</defs>",
            f'<rect width="{width}" height="{height}" rx="8" fill="{WHITE}"/>',
        ]

    def text(self, x, y, words, size=14, colour=INK, anchor="start", bold=False, mono=False):
        style = f' font-size="{size}"' if size != 14 else ""
        style += f' text-anchor="{anchor}"' if anchor != "start" else ""
        style += ' font-weight="bold"' if bold else ""
        style += ' font-family="DejaVu Sans Mono, Menlo, Consolas, monospace"' if mono else ""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" fill="{colour}"{style}>{escape(words)}</text>')

    def rectangle(self, x, y, width, height, fill=PALE, stroke=None, round_by=0, dashed=False):
        style = f' stroke="{stroke}"' if stroke else ""
        style += f' rx="{round_by}"' if round_by else ""
        style += ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}"{style}/>')

    def line(self, x1, y1, x2, y2, colour=INK, width=1.5, arrow=None, dashed=False):
        style = f' marker-end="url(#{arrow})"' if arrow else ""
        style += ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}" stroke-width="{width:g}"{style}/>')

    def path(self, d, colour=INK, arrow=None):
        style = f' marker-end="url(#{arrow})"' if arrow else ""
        self.parts.append(f'<path d="{d}" fill="none" stroke="{colour}" stroke-width="1.5"{style}/>')

    def box(self, x, y, width, height, colour, heading, lines=(), mono=False):
        """A heading and lines of small print in a frame."""
        self.rectangle(x, y, width, height, TINT[colour], colour, 6)
        top = y + height / 2 + 5 - 9 * len(lines)
        self.text(x + width / 2, top, heading, anchor="middle", bold=True, mono=mono)
        for i, words in enumerate(lines):
            self.text(x + width / 2, top + 18 * (i + 1), words, 12, GREY, "middle")

    def finish(self):
        return "\n".join([*self.parts, "</svg>", ""])


def call():
    """The way of a call, from views to C."""
    p = Picture(860, 620, "The way of a call: from views to C")
    left, width = 30, 380
    steps = [
        (BLUE, "contract(exec, S, A, B, C, epilogue, options)", ["views: your types, checked by the compiler"], "include/rigel"),
        (BLUE, "Contraction", ["data: names, types, pointers, extents, strides"], ""),
        (VIOLET, "check", ["extents, batches, overlap"], "src/engine"),
        (VIOLET, "candidates", ["every kernel for this semiring and these types"], ""),
        (VIOLET, "select", ["least predicted time of those that may run"], ""),
        (VIOLET, "workspace", ["yours, or leased from Rigel's pool"], ""),
        (GREEN, "kernel", ["enqueued on exec: pack, tiles, epilogue, store"], "backends/…"),
    ]
    notes = {
        0: ["A call that cannot be right does not compile."],
        2: ["Error(invalid_argument): names the argument, its", "extents and what was expected. Nothing is written."],
        3: ["explain() prints each with its predicted time,", "or with the reason why it does not cover the call."],
        4: ["options.require: promises about bits", "options.precision: how accurate at least", "options.kernel: one kernel or family by name"],
        5: ["options.workspace, presize() for captured calls"],
        6: ["C is complete when exec gets there.", "Kokkos Tools see the kernel's name."],
    }
    gap, height = 84, 60
    for i, (colour, heading, lines, folder) in enumerate(steps):
        y = 20 + gap * i
        p.box(left, y, width, height, colour, heading, lines)
        if i:
            p.line(left + width / 2, y - gap + height, left + width / 2, y - 1, arrow="ink")
        if i in notes:
            p.line(left + width + 4, y + height / 2, left + width + 34, y + height / 2, GREY, 1, dashed=True)
            for j, words in enumerate(notes[i]):
                p.text(left + width + 42, y + height / 2 + 5 + 18 * j - 9 * (len(notes[i]) - 1), words, 13)
    for (first, last, colour, name) in ((0, 1, BLUE, "include/rigel"), (2, 5, VIOLET, "src/engine"), (6, 6, GREEN, "backends")):
        top, bottom = 20 + gap * first, 20 + gap * last + height
        p.line(840, top, 840, bottom, colour, 3)
        middle = (top + bottom) / 2
        p.parts.append(f'<text transform="translate(832 {middle:g}) rotate(-90)" text-anchor="middle" font-size="12" '
                       f'fill="{colour}">{name}</text>')
    return p.finish()


def tile():
    """A tile's life: which parts of A and B it reads, and when."""
    p = Picture(860, 580, "A tile's life: slabs along K in shared memory, sums in registers, epilogue, store")
    p.text(30, 34, "Where: one block computes one tile of C", bold=True)
    a, b, c = (50, 190), (260, 60), (260, 190)
    p.rectangle(*a, 180, 150, PALE, GREY)
    p.rectangle(*b, 180, 110, PALE, GREY)
    p.rectangle(*c, 180, 150, PALE, GREY)
    p.rectangle(a[0], 230, 180, 44, TINT[BLUE], BLUE)
    p.rectangle(330, b[1], 44, 110, TINT[GREEN], GREEN)
    p.rectangle(330, 230, 44, 44, TINT[VIOLET], VIOLET)
    for i in range(1, 6):
        p.line(a[0] + 30 * i, 230, a[0] + 30 * i, 274, BLUE, 1)
    for i in range(1, 4):
        p.line(330, b[1] + 27.5 * i, 374, b[1] + 27.5 * i, GREEN, 1)
    p.text(140, 180, "A, M × K", anchor="middle")
    p.text(250, 120, "B, K × N", anchor="end")
    p.text(350, 360, "C, M × N", anchor="middle")
    p.text(140, 294, "slabs, k ascending →", 12, BLUE, "middle")
    p.text(382, 76, "slabs ↓", 12, GREEN)
    p.text(382, 257, "tile", 12, VIOLET)
    x = 500
    p.text(x, 34, "What holds it", bold=True)
    for i, (colour, heading, lines) in enumerate((
            (GREY, "global memory", ["A, B and C, in any layout"]),
            (BLUE, "shared memory", ["two or more slabs of A and of B in flight"]),
            (VIOLET, "registers", ["a block of outputs for each thread,", "one chain of ⊕ each"]))):
        y = 60 + 104 * i
        p.box(x, y, 320, 72, colour, heading, lines)
        if i:
            p.line(x + 60, y - 32, x + 60, y - 1, arrow="ink")
            p.text(x + 74, y - 12, ("asynchronous copies of slabs", "fragments of a few k")[i - 1], 12)
    p.path(f"M {x + 320} 304 h 18 V 96 h -17", VIOLET, "ink")
    p.text(30, 408, "When: copies run while earlier slabs are multiplied", bold=True)
    origin, wide = 130, 96
    p.text(30, 446, "copy", 13)
    p.text(30, 486, "⊗ and ⊕", 13)
    p.text(30, 526, "epilogue, store", 13)
    for i in range(4):
        p.rectangle(origin + wide * i, 428, wide - 4, 28, TINT[BLUE], BLUE, 4)
        p.text(origin + wide * i + wide / 2 - 2, 447, f"slab {i}", 12, BLUE, "middle")
        p.rectangle(origin + wide * (i + 1), 468, wide - 4, 28, TINT[VIOLET], VIOLET, 4)
        p.text(origin + wide * (i + 1) + wide / 2 - 2, 487, f"slab {i}", 12, VIOLET, "middle")
    p.rectangle(origin + wide * 5, 508, 1.4 * wide - 4, 28, TINT[GREEN], GREEN, 4)
    p.text(origin + wide * 5.7 - 2, 527, "v → f(v, m, n) → C", 12, GREEN, "middle")
    p.rectangle(origin + wide * 5, 428, wide - 4, 28, WHITE, GREY, 4, dashed=True)
    p.text(origin + wide * 5.5 - 2, 447, "next tile", 12, GREY, "middle")
    p.line(origin, 556, 820, 556, GREY, 1, arrow="ink")
    p.text(826, 560, "t", 13, GREY)
    return p.finish()


def distances():
    """Euclidean distances on tensor cores, and what the guard does."""
    p = Picture(860, 520, "Euclidean distances on tensor cores, with a guard against cancellation")
    p.text(30, 34, "|x − z|² = |x|² + |z|² − 2·x·z : a product, which cancels if x and z are near each other", bold=True)
    p.box(30, 60, 180, 84, BLUE, "rows x and z", ["less a common centre,", "scaled, as pairs of halves"])
    p.box(260, 50, 210, 44, VIOLET, "x·z on tensor cores")
    p.box(260, 110, 210, 44, VIOLET, "|x|², |z|² in double")
    p.box(520, 60, 130, 84, VIOLET, "D", ["= |x|² + |z|² − 2x·z", "s = |x|² + |z|²"])
    p.box(700, 60, 130, 84, ORANGE, "guard", ["D above a", "fraction of s?"])
    p.line(210, 92, 259, 76, arrow="ink")
    p.line(210, 112, 259, 130, arrow="ink")
    p.line(470, 74, 519, 92, arrow="ink")
    p.line(470, 132, 519, 114, arrow="ink")
    p.line(650, 102, 699, 102, arrow="ink")
    p.path("M 735 144 V 180 H 652", GREEN, "green")
    p.text(700, 172, "yes", 13, GREEN)
    p.path("M 785 144 V 246 H 652", ORANGE, "orange")
    p.text(793, 200, "no", 13, ORANGE)
    p.box(420, 160, 230, 40, GREEN, "kept, then the root")
    p.box(420, 218, 230, 56, ORANGE, "recomputed", ["Σ (x_k − z_k)² by subtraction"])
    p.text(30, 190, "The error of the product is", 13)
    p.text(30, 210, "relative to s, not to D.", 13)
    p.text(30, 230, "Above the threshold that is", 13)
    p.text(30, 250, "still 1.01·10⁻⁵ of the distance;", 13)
    p.text(30, 270, "below it, nothing is promised.", 13)
    x0, x1, base, top = 100, 800, 470, 330
    p.text(30, 312, "Relative error of D, by how near the points are", bold=True)
    p.line(x0, base, x1 + 15, base, arrow="ink")
    p.line(x0, base, x0, top - 8, arrow="ink")
    p.text(x1 + 20, base + 5, "D / s", 13)
    p.text(x0 - 8, top, "error", 13, anchor="end")
    threshold = x0 + 0.19 * (x1 - x0)
    p.rectangle(x0 + 1, top, threshold - x0 - 1, base - top - 1, TINT[ORANGE])
    p.rectangle(threshold, top, x1 - threshold, base - top - 1, TINT[GREEN])
    limit = 402

    def curve(begin, end):
        points = [begin + (end - begin) * i / 60 for i in range(61)]
        height = (base - limit) * 0.19
        return "M " + " L ".join(f"{x0 + share * (x1 - x0):.1f} {base - height / share:.1f}" for share in points)

    p.path(curve(0.093, 1), ORANGE)
    p.line(x0, limit, x1, limit, INK, 1, dashed=True)
    p.text(x1 - 4, limit - 8, "bound: 336·u of D, 1.01·10⁻⁵ of the distance", 13, anchor="end")
    p.line(x0 + 1, base - 8, threshold, base - 8, BLUE, 3)
    p.text(threshold + 8, base - 6, "← by subtraction", 12, BLUE)
    p.text(threshold - 10 + 36, top + 18, "product (error ∝ s / D)", 13, ORANGE)
    p.line(threshold, top, threshold, base + 6, INK, 1)
    p.text(threshold, base + 22, "threshold (β + 4)/334", 12, anchor="middle")
    p.text(x0, base + 22, "near", 12, GREY, "middle")
    p.text(x1, base + 22, "far", 12, GREY, "middle")
    return p.finish()


def bit_classes():
    """Which kernels have the same bits, and what decides under batch_invariant."""
    p = Picture(860, 540, "Bit classes: kernels that give identical bits for identical operands")
    p.text(30, 34, "A bit class: kernels that add in the same order with the same roundings", bold=True)

    def group(x, y, width, height, colour, name, kernels, words):
        p.rectangle(x, y, width, height, TINT[colour], colour, 8)
        p.text(x + 14, y + 24, name, bold=True, colour=colour, mono=True)
        for i, kernel in enumerate(kernels):
            left = x + 14 + i * ((width - 28 + 8) / len(kernels))
            p.rectangle(left, y + 38, (width - 28 + 8) / len(kernels) - 8, 34, WHITE, colour, 4)
            p.text(left + ((width - 28 + 8) / len(kernels) - 8) / 2, y + 59, kernel, 12, anchor="middle")
        for i, line in enumerate(words):
            p.text(x + 14, y + 94 + 17 * i, line, 12, GREY)

    group(30, 54, 800, 126, BLUE, "reference", ["reference", "portable", "host", "cuda.simt"],
          ["one chain for each output, k ascending: the same bits on every host and GPU, in every tile, layout and batch",
           "require = Promise::reference_bits asks for it; kernels with split K, or powers and exponentials of their own, are not in it"])
    group(30, 196, 256, 126, VIOLET, "cuda.mma", ["large tile", "small tile"],
          ["mma.sync, steps of 32 bytes along K;", "one more class per decomposition"])
    group(302, 196, 256, 126, GREEN, "cuda.hopper", ["large tiles", "single-tile"],
          ["wgmma, other steps along K;", "one more class per decomposition"])
    group(574, 196, 256, 126, ORANGE, "split K", ["split_k2", "split_k4"],
          ["slices of K, joined in a fixed order:", "each is a class of its own"])
    p.text(30, 356, "require = Promise::batch_invariant: what decides the class, and what only decides the tile", bold=True)
    p.box(30, 374, 240, 64, BLUE, "N, K, types, options", ["the GPU's architecture"])
    p.box(30, 454, 240, 64, GREY, "M, batches, layouts", ["the size of the card"])
    p.box(340, 374, 220, 64, VIOLET, "bit class", ["of the fastest kernel for a", "nominal problem of 1024 rows"])
    p.box(340, 454, 220, 64, GREY, "kernel of that class", ["the least predicted time"])
    p.box(620, 410, 210, 72, GREEN, "a row's bits", ["the same alone, in any batch,", "next to any other rows"])
    p.line(270, 406, 339, 406, arrow="ink")
    p.line(270, 486, 339, 486, arrow="ink")
    p.line(450, 438, 450, 453, arrow="ink")
    p.path("M 560 406 H 590 V 434 H 619", INK, "ink")
    p.path("M 560 486 H 590 V 458 H 619", INK, "ink")
    return p.finish()


def results(name, part):
    return json.loads((ROOT / "bench" / "results" / "h200" / name).read_text(encoding="utf-8"))[part]


def bars():
    """(label, Rigel's seconds, the best peer's, its name) for the README."""
    table = {}  # of each operation its largest problem
    for row in sorted(results("compare.json", "table"), key=lambda row: row["m"] * row["n"] * row["k"]):
        table[row["operation"]] = row
    for operation, label in (("cdist:1", "Manhattan distances"), ("cdist:2", "Euclidean distances, by subtraction"),
                             ("cdist:1.3", "Minkowski distances, p = 1.3"), ("cdist:3", "Minkowski distances, p = 3"),
                             ("min_plus", "shortest paths, min-plus"), ("max_min", "widest paths, max-min"),
                             ("log_plus", "log-sum-exp"), ("plus_times", "products of f32, in f32 arithmetic")):
        row = table[operation]
        peers = {name: t for name, t in row["seconds"].items() if name not in ("rigel", "torch, by a product")}
        best = min(peers, key=peers.get)
        yield label, row["seconds"]["rigel"], peers[best], best
    labels = {("f32", "f32", "promoted"): "products of f32, default", ("bf16", "bf16", "accumulator"): "products of bf16",
              ("f64", "f64", "accumulator"): "products of f64", ("i8", "i32", "accumulator"): "products of int8"}
    for row in results("products.json", "products"):
        words = labels.get((row["element"], row["result"], row["precision"]))
        if words and not row["kernels"] and row["m"] == row["n"] == row["k"] == 8192:
            yield words, row["seconds"]["rigel"], row["seconds"]["torch"], "torch"


def milliseconds(seconds):
    return f"{1e3 * seconds:.3g}" if seconds < 1 else f"{1e3 * seconds:.0f}"


def peers():
    """The README's picture: how many times as long the fastest of other libraries takes."""
    rows = sorted(bars(), key=lambda row: -row[2] / row[1])
    left, right, top, step = 260, 600, 84, 29
    height = top + step * len(rows) + 46
    p = Picture(860, height, "Time of the fastest other library over Rigel's, on an NVIDIA H200")
    p.text(30, 32, "How many times as long the fastest other library takes", 16, bold=True)
    p.text(30, 52, "One NVIDIA H200; torch (cuBLAS), kermac, mm-kermac; 8192³, 4096³ (log-sum-exp), 30000² × 1024 (distances)", 12, GREY)

    def place(ratio):
        return left + (right - left) * (math.log2(ratio) + 0.5) / (math.log2(32) + 0.5)

    bottom = top + step * len(rows)
    for ratio in (1, 2, 4, 8, 16, 32):
        p.line(place(ratio), top - 6, place(ratio), bottom, INK if ratio == 1 else "#cfd6dd", 1)
        p.text(place(ratio), bottom + 18, f"{ratio}×", 12, GREY, "middle")
    p.text(620, top - 12, "Rigel, ms", 12, GREY)
    p.text(700, top - 12, "other, ms", 12, GREY)
    for i, (label, own, other, name) in enumerate(rows):
        y, ratio = top + step * i, other / own
        colour = GREEN if ratio >= 1 else ORANGE
        p.text(left - 14, y + 17, label, 13, anchor="end")
        begin, end = sorted((place(1), place(ratio)))
        p.rectangle(begin, y + 3, end - begin, step - 9, colour)
        if ratio < 1:
            p.text(begin - 4, y + 17, f"{ratio:.2f}", 12, colour, "end")
        elif end > right - 60:
            p.text(end - 6, y + 17, f"{ratio:.1f}", 12, WHITE, "end", bold=True)
        else:
            p.text(end + 6, y + 17, f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}", 12, colour)
        p.text(674, y + 17, milliseconds(own), 12, anchor="end")
        p.text(752, y + 17, milliseconds(other), 12, anchor="end")
        p.text(764, y + 17, name, 12, GREY)
    p.text(30, bottom + 38, "bench/results/h200: compare.json, products.json", 11, GREY)
    return p.finish()


PICTURES = {"call": call, "tile": tile, "distances": distances, "bit_classes": bit_classes, "peers": peers}


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        print(__doc__)
        return 2
    failures = []
    for name, draw in PICTURES.items():
        path = FOLDER / f"{name}.svg"
        drawn = draw()
        if not check:
            path.write_text(drawn, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != drawn:
            failures.append(f"docs/pictures/{name}.svg is not what docs/pictures/draw.py writes: run it")
    if check:
        pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
        failures += [f"no page shows docs/pictures/{name}.svg" for name in PICTURES if f"pictures/{name}.svg" not in pages]
        failures += [f"docs/pictures/{path.name} is not written by draw.py" for path in FOLDER.glob("*.svg") if path.stem not in PICTURES]
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
