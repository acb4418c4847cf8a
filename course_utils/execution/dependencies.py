"""What the outputs of a notebook depend on besides its own cells: library modules and data files.

Found by reading the code, without running it. Comments, docstrings and layout of a module do not count.
"""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from course_utils.execution.source import digest

_NOT_DATA = {".py", ".pyc", ".ipynb"}


def dependency_digests(code: str, package: Path) -> dict[str, str]:
    """A digest of each file that some code depends on.

    Modules are followed through their imports. A data file of the package counts if its name stands as a string in
    the code or in one of the modules, and a saved model beside the package if its name without the ending does.

    Args:
        code: the source of a notebook.
        package: folder of the library.

    Returns:
        Digests by path, relative to the folder that holds the package, sorted by path.

    Raises:
        SyntaxError: if the code or a module is no Python.
    """
    tree = ast.parse(code)
    modules = _modules_behind(tree, package)
    found = {path: digest(repr(_canonical(module))) for path, module in modules.items()}
    literals = {text for parsed in (tree, *modules.values()) for text in _strings(parsed)}
    for path in _data_files(package, literals):
        found[path] = digest(path.read_bytes())
    return {path.relative_to(package.parent).as_posix(): found[path] for path in sorted(found)}


def _modules_behind(tree: ast.Module, package: Path) -> dict[Path, ast.Module]:
    """Every module of the package that is imported, directly or by another of them."""
    modules: dict[Path, ast.Module] = {}
    waiting = [(tree, package.parent)]
    while waiting:
        importer, folder = waiting.pop()
        for dotted in _imported_names(importer, folder, package):
            for path in _module_files(dotted, package):
                if path not in modules:
                    modules[path] = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
                    waiting.append((modules[path], path.parent))
    return modules


def _imported_names(tree: ast.Module, folder: Path, package: Path) -> Iterator[str]:
    """Dotted names that a module may import from the package; some name a function and not a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(node, folder, package)
            yield from (f"{origin}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield ast.unparse(node)  # `import course_utils` alone loads course_utils.attention when that is asked for


def _origin(node: ast.ImportFrom, folder: Path, package: Path) -> str:
    """The dotted name that `from ... import` takes from; dots at its front are counted from the importing file."""
    if not node.level:
        return node.module or ""
    start = folder
    for _ in range(node.level - 1):
        start = start.parent
    within = start.relative_to(package.parent).parts if start.is_relative_to(package.parent) else ()
    return ".".join((*within, *([node.module] if node.module else ())))


def _module_files(dotted: str, package: Path) -> Iterator[Path]:
    """The files that importing a dotted name runs: each package on the way, then the module."""
    parts = dotted.split(".")
    if parts[0] != package.name:
        return
    place = package.parent
    for part in parts:
        place = place / part
        if (place / "__init__.py").is_file():
            yield place / "__init__.py"
        elif place.with_suffix(".py").is_file():
            yield place.with_suffix(".py")
        elif not place.is_dir():
            return  # the rest names something inside the module


def _strings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _data_files(package: Path, literals: Iterable[str]) -> Iterator[Path]:
    last_parts = {text.replace("\\", "/").rsplit("/", 1)[-1] for text in literals}
    for path in package.rglob("*"):
        if path.is_file() and path.suffix not in _NOT_DATA and path.name in last_parts:
            yield path
    for path in (package.parent / "saved_models").glob("*.*"):
        if path.name in last_parts or path.stem in last_parts:
            yield path


def _canonical(node: object) -> object:
    """A tree as nested lists, without positions, docstrings and empty fields.

    `ast.dump` would do on one machine; versions of Python differ in the empty fields that they show.
    """
    if isinstance(node, ast.Constant):
        return ["Constant", ascii(node.value)]
    if isinstance(node, ast.AST):
        fields = [(name, value) for name, value in ast.iter_fields(node) if value is not None and value != []]
        return [
            type(node).__name__,
            *([name, _canonical(_without_docstring(node, name, value))] for name, value in fields),
        ]
    if isinstance(node, list):
        return [_canonical(item) for item in node]
    return ascii(node)


def _without_docstring(node: ast.AST, field: str, value: object) -> object:
    has_docstring = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    if field == "body" and has_docstring and ast.get_docstring(node, clean=False) is not None:
        return value[1:]
    return value
