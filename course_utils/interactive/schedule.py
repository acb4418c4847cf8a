"""The warm-up schedule with sliders: the curve of the learning rate follows them."""

import math

import numpy as np
from matplotlib.figure import Figure

from course_utils import plotting
from course_utils.figure_description import summary
from course_utils.interactive.piece import Piece, assemble

_RATES = (1e-5, 1e-1)  # from the slider's one end to the other


def warmup_schedule(
    warmup: int = 100, max_iters: int = 1_000, lr: float = 1e-3, *, longest: int = 2_000, alt: str | None = None
) -> Piece:
    """The learning rate ½(1 + cos(π·step/max_iters)) · min(1, step/warmup) · lr, with a slider for each of the three.

    Args:
        warmup: optimizer steps of warm-up to begin with; 0 for none.
        max_iters: optimizer steps until the rate is zero, to begin with.
        lr: the rate at factor 1 to begin with, from 1e-5 to 0.1.
        longest: optimizer steps that the axis shows, and the most that the sliders choose.
        alt: what is to be seen, in a sentence or two.

    Raises:
        ValueError: if a number is outside of its slider.
    """
    if not (0 <= warmup <= longest and 1 <= max_iters <= longest):
        raise ValueError(f"warmup must be from 0 to {longest=}, and max_iters from 1, got {warmup=} and {max_iters=}")
    if not _RATES[0] <= lr <= _RATES[1]:
        raise ValueError(f"lr must be from {_RATES[0]} to {_RATES[1]}, got {lr}")
    steps = np.arange(longest + 1)
    curves = {"with warm-up": lr * factors(steps, warmup, max_iters), "without": lr * factors(steps, 0, max_iters)}
    return assemble(
        "warmupSchedule",
        {"warmup": int(warmup), "horizon": int(max_iters), "rate": float(lr), "longest": int(longest)},
        scripts=("schedule_factor.js", "schedule.js"),
        styles=("schedule.css",),
        fallback=_figure(steps, curves),
        alt=alt
        or f"The learning rate over {longest} steps with a warm-up of {warmup} steps and a horizon of {max_iters}: "
        f"a straight rise to {curves['with warm-up'].max():.2g}, then half a cosine down to 0. Without warm-up it "
        f"begins at {lr:g}.",
        facts={"with warm-up": summary(curves["with warm-up"]), "without": summary(curves["without"])},
    )


def factors(steps: np.ndarray, warmup: int, max_iters: int) -> np.ndarray:
    """The factor of `CosineWarmupScheduler` after each number of steps, by the formula."""
    cosine = 0.5 * (1 + np.cos(math.pi * steps / max_iters))
    return np.where(steps < max_iters, cosine * np.minimum(1, steps / max(1, warmup) if warmup else 1), 0.0)


def _figure(steps: np.ndarray, curves: dict[str, np.ndarray]) -> Figure:
    return plotting.curves(steps, curves, xlabel="optimizer step", ylabel="learning rate")
