"""Our own source, as trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@cache
def modules(*packages: str) -> dict[str, ast.Module]:
    """Every module of these packages by its path from the root; migrations are history."""
    return {
        str(file.relative_to(ROOT)): ast.parse(file.read_text("utf-8"))
        for package in packages
        for file in sorted((ROOT / package).rglob("*.py"))
        if "versions" not in file.parts
    }


def lines(path: str) -> int:
    return (ROOT / path).read_text("utf-8").count("\n")


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def texts(tree: ast.AST) -> Iterator[ast.Constant]:
    """Every text that stands in the code, docstrings apart."""
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node
