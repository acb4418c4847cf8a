"""Which names a cell's code binds, changes and uses, found by reading it."""

import ast
from dataclasses import dataclass

_IMPORTS = (ast.Import, ast.ImportFrom)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Names:
    """The names of one cell.

    Attributes:
        bound: what it gives a value: by assignment, definition, import, a loop or a `with`.
        changed: what it may change in place: `x[0] = 1`, `x.a = 1`, `x += 1`, `x.append(1)` as a statement, `del x`.
        used: what it reads, in the bodies of functions as well.
    """

    bound: frozenset[str]
    changed: frozenset[str]
    used: frozenset[str]


def names_of(tree: ast.AST) -> Names:
    """The names of some code; those that live in a function or a comprehension only are counted as used at most."""
    bound, changed, used = set(), set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                used.add(node.id)
            elif isinstance(node.ctx, ast.Del):
                changed.add(node.id)
        elif isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            changed |= _base(node)
        elif isinstance(node, ast.AugAssign):
            changed |= _base(node.target)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            changed |= _base(node.value.func) if isinstance(node.value.func, ast.Attribute) else set()
    _bind(tree, bound)
    return Names(frozenset(bound), frozenset(changed), frozenset(used | changed))


def _bind(node: ast.AST, bound: set[str]) -> None:
    """Gather what is bound outside functions, classes and comprehensions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _DEFINITIONS):
            bound.add(child.name)
        elif isinstance(child, _IMPORTS):
            bound |= {(alias.asname or alias.name).split(".")[0] for alias in child.names}
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            bound.add(child.id)
        elif isinstance(child, ast.ExceptHandler) and child.name:
            bound.add(child.name)
            _bind(child, bound)
        elif not isinstance(child, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            _bind(child, bound)


def _base(node: ast.AST) -> set[str]:
    """The name at the front of `name.a[0].b`."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()
