"""How fast one quantity grows with another: y ~ x^p, with p fitted to measurements."""

from collections.abc import Sequence

import numpy as np


def exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """The power p of y ~ x^p: the slope of log y against log x, by least squares.

    Args:
        x: at least two different positive numbers.
        y: as many positive numbers.

    Raises:
        ValueError: if there are too few numbers, not as many x as y, or one of them is not positive.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.ndim != 1 or x.shape != y.shape or len(np.unique(x)) < 2:
        raise ValueError(f"an exponent needs two or more different x and a y for each, got {x.tolist()}, {y.tolist()}")
    if not (x > 0).all() or not (y > 0).all():
        raise ValueError(f"an exponent needs positive numbers, got x = {x.tolist()}, y = {y.tolist()}")
    return float(np.polyfit(np.log(x), np.log(y), deg=1)[0])


def crossing(x: Sequence[float], first: Sequence[float], second: Sequence[float]) -> float | None:
    """The x beyond which the first curve stays above the second, both taken as straight between points in log-log.

    Args:
        x: increasing positive numbers.
        first: positive, one for each x.
        second: positive, one for each x.

    Returns:
        The last crossing from below; None if the first curve ends below the second, or is above it everywhere.
    """
    x, excess = np.log(np.asarray(x, dtype=float)), np.log(first) - np.log(second)
    below = np.flatnonzero(excess < 0)
    if len(below) == 0 or below[-1] == len(x) - 1:
        return None
    left = below[-1]
    share = -excess[left] / (excess[left + 1] - excess[left])
    return float(np.exp(x[left] + share * (x[left + 1] - x[left])))
