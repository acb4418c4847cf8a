"""Numbers as short texts that travel in a page: attention weights in one or two bytes, parameters in four."""

import base64
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from course_utils.plotting.style import as_array

_LARGEST_WIDE = 15_000  # weights that travel with two bytes each, 40 kB as text; more of them get one byte
_SUM_TOLERANCE = 0.02  # of a row, for weights that were computed in half precision


def attention_layers(maps: Sequence[ArrayLike]) -> np.ndarray:
    """Attention maps of all layers as one array float64 [L, H, Tq, Tk].

    Args:
        maps: for each layer, weights [H, Tq, Tk], of one shape.

    Raises:
        ValueError: if the shapes differ or are not of rank 3, or a row does not hold weights that add up to 1 (or to 0,
            for a query that sees no key).
    """
    layers = [as_array(layer).astype(np.float64) for layer in maps]
    shapes = [list(layer.shape) for layer in layers]
    if not layers or any(len(shape) != 3 or shape != shapes[0] or 0 in shape for shape in shapes):
        raise ValueError(f"maps must be a list with one [H, Tq, Tk] for each layer, all of one shape, got {shapes}")
    weights = np.stack(layers)
    sums = weights.sum(axis=-1)
    if not np.isfinite(weights).all() or weights.min() < 0:
        raise ValueError("attention weights must be finite and not negative: give the softmax's output, not its input")
    wrong = (np.abs(sums - 1) > _SUM_TOLERANCE) & (sums != 0)
    if wrong.any():
        raise ValueError(
            f"each row of weights must add up to 1, or to 0 where a query sees no key, got {sums[wrong][0]:.4g}; "
            "the last dimension must be that of the keys"
        )
    return weights


def pack_weights(weights: np.ndarray) -> dict[str, Any]:
    """Attention weights for a page; weights.js reads them.

    A weight w is rounded to largest · (q / levels)² with a whole number q: one byte (255 levels), or two where there
    are few weights. By the square small weights keep more digits, which show once the large ones are masked.

    Args:
        weights: of any shape, from 0 to 1.

    Returns:
        Plain data: the bytes in base64, `bits`, `largest`, and `error`, within which a weight that is read again
        agrees with the one given.
    """
    bits = 16 if weights.size <= _LARGEST_WIDE else 8
    levels = 2**bits - 1
    largest = float(weights.max()) or 1.0
    numbers = np.round(levels * np.sqrt(weights / largest)).astype(f"<u{bits // 8}")
    error = largest * (1 / levels + 1 / (4 * levels**2))  # half a level of the root, squared
    return {
        "data": base64.b64encode(numbers.tobytes()).decode(),
        "bits": bits,
        "largest": largest,
        "error": _rounded_up(error),
    }


def _rounded_up(value: float) -> float:
    """The next number with one digit other than zero."""
    unit = 10.0 ** math.floor(math.log10(value))
    return float(f"{math.ceil(value / unit) * unit:.1g}")


def pack_floats(values: np.ndarray) -> str:
    """Numbers as float32, little-endian, in base64."""
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode()
