"""Bring a given value to the type that a parameter declares, or say why it has none of it."""

import ast
import contextlib
from collections.abc import Callable
from typing import Any

import yaml

from course_utils.execution.parameters import Parameter


class Text(str):
    """A value as it was typed on a command line: what it means depends on the parameter's type."""

    __slots__ = ()


class ValueMisfitError(ValueError):
    """A value that its parameter cannot take; the message says what it can."""


def fitted(value: Any, parameter: Parameter) -> Any:
    """The value in the parameter's type.

    Args:
        value: a plain value, or `Text`: then the first reading of it that has the right type counts.
        parameter: its annotation says the type, or else its default; None of either leaves the type open.

    Raises:
        ValueMisfitError: if the value has another type, or is none of those that the notebook names.
    """
    annotation = _annotation_of(parameter)
    for reading in _readings(value):
        try:
            found = _fit(reading, annotation)
        except ValueMisfitError:
            continue
        if parameter.allowed and found is not None and str(found) not in parameter.allowed:
            raise ValueMisfitError(f"is not allowed; it is one of: {', '.join(parameter.allowed)}")
        return found
    literals = _literals(annotation)
    if literals:
        raise ValueMisfitError(f"is not allowed; it is one of: {', '.join(map(str, literals))}")
    stated = parameter.annotation or type(parameter.default).__name__
    raise ValueMisfitError(f"has the wrong type; it is: {stated}")


def allowed_values(parameter: Parameter) -> tuple[str, ...]:
    """The values that a parameter may take, as text, where the notebook names them."""
    return parameter.allowed or tuple(map(str, _literals(_annotation_of(parameter))))


def _readings(value: Any) -> list[Any]:
    """What a value can mean: a text is read as Python writes it, as it stands, and as YAML writes it."""
    if not isinstance(value, Text):
        return [value]
    readings: list[Any] = [str(value)]
    with contextlib.suppress(ValueError, SyntaxError):
        readings.insert(0, ast.literal_eval(value))
    with contextlib.suppress(yaml.YAMLError):
        readings.append(yaml.safe_load(value))
    return readings


def _annotation_of(parameter: Parameter) -> ast.expr:
    stated = parameter.annotation
    if not stated and parameter.default is not None:
        stated = type(parameter.default).__name__
    return ast.parse(stated or "Any", mode="eval").body


def _fit(value: Any, annotation: ast.expr) -> Any:
    """The value in the type of an annotation; one of a type that is not known here is left as it is."""
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        return _fit_one_of(value, [annotation.left, annotation.right])
    if isinstance(annotation, ast.Constant):
        if isinstance(annotation.value, str):  # a quoted annotation
            return _fit(value, ast.parse(annotation.value, mode="eval").body)
        return _require(value, value is None)
    if isinstance(annotation, ast.Subscript):
        arguments = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        return _fit_generic(value, _name(annotation.value), arguments)
    return _SIMPLE.get(_name(annotation), lambda value: value)(value)


def _fit_one_of(value: Any, annotations: list[ast.expr]) -> Any:
    for annotation in annotations:
        try:
            return _fit(value, annotation)
        except ValueMisfitError:
            continue
    raise ValueMisfitError


def _fit_generic(value: Any, name: str, arguments: list[ast.expr]) -> Any:
    if name == "Optional":
        return None if value is None else _fit(value, arguments[0])
    if name == "Union":
        return _fit_one_of(value, arguments)
    if name in ("Annotated", "Final"):
        return _fit(value, arguments[0])
    if name == "Literal":
        literals = [ast.literal_eval(argument) for argument in arguments]
        return _require(value, any(value == one and type(value) is type(one) for one in literals))
    if name in ("list", "List", "Sequence", "Iterable"):
        return [_fit(item, arguments[0]) for item in _require(value, isinstance(value, list | tuple))]
    if name in ("dict", "Dict", "Mapping"):
        items = _require(value, isinstance(value, dict)).items()
        return {_fit(key, arguments[0]): _fit(item, arguments[1]) for key, item in items}
    if name in ("tuple", "Tuple"):
        return _fit_tuple(_require(value, isinstance(value, list | tuple)), arguments)
    return value


def _fit_tuple(value: Any, arguments: list[ast.expr]) -> tuple:
    if len(arguments) == 2 and isinstance(arguments[1], ast.Constant) and arguments[1].value is ...:
        arguments = [arguments[0]] * len(value)
    _require(value, len(value) == len(arguments))
    return tuple(_fit(item, argument) for item, argument in zip(value, arguments, strict=True))


def _fit_float(value: Any) -> float:
    """A float; YAML reads 1e-3, without a point, as a text."""
    try:
        return float(_require(value, isinstance(value, int | float | str) and not isinstance(value, bool)))
    except ValueError as error:
        raise ValueMisfitError from error


def _of(*types: type) -> Callable[[Any], Any]:
    return lambda value: _require(value, isinstance(value, types) and (bool in types or not isinstance(value, bool)))


_SIMPLE: dict[str, Callable[[Any], Any]] = {
    "int": _of(int),
    "float": _fit_float,
    "str": _of(str),
    "bool": _of(bool),
    "list": _of(list),
    "List": _of(list),
    "tuple": _of(tuple),
    "dict": _of(dict),
    "Dict": _of(dict),
    "set": _of(set),
    "None": lambda value: _require(value, value is None),
}


def _literals(annotation: ast.expr) -> list[Any]:
    """All values of the Literal[...] in an annotation."""
    return [
        literal
        for node in ast.walk(annotation)
        if isinstance(node, ast.Subscript) and _name(node.value) == "Literal"
        for literal in _values(node.slice)
    ]


def _values(expression: ast.expr) -> list[Any]:
    found = ast.literal_eval(expression)
    return list(found) if isinstance(expression, ast.Tuple) else [found]


def _name(annotation: ast.expr) -> str:
    """`Optional` of both `Optional` and `typing.Optional`."""
    return annotation.attr if isinstance(annotation, ast.Attribute) else getattr(annotation, "id", "")


def _require(value: Any, holds: bool) -> Any:
    if not holds:
        raise ValueMisfitError
    return value
