"""Time two computations side by side, and say how the one compares with the other."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from torch.utils.benchmark import Timer

_SHORTEST = 0.02  # seconds of a block: far above what the clock can tell apart


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        what: is measured.
        against: what it is compared with.
        size: of the problem, in words.
        threads: that both were allowed.
        at_most: the ratio to stay below, or None where none is promised.
        ratios: of each pair of measurements, one after the other.
        ours: median, in the unit.
        theirs: median, in the unit.
        unit: "s" or "bytes".
        x: the size as a number, for the figure.
    """

    what: str
    against: str
    size: str
    threads: int
    at_most: float | None
    ratios: tuple[float, ...]
    ours: float
    theirs: float
    unit: str = "s"
    x: float | None = None

    @property
    def ratio(self) -> float:
        """The median of the ratios."""
        return statistics.median(self.ratios)

    @property
    def quartiles(self) -> tuple[float, float]:
        """Between which half of the ratios lie; with fewer than three, the smallest and the largest."""
        if len(self.ratios) < 3:
            return min(self.ratios), max(self.ratios)
        first, _, third = statistics.quantiles(self.ratios, n=4, method="inclusive")
        return first, third

    @property
    def holds(self) -> bool:
        """Whether the ratio stays below what is promised."""
        return self.at_most is None or self.ratio <= self.at_most


def seconds_of_pairs(
    ours: Callable[[], object], theirs: Callable[[], object], threads: int, pairs: int = 11
) -> tuple[list[float], list[float]]:
    """Seconds that each of two computations takes, measured in turn so that what else the machine does hits both.

    Args:
        ours: a computation.
        theirs: what it is compared with.
        threads: that torch may use.
        pairs: number of measurements of each; every second pair begins with the other one.
    """
    timers = [Timer("run()", globals={"run": run}, num_threads=threads) for run in (ours, theirs)]
    once = [timer.timeit(1).mean for timer in timers]  # also warms up
    number = max(1, round(_SHORTEST / max(max(once), 1e-7)))
    seconds: tuple[list[float], list[float]] = ([], [])
    for pair in range(pairs):
        for which in (0, 1) if pair % 2 else (1, 0):
            seconds[which].append(timers[which].timeit(number).mean)
    return seconds


def compare(
    ours: Callable[[], object],
    theirs: Callable[[], object],
    *,
    what: str,
    against: str,
    size: str,
    threads: int,
    at_most: float | None,
    x: float | None = None,
    pairs: int = 11,
) -> Row:
    """Time two computations side by side; the arguments are those of `Row` and `seconds_of_pairs`."""
    of_ours, of_theirs = seconds_of_pairs(ours, theirs, threads, pairs)
    return row_of(of_ours, of_theirs, what=what, against=against, size=size, threads=threads, at_most=at_most, x=x)


def row_of(of_ours: list[float], of_theirs: list[float], **facts) -> Row:
    """A row from measurements of each, the first with the first and so on."""
    ratios = tuple(mine / other for mine, other in zip(of_ours, of_theirs, strict=True))
    return Row(ratios=ratios, ours=statistics.median(of_ours), theirs=statistics.median(of_theirs), **facts)
