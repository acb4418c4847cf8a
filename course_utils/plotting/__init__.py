"""Every figure that a notebook draws from numbers.

Each function takes arrays or tensors and returns a matplotlib `Figure`; `show` puts it into the notebook together with
a text alternative and a description of what was plotted, by which a test can tell whether a figure has changed.
"""

import course_utils.quiet  # noqa: F401

from course_utils.plotting.attention import attention_maps, masks, worked_example
from course_utils.plotting.charts import bars, curves, heatmap, learning_curves, position_curves
from course_utils.plotting.distances import distances, mirror_profile
from course_utils.plotting.grids import curve_grid
from course_utils.plotting.growth import growth
from course_utils.plotting.images import attention_over_images, image_sets
from course_utils.plotting.intervals import intervals
from course_utils.plotting.notebook import show
from course_utils.plotting.runs import panels_over_runs
from course_utils.plotting.scatter import scatter
from course_utils.plotting.spread import curves_with_spread

__all__ = [
    "attention_maps",
    "attention_over_images",
    "bars",
    "curve_grid",
    "curves",
    "curves_with_spread",
    "distances",
    "growth",
    "heatmap",
    "image_sets",
    "intervals",
    "learning_curves",
    "masks",
    "mirror_profile",
    "panels_over_runs",
    "position_curves",
    "scatter",
    "show",
    "worked_example",
]
