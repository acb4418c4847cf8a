"""Facts about wrong numbers that may help to find the fault. Each holds on every example; none names a cause."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from course_utils.checks.equality import compare, plain

_FEW = 2  # of two numbers, much may be said that means nothing


def observations(pairs: Iterable[tuple[Any, Any]], rtol: float, atol: float) -> tuple[str, ...]:
    """What can be said of the outputs of all examples together.

    Args:
        pairs: the output and the expected one of each example.
        rtol, atol: the exercise's tolerance.

    Returns:
        Sentences, at most three, the most telling first.
    """
    pairs = [(plain(got), plain(expected)) for got, expected in pairs]
    said: list[str] = []
    wrong = [pair for pair in pairs if compare(*pair, rtol, atol)]
    if not wrong:
        return ()
    if len(wrong) < len(pairs):
        said.append(f"It is right on {len(pairs) - len(wrong)} of {len(pairs)} examples.")
    said += _which_parts(wrong, rtol, atol)
    if all(isinstance(got, np.ndarray) and isinstance(expected, np.ndarray) for got, expected in pairs):
        said += _of_arrays([(_number(got), _number(expected)) for got, expected in pairs], rtol, atol)
    return tuple(said[:3])


def _which_parts(wrong: list[tuple[Any, Any]], rtol: float, atol: float) -> list[str]:
    """Which of several outputs are right throughout."""
    if not all(isinstance(got, list) and isinstance(expected, list) for got, expected in wrong):
        return []
    lengths = {len(side) for pair in wrong for side in pair}
    if len(lengths) != 1:
        return []
    (count,) = lengths
    right = [i for i in range(count) if not any(compare(got[i], expected[i], rtol, atol) for got, expected in wrong)]
    if not right:
        return []
    named = " and ".join(f"output[{i}]" for i in right)
    return [f"{named} {'is' if len(right) == 1 else 'are'} right; only the rest differs."]


def _of_arrays(pairs: list[tuple[np.ndarray, np.ndarray]], rtol: float, atol: float) -> list[str]:
    def close(got: np.ndarray, expected: np.ndarray) -> bool:
        return got.shape == expected.shape and np.allclose(got, expected, rtol=rtol, atol=atol)

    if not all(np.isfinite(array).all() for pair in pairs for array in pair):
        return []
    if all(e.ndim >= 2 and close(np.swapaxes(g, -1, -2), e) for g, e in pairs if g.ndim >= 2) and any(
        g.ndim >= 2 for g, _ in pairs
    ):
        return ["With its last two axes exchanged, the output would be right."]
    if any(got.shape != expected.shape for got, expected in pairs):
        if all(close(got.squeeze(), expected.squeeze()) for got, expected in pairs):
            return ["The numbers are right; axes of size 1 are too many or missing."]
        if all(got.size == expected.size and close(got.ravel(), expected.ravel()) for got, expected in pairs):
            return ["The numbers are right and in the right order; only the shape differs."]
        return []
    telling = [(got, expected) for got, expected in pairs if np.unique(expected).size > _FEW]
    if not telling:
        return []
    return _of_equal_shapes(pairs, telling, close)


def _of_equal_shapes(pairs: list, telling: list, close: Any) -> list[str]:
    factors = [float((got * e).sum() / (e * e).sum()) for got, e in telling]
    same_factor = all(close(got, factors[0] * expected) for got, expected in pairs)
    if same_factor and np.isclose(factors[0], -1, rtol=1e-4):
        return ["Each number has the opposite sign."]
    if same_factor and abs(factors[0]) > 1e-6:
        return [f"Each number is {factors[0]:.4g} times the expected one, on all examples."]
    if all(abs(f) > 1e-6 and close(got, f * e) for f, (got, e) in zip(factors, telling, strict=True)):
        first = f"{factors[0]:.4g} on one, {factors[-1]:.4g} on another"
        return [f"On each example, all numbers are off by one common factor ({first})."]
    offsets = [float((got - expected).mean()) for got, expected in telling]
    if all(close(got, expected + offsets[0]) for got, expected in pairs):
        return [f"Each number is the expected one plus {offsets[0]:.4g}, on all examples."]
    if all(close(np.sort(got, axis=None), np.sort(expected, axis=None)) for got, expected in pairs):
        return ["The numbers are the expected ones in another order."]
    off = max(float(np.abs(got - expected).max() / max(np.abs(expected).max(), 1e-12)) for got, expected in pairs)
    if off < 1e-2:
        return [f"The numbers are close: none is off by more than {off:.1g} of the largest one."]
    return []


def _number(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64) if array.dtype.kind in "biuf" else np.full(array.shape, np.nan)
