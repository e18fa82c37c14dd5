#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of fit.py on made-up measurements, whose constants are known."""

import json
import math
import pathlib
import random
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import fit  # noqa: E402

MADE_UP = """// numbers 1, 2 of a comment
#pragma once
namespace rigel::backends::cuda::fitted::sm_90 {

/// A family's.
namespace family {
struct Times {
  double first, later;  // cycles
};
struct Both {
  Times one, two;
};
inline constexpr Both tiles = {{100, 2.5}, {300, 4}}, wide = {{1, 2}, {3, 4}};
inline constexpr double prologue = 2574, share = 0.875,
                        inverse = 1 / 2.5;
}  // namespace family

/// Another's.
namespace other {
struct Pace {
  double step = 1, alone = 0.5;
};
inline constexpr Pace pace = {.alone = 0.25}, usual = {};
inline constexpr double unused = 1e-3;
}

}  // namespace rigel::backends::cuda::fitted::sm_90
"""


def measurements(seed, factors, noise):
    """Problems with three kernels each, whose cost is a sum of terms of the constants before they change by `factors`."""
    draw = random.Random(seed)
    names = list(factors)
    rows = []
    for index in range(400):
        for kernel in range(3):
            parts = {name: draw.uniform(1e-6, 1e-4) for name in draw.sample(names, 3)}
            own = draw.uniform(1e-6, 1e-5)  # what no constant explains
            seconds = own + sum(part * (1 + math.log(factors[name])) for name, part in parts.items())
            rows.append(
                {
                    "index": index,
                    "kernel": f"kernel {kernel}",
                    "cost": own + sum(parts.values()),
                    "seconds": seconds * math.exp(noise * draw.gauss(0, 1)),
                    "parts": parts,
                    "error": "",
                }
            )
    return {"rows": rows}


class Header(unittest.TestCase):
    def test_constants_have_their_names_and_values(self):
        values = {c.name: c.value for c in fit.constants_of(MADE_UP)}
        self.assertEqual(
            values,
            {
                "family::tiles.0.0": 100,
                "family::tiles.0.1": 2.5,
                "family::tiles.1.0": 300,
                "family::tiles.1.1": 4,
                "family::wide.0.0": 1,
                "family::wide.0.1": 2,
                "family::wide.1.0": 3,
                "family::wide.1.1": 4,
                "family::prologue": 2574,
                "family::share": 0.875,
                "family::inverse": 0.4,
                "other::pace.alone": 0.25,
                "other::unused": 1e-3,
            },
        )

    def test_the_same_values_are_the_same_bytes(self):
        for text in (MADE_UP, fit.HEADER.read_text()):
            self.assertEqual(fit.with_values(text, {}), text)
            self.assertEqual(fit.with_values(text, {c.name: c.value for c in fit.constants_of(text)}), text)

    def test_other_values_change_their_own_text(self):
        new = fit.with_values(MADE_UP, {"family::tiles.1.0": 1 / 3, "family::inverse": 0.5})
        self.assertEqual(new, MADE_UP.replace("{300, 4}}, w", "{0.333333333333, 4}}, w").replace("1 / 2.5", "0.5"))

    def test_the_librarys_header_is_read_whole(self):
        text = fit.HEADER.read_text()
        constants = fit.constants_of(text)
        self.assertEqual(len({c.name for c in constants}), len(constants))
        code = "".join(line.split("//")[0] for line in text.splitlines(True))
        self.assertEqual(len([c for c in constants]), sum(1 for _ in _numbers(code)))

    def test_variables_have_their_places(self):
        text = fit.variables(MADE_UP)
        self.assertNotIn("constexpr", text)
        self.assertIn('{"family::tiles.1.0", &family::tiles.two.first},', text)
        self.assertIn('{"other::pace.alone", &other::pace.alone},', text)
        self.assertEqual(text.count('      {"'), len(fit.constants_of(MADE_UP)))
        self.assertEqual(fit.variables(fit.HEADER.read_text()).count('      {"'), len(fit.constants_of(fit.HEADER.read_text())))


def _numbers(code):
    """The numbers of definitions: what stands in `inline constexpr`, an expression once."""
    import re

    for definition in re.findall(r"inline constexpr [^;]*;", code):
        yield from re.finditer(r"(?<![\w.])[0-9][0-9.]*(?:e[+-]?[0-9]+)?(?: / [0-9][0-9.]*)?", definition)


class Fit(unittest.TestCase):
    factors = {
        "family::prologue": 1.3,
        "family::share": 0.8,
        "family::tiles.0.0": 1.5,
        "family::tiles.1.1": 1.0,
        "other::pace.alone": 0.7,
    }

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def file(self, name, content):
        path = self.path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def test_known_constants_are_recovered(self):
        for noise, bound in ((0, 0.005), (0.05, 0.03)):
            problems = fit.problems_in([self.file("1.json", measurements(1, self.factors, noise))])
            x = fit.fitted(problems)
            for name, factor in self.factors.items():
                self.assertAlmostEqual(math.exp(x[name]) / factor, 1, delta=bound, msg=f"{name}, noise {noise}")

    def test_outliers_do_not_count(self):
        data = measurements(1, self.factors, 0)
        for row in data["rows"][::20]:
            row["seconds"] *= 10  # another program's turn
        x = fit.fitted(fit.problems_in([self.file("1.json", data)]))
        for name, factor in self.factors.items():
            self.assertAlmostEqual(math.exp(x[name]) / factor, 1, delta=0.03, msg=name)

    def test_choices_on_other_seeds_get_better(self):
        train = fit.problems_in([self.file("1.json", measurements(1, self.factors, 0))])
        others = fit.problems_in([self.file("2.json", measurements(2, self.factors, 0))])
        near = lambda x: sum(loss <= 1.01 for loss in fit.losses(others, x)) / len(others)
        before, after = near({}), near(fit.fitted(train))
        self.assertLess(before, 0.95)
        self.assertGreater(after, 0.99)

    def test_the_header_is_reproduced(self):
        train, other = self.file("1.json", measurements(1, self.factors, 0)), self.file("2.json", measurements(2, self.factors, 0))
        texts = []
        for name in ("a.hpp", "b.hpp"):
            header = self.file(name, MADE_UP)
            self.assertEqual(fit.main([train, "--held-out", other, "--header", header, "--write"]), 0)
            texts.append(pathlib.Path(header).read_text())
        self.assertEqual(texts[0], texts[1])
        values = {c.name: c.value for c in fit.constants_of(texts[0])}
        self.assertAlmostEqual(values["family::prologue"] / (2574 * 1.3), 1, delta=0.005)
        self.assertEqual(values["other::unused"], 1e-3)
        # Without --write it stays.
        header = self.file("c.hpp", MADE_UP)
        fit.main([train, "--held-out", other, "--header", header])
        self.assertEqual(pathlib.Path(header).read_text(), MADE_UP)

    def test_files_without_parts_are_refused(self):
        data = measurements(1, self.factors, 0)
        for row in data["rows"]:
            row["parts"] = None
        with self.assertRaisesRegex(ValueError, "RIGEL_FIT"):
            fit.problems_in([self.file("1.json", data)])

    def test_constants_of_another_header_are_refused(self):
        data = self.file("1.json", measurements(1, {**self.factors, "gone::number": 1.1}, 0))
        with self.assertRaisesRegex(ValueError, "has no constant gone::number"):
            fit.main([data, "--held-out", data, "--header", self.file("a.hpp", MADE_UP)])


if __name__ == "__main__":
    unittest.main()
