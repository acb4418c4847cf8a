"""The look that all figures share, and what each of them begins with."""

import functools
from collections.abc import Callable

import course_utils.quiet  # noqa: F401

import matplotlib
import numpy as np
import seaborn as sns
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

SEQUENTIAL = "cividis"  # for weights from 0 to 1; made for colour-blind readers
DIVERGING = "vlag"  # for values around 0
PALETTE = sns.color_palette("colorblind")
ODD_COLOUR = PALETTE[3]
_STYLE = {
    **sns.axes_style("whitegrid"),
    **sns.plotting_context("notebook", font_scale=0.85),
    "axes.grid": False,
    "axes.prop_cycle": matplotlib.cycler(color=PALETTE),
    "axes.titlesize": "medium",
    "image.cmap": SEQUENTIAL,
    "svg.hashsalt": "course",
}


def styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Draw in the course's style, and leave the reader's own matplotlib settings alone."""

    @functools.wraps(draw)
    def draw_in_style(*args, **kwargs) -> Figure:
        with matplotlib.rc_context(_STYLE):
            return draw(*args, **kwargs)

    return draw_in_style


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of a size in inches."""
    return Figure(figsize=(width, height), layout="constrained")


def as_array(values: ArrayLike) -> np.ndarray:
    """A NumPy array of a tensor or array, wherever it lies."""
    return np.asarray(values.detach().cpu().float() if hasattr(values, "detach") else values)
