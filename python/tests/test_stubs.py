# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stubs have the functions of the package, with their arguments and defaults."""

import ast
import importlib
import inspect
import pathlib

import pytest

import rigel_semirings as rs

FOLDER = pathlib.Path(rs.__file__).parent


def defaults_of(function):
    return {p.name: (p.kind.name, None if p.default is p.empty else repr(p.default)) for p in inspect.signature(function).parameters.values()}


@pytest.mark.parametrize("module, file", [(rs, "__init__.pyi"), (rs.epilogue, "epilogue.pyi"), ("rigel_semirings.torch", "torch.pyi"),
                                          ("rigel_semirings.jax", "jax.pyi")])
def test_stubs(module, file):
    if isinstance(module, str):
        pytest.importorskip(module.rpartition(".")[2])
        module = importlib.import_module(module)
    body = ast.parse((FOLDER / file).read_text(encoding="utf-8")).body
    declared = {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assert declared == set(module.__all__) - {"epilogue"}
    for node in body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        node.returns = None
        names = {}
        exec(compile(ast.fix_missing_locations(ast.Module([node], [])), file, "exec"), names)
        assert defaults_of(names[node.name]) == defaults_of(getattr(module, node.name)), node.name
