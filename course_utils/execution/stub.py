"""A solution cell as it stands in the student copy: what is given is kept, what is to be found is gone."""

import ast
import io
import tokenize

MARK = "# your turn"
RAISE = 'raise NotImplementedError("your turn")'


class StubError(ValueError):
    """A solution cell of which no stub can be made."""


def stub_of(code: str) -> str:
    """The code of a solution cell without the solution.

    Comments above the first statement and imports are kept. A function keeps its first line and its docstring, and the
    lines of its body before a comment `# your turn`, if there is one; so does each method of a class. The value of an
    assignment becomes `...`.

    Args:
        code: imports, functions, classes and assignments.

    Raises:
        StubError: if there is another statement, or none with a solution in it.
        SyntaxError: if it is no Python.
    """
    lines = code.splitlines()
    tree = ast.parse(code)
    if not tree.body:
        raise StubError("it holds no statement")
    kept = [line for line in lines[: _first_line(tree.body[0]) - 1] if line.strip()]
    before: ast.stmt | None = None
    for statement in tree.body:
        space = _space_between(before, statement)
        kept += [*[""] * space, *_stub_of_statement(statement, lines)]
        before = statement
    if all(isinstance(statement, ast.Import | ast.ImportFrom) for statement in tree.body):
        raise StubError("it holds imports only")
    return "\n".join(kept)


def _stub_of_statement(statement: ast.stmt, lines: list[str]) -> list[str]:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return lines[statement.lineno - 1 : statement.end_lineno]
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return _stub_of_function(statement, lines)
    if isinstance(statement, ast.ClassDef):
        return _stub_of_class(statement, lines)
    if isinstance(statement, ast.Assign):
        return [" = ".join([*(ast.unparse(target) for target in statement.targets), "..."])]
    if isinstance(statement, ast.AnnAssign):
        return [f"{ast.unparse(statement.target)}: {ast.unparse(statement.annotation)} = ..."]
    raise StubError(
        f"line {statement.lineno}, `{lines[statement.lineno - 1].strip()}`, is no import, function, class or "
        "assignment; put it into a cell of its own, or into the function"
    )


def _stub_of_function(function: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> list[str]:
    head = _head(function, lines)
    indent = " " * (function.col_offset + 4)
    docstring = function.body[0] if ast.get_docstring(function) is not None else None
    if docstring is not None and docstring.lineno > function.lineno:
        head += lines[docstring.lineno - 1 : docstring.end_lineno]
    first = (docstring.end_lineno if docstring else _end_of_head(function, lines)) + 1
    body = range(first, (function.end_lineno or first) + 1)
    mark = next((number for number in body if lines[number - 1].strip() == MARK), None)
    given = lines[first - 1 : mark - 1] if mark else []
    while given and not given[-1].strip():
        given.pop()
    return [*head, *given, f"{indent}{RAISE}"]


def _stub_of_class(node: ast.ClassDef, lines: list[str]) -> list[str]:
    kept = _head(node, lines)
    first = True
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            kept += [*([] if first else [""]), *_stub_of_function(statement, lines)]
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            kept += lines[statement.lineno - 1 : statement.end_lineno]  # the docstring
        else:
            raise StubError(f"line {statement.lineno} of the class {node.name} is neither a docstring nor a method")
        first = False
    return kept


def _head(node: ast.stmt, lines: list[str]) -> list[str]:
    """The lines of a definition up to its colon, decorators and a comment behind the colon included."""
    head = lines[_first_line(node) - 1 : _end_of_head(node, lines)]
    if node.body[0].lineno == _end_of_head(node, lines):  # def f(x): return x
        head[-1] = head[-1][: node.body[0].col_offset].rstrip()
    return head


def _end_of_head(node: ast.stmt, lines: list[str]) -> int:
    """The line, counted from 1, with the colon that ends a definition's head."""
    text = "\n".join(lines[node.lineno - 1 :])
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.OP:
            continue
        depth += (token.string in "([{") - (token.string in ")]}")
        if token.string == ":" and depth == 0:
            return node.lineno + token.start[0] - 1
    raise StubError(f"the head of line {node.lineno} has no end")


def _first_line(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def _space_between(before: ast.stmt | None, after: ast.stmt) -> int:
    """Blank lines between two statements, as is the custom."""
    if before is None:
        return 0
    if isinstance(before, ast.FunctionDef | ast.ClassDef) or isinstance(after, ast.FunctionDef | ast.ClassDef):
        return 2
    imports = ast.Import | ast.ImportFrom
    return int(isinstance(before, imports) and not isinstance(after, imports))
