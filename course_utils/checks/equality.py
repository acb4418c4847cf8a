"""Whether two outputs are the same, however they are written: lists and tuples, tensors and arrays, number types."""

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

NOTHING, STRUCTURE, TYPE, SHAPE, NUMBER_TYPE, NAN, INFINITE, VALUES = (
    "returns None",
    "wrong number of outputs",
    "wrong type",
    "wrong shape",
    "wrong number type",
    "gives NaN",
    "gives infinite numbers",
    "not equal",
)

DEEPEST = 20  # levels of lists in lists
_NOT_IN_NUMPY = {torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2}


@dataclass(frozen=True)
class Difference:
    """The first difference between two outputs.

    Attributes:
        kind: one of the constants of this module.
        message: a sentence on it.
        place: which part of the output it is, for outputs of several parts; empty otherwise.
    """

    kind: str
    message: str
    place: str = ""


@dataclass(frozen=True)
class Unreadable:
    """Stands for an output whose numbers cannot be read.

    Attributes:
        words: what it is.
    """

    words: str


def compare(got: Any, expected: Any, rtol: float, atol: float, exact_type: bool = False) -> Difference | None:
    """Compare an output with the expected one.

    Args:
        got: any object.
        expected: tensors, arrays, numbers, texts, None, and tuples, lists or dicts of these.
        rtol, atol: numbers g and e are equal if |g - e| <= atol + rtol * |e|; NaN equals NaN.
        exact_type: whether booleans, integers and floating-point numbers are different even where they are equal.

    Returns:
        The first difference; None if there is none.
    """
    return _compare(plain(got), plain(expected), rtol, atol, exact_type, "")


def plain(value: Any, depth: int = 0) -> Any:
    """A value with all numbers in NumPy arrays and all sequences in lists; what is neither stays as it is."""
    if depth > DEEPEST:
        return Unreadable("nested without end")
    if isinstance(value, torch.Tensor):
        return _array(value)
    if isinstance(value, np.ndarray | numbers.Number | np.generic):
        return np.asarray(value)
    if isinstance(value, Mapping):
        return {key: plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        if value and all(_only_numbers(item, depth) for item in value):
            try:
                return np.asarray(value)
            except ValueError:  # rows of different lengths
                pass
        return [plain(item, depth + 1) for item in value]
    return value


def parts(value: Any) -> list[np.ndarray]:
    """The arrays in a value that `plain` has made, in order."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, list):
        return [array for item in value for array in parts(item)]
    if isinstance(value, dict):
        return [array for item in value.values() for array in parts(item)]
    return []


def identical(one: Any, other: Any) -> bool:
    """Whether an argument is still what it was, in type, shape and values; of unknown kinds only the type is seen."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.dtype == other.dtype and _equal(_array(one), _array(other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and _equal(one, other)
    if isinstance(one, torch.nn.Module) and isinstance(other, torch.nn.Module):
        return one.training == other.training and identical(dict(one.state_dict()), dict(other.state_dict()))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return list(one) == list(other) and all(identical(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(identical, one, other))
    if isinstance(one, set | str | numbers.Number) or isinstance(other, set | str | numbers.Number):
        return type(one) is type(other) and (one == other or one != one)
    return type(one) is type(other)


def number_kind(array: np.ndarray) -> str:
    """The kind of an array's numbers in words."""
    kinds = {"b": "booleans", "i": "integers", "u": "integers", "f": "floating-point numbers", "c": "complex numbers"}
    return kinds.get(array.dtype.kind, f"{array.dtype}")


def kind_of(value: Any) -> str:
    """What a value is, in words: "a tensor of shape [2, 3]"."""
    if value is None:
        return "None"
    if isinstance(value, Unreadable):
        return value.words
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {list(value.shape)}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {list(value.shape)}" if value.ndim else "a number"
    if isinstance(value, bool | np.bool_):
        return "True or False"
    if isinstance(value, numbers.Number):
        return "a number"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, list | tuple):
        return f"a {type(value).__name__} of {len(value)}"
    return f"an object of type {type(value).__name__}"


def _compare(got: Any, expected: Any, rtol: float, atol: float, exact_type: bool, place: str) -> Difference | None:
    if expected is None:
        return None if got is None else Difference(TYPE, f"{_it(place)} is {kind_of(got)}, expected is None.", place)
    if got is None:
        return Difference(NOTHING, f"{_it(place)} is None.", place)
    if isinstance(expected, dict):
        return _compare_dicts(got, expected, rtol, atol, exact_type, place)
    if isinstance(expected, list):
        return _compare_lists(got, expected, rtol, atol, exact_type, place)
    if isinstance(expected, np.ndarray):
        return _compare_arrays(got, expected, rtol, atol, exact_type, place)
    if type(got) is not type(expected):
        return Difference(TYPE, f"{_it(place)} is {kind_of(got)}, expected is {kind_of(expected)}.", place)
    return None if got == expected else Difference(VALUES, f"{_it(place)} is not the expected one.", place)


def _compare_dicts(
    got: Any, expected: dict, rtol: float, atol: float, exact_type: bool, place: str
) -> Difference | None:
    if not isinstance(got, dict):
        return Difference(TYPE, f"{_it(place)} is {kind_of(got)}, expected is a dict.", place)
    if set(got) != set(expected):
        keys = f"the keys {list(got)}, expected are {list(expected)}"
        return Difference(STRUCTURE, f"{_it(place)} has {keys}.", place)
    for key, value in expected.items():
        if found := _compare(got[key], value, rtol, atol, exact_type, f"{place}[{key!r}]"):
            return found
    return None


def _compare_lists(
    got: Any, expected: list, rtol: float, atol: float, exact_type: bool, place: str
) -> Difference | None:
    if isinstance(got, np.ndarray) and not any(isinstance(item, np.ndarray) and item.ndim for item in expected):
        got = [np.asarray(item) for item in got] if got.ndim else got
    if not isinstance(got, list):
        message = f"{_it(place)} is {kind_of(got)}, expected are {len(expected)} in a tuple."
        return Difference(STRUCTURE, message, place)
    if len(got) != len(expected):
        message = f"{_it(place)} has {len(got)} parts, expected are {len(expected)}."
        return Difference(STRUCTURE, message, place)
    for index, value in enumerate(expected):
        if found := _compare(got[index], value, rtol, atol, exact_type, f"{place}[{index}]"):
            return found
    return None


def _compare_arrays(
    got: Any, expected: np.ndarray, rtol: float, atol: float, exact_type: bool, place: str
) -> Difference | None:
    got = _stacked(got, expected.shape)
    if isinstance(got, list):
        comma = "; is there a comma at the end of the return?" if len(got) == 1 else "."
        message = f"{_it(place)} is a tuple or list of {len(got)}, expected is {kind_of(expected)}{comma}"
        return Difference(STRUCTURE, message, place)
    if not isinstance(got, np.ndarray) or got.dtype.kind not in "biufc":
        return Difference(TYPE, f"{_it(place)} is {kind_of(got)}, expected is {kind_of(expected)}.", place)
    if got.shape != expected.shape:
        message = f"{_it(place)} has the shape {list(got.shape)}, expected is {list(expected.shape)}."
        return Difference(SHAPE, message, place)
    if got.dtype.kind == "c" or (exact_type and number_kind(got) != number_kind(expected)):
        message = f"{_it(place)} holds {number_kind(got)}, expected are {number_kind(expected)}."
        return Difference(NUMBER_TYPE, message, place)
    return _compare_numbers(got.astype(np.float64), expected.astype(np.float64), rtol, atol, place)


def _stacked(value: Any, shape: tuple[int, ...]) -> Any:
    """A list of arrays as one array, where it then has the shape that is expected: the rows of a matrix, say."""
    if not isinstance(value, list) or not value or not all(isinstance(item, np.ndarray) for item in value):
        return value
    if any(item.shape != shape[1:] for item in value) or shape[:1] != (len(value),):
        return value
    return np.stack(value)


def _compare_numbers(got: np.ndarray, expected: np.ndarray, rtol: float, atol: float, place: str) -> Difference | None:
    if np.allclose(got, expected, rtol=rtol, atol=atol, equal_nan=True):
        return None
    for kind, wrong in ((NAN, np.isnan), (INFINITE, np.isinf)):
        unwanted = wrong(got) & ~wrong(expected)
        if unwanted.any():
            what = "NaN" if kind == NAN else "infinite"
            count = f"{int(unwanted.sum())} of {unwanted.size} numbers are {what}"
            first = f", the first at {[int(i) for i in np.argwhere(unwanted)[0]]}" if got.ndim else ""
            return Difference(kind, f"In {_it(place, start=False)}, {count}{first}.", place)
    return Difference(VALUES, f"{_it(place)} is not equal to the expected one.", place)


def _it(place: str, start: bool = True) -> str:
    text = f"the output{place}"
    return text[0].upper() + text[1:] if start else text


def _only_numbers(value: Any, depth: int) -> bool:
    if isinstance(value, list | tuple):
        return depth < DEEPEST and all(_only_numbers(item, depth + 1) for item in value)
    return isinstance(value, numbers.Number | np.generic)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Unreadable) or isinstance(other, Unreadable):
        return type(one) is type(other)
    if one.shape != other.shape:
        return False
    return np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")


def _array(tensor: torch.Tensor) -> Any:
    """The numbers of a tensor, widened where NumPy has no such type; `Unreadable` if it has none."""
    if tensor.is_meta:
        return Unreadable("a tensor on the device meta, which holds no numbers")
    try:
        tensor = tensor.detach()
        if tensor.layout is not torch.strided:
            tensor = tensor.to_dense()
        tensor = tensor.cpu().resolve_conj().resolve_neg()
        return (tensor.float() if tensor.dtype in _NOT_IN_NUMPY else tensor).numpy()
    except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:  # a nested tensor, say
        return Unreadable(f"a tensor whose numbers cannot be read ({type(error).__name__})")
