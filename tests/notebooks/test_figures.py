"""Figures are tested through their data: a description that changes with what is shown, and bytes that do not."""

import io
import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from course_utils import plotting
from course_utils.execution.bounds import Tolerance
from course_utils.execution.comparison import differences
from course_utils.figure_description import MIME_TYPE, describe
from course_utils.plotting.notebook import _png

TOLERANCE = Tolerance(rtol=5e-5, atol=1e-6)
RANDOM = np.random.default_rng(42)
MATRIX = RANDOM.random((6, 6))
WEIGHTS = MATRIX / MATRIX.sum(axis=-1, keepdims=True)
IMAGES = RANDOM.integers(0, 255, size=(2, 4, 8, 8), dtype=np.uint8)
STEPS = np.arange(1, 21)
RANDOM_RUNS = RANDOM.random((3, 20))

DRAWN: dict[str, Callable[[], Figure]] = {
    "worked_example": lambda: plotting.worked_example(
        ["a", "b"], [1.0, 0.5], [[1.0, 0.0], [0.0, 1.0]], [0.6, 0.4], [[1.0, 2.0], [3.0, 4.0]], [1.8, 2.8]
    ),
    "curves": lambda: plotting.curves(STEPS, {"loss": 1 / STEPS}, xlabel="step", ylabel="loss (nats)"),
    "curves_with_spread": lambda: plotting.curves_with_spread(
        STEPS, {"plain": RANDOM_RUNS, "scaled": RANDOM_RUNS + 1}, xlabel="step", ylabel="loss (nats)"
    ),
    "growth": lambda: plotting.growth(
        STEPS,
        {"time (s)": {"square": STEPS**2, "line": STEPS}, "memory (MB)": {"square": STEPS**2, "line": STEPS}},
        xlabel="length T (tokens)",
        symbol="T",
        exponents={"time (s)": {"square": 2, "line": 1}, "memory (MB)": {"square": 2, "line": 1}},
        fitted_from=10,
    ),
    "curve_grid": lambda: plotting.curve_grid(
        STEPS,
        {rate: {"plain": [1 / STEPS, 2 / STEPS], "other": [3 / STEPS]} for rate in ("slow", "fast")},
        columns=2,
        xlabel="step",
        ylabel="loss (nats)",
        reference=(2.0, "guessing"),
    ),
    "masks": lambda: plotting.masks({"causal": np.tri(3, dtype=bool)}, ["a", "b", "c"]),
    "attention_maps": lambda: plotting.attention_maps([WEIGHTS[None]], queries=list("abcdef")),
    "heatmap": lambda: plotting.heatmap(MATRIX, xlabel="position", ylabel="dimension", colour_label="encoding"),
    "position_curves": lambda: plotting.position_curves(MATRIX, [0, 3]),
    "learning_curves": lambda: plotting.learning_curves(
        1 / STEPS, 1e-3 * STEPS, [10, 20], [0.5, 0.75], loss_unit="nats a digit"
    ),
    "image_sets": lambda: plotting.image_sets(IMAGES, [3, 0]),
    "attention_over_images": lambda: plotting.attention_over_images([WEIGHTS[None, :4, :4]], IMAGES[0], 3),
    "bars": lambda: plotting.bars(
        {"rule": 0.7, "model": 0.99}, ylabel="accuracy", errors={"rule": 0.01, "model": 0.01}
    ),
    "distances": lambda: plotting.distances(
        MATRIX[:4, :4], list("abcd"), label="distance", axis="head", yardstick=MATRIX[0, :4]
    ),
    "mirror_profile": lambda: plotting.mirror_profile(range(6), -np.arange(6.0), np.linspace(1, 0.5, 6)),
    "panels_over_runs": lambda: plotting.panels_over_runs(
        {"one": (STEPS, {"a": [1 / STEPS, 2 / STEPS]}), "other": (STEPS, {"b": 3 / STEPS})},
        xlabel="step",
        ylabel="accuracy",
    ),
    "scatter": lambda: plotting.scatter(
        {"layer 1": (MATRIX[0], MATRIX[1]), "layer 2": (MATRIX[2], MATRIX[3])}, xlabel="weight", ylabel="accuracy lost"
    ),
    "intervals": lambda: plotting.intervals(
        {"rule": {"": (0.7, 0.65, 0.74)}, "model": {"": (0.9, 0.85, 0.92)}},
        xlabel="accuracy",
        ylabel="method",
        runs={"rule": [0.68]},
    ),
}


def png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100, bbox_inches="tight", metadata={"Software": None})
    return buffer.getvalue()


def changes(figure: Figure, original: Figure) -> list[str]:
    """What the regression test says of one figure in place of another."""
    outputs = [
        [{"output_type": "display_data", "data": {MIME_TYPE: describe(each)}, "metadata": {}}]
        for each in (figure, original)
    ]
    return differences(*outputs, TOLERANCE, {})


def test_every_drawing_function_is_held_to_these_rules():
    public = {
        name
        for name, value in vars(plotting).items()
        if not name.startswith("_") and getattr(value, "__annotations__", {}).get("return") is Figure
    }
    assert public == set(DRAWN)


@pytest.mark.parametrize("name", DRAWN)
def test_figure_is_the_same_to_the_byte(name):
    first, second = DRAWN[name](), DRAWN[name]()
    assert png(first) == png(second)
    assert changes(first, second) == []


@pytest.mark.parametrize("name", [name for name in DRAWN if name != "image_sets"])
@pytest.mark.parametrize("side", ["x", "y"])
def test_lost_label_is_found(name, side):
    damaged = DRAWN[name]()
    labelled = [axes for axes in damaged.axes if getattr(axes, f"get_{side}label")()]
    assert labelled or (name, side) == ("bars", "x")  # the bars have their names below them
    for axes in labelled:
        getattr(axes, f"set_{side}label")("")
        assert changes(damaged, DRAWN[name]())


@pytest.mark.parametrize("name", [name for name in DRAWN if name not in ("bars", "image_sets")])
def test_swapped_labels_are_found(name):
    damaged = DRAWN[name]()
    axes = next(axes for axes in damaged.axes if axes.get_xlabel() or axes.get_ylabel())
    axes.set(xlabel=axes.get_ylabel(), ylabel=axes.get_xlabel())
    assert any("label" in line for line in changes(damaged, DRAWN[name]()))


@pytest.mark.parametrize("name", DRAWN)
def test_changed_limits_are_found(name):
    damaged = DRAWN[name]()
    low, high = damaged.axes[0].get_xlim()
    damaged.axes[0].set_xlim(low, high + 0.01 * (high - low))
    assert any("xlim" in line for line in changes(damaged, DRAWN[name]()))


@pytest.mark.parametrize(
    "other",
    [MATRIX.T, MATRIX[::-1], MATRIX[:, ::-1], np.roll(MATRIX, 1, axis=0), MATRIX + 0.001, np.where(MATRIX > 0.5, 1, 0)],
    ids=["transposed", "upside down", "mirrored", "rolled", "shifted", "rounded"],
)
def test_another_matrix_is_found(other):
    def draw(matrix):
        return plotting.heatmap(matrix, xlabel="position", ylabel="dimension", colour_label="encoding")

    assert any("images[0]" in line for line in changes(draw(other), draw(MATRIX)))


def test_one_cell_of_a_matrix_is_found():
    other = MATRIX.copy()
    other[2, 4] = 0.0
    assert changes(plotting.attention_maps([other[None]]), plotting.attention_maps([MATRIX[None]]))


def test_changed_curve_is_found_and_rounding_passes():
    def draw(values):
        return plotting.curves(STEPS, {"loss": values}, xlabel="step", ylabel="loss (nats)")

    assert changes(draw(1 / STEPS * (1 + 1e-7)), draw(1 / STEPS)) == []
    other = 1 / STEPS
    other[10] += 0.05
    assert any("lines[0]" in line for line in changes(draw(other), draw(1 / STEPS)))


def test_description_holds_labels_limits_and_arrays():
    (axes,) = describe(DRAWN["curves"]())["axes"]
    assert (axes["xlabel"], axes["ylabel"]) == ("step", "loss (nats)")
    (line,) = axes["lines"]
    assert line["x"]["shape"] == line["y"]["shape"] == [20]
    assert (line["x"]["min"], line["x"]["max"]) == (1.0, 20.0)
    assert (line["y"]["min"], line["y"]["max"]) == (0.05, 1.0)
    assert axes["xlim"][0] < 1 < 20 < axes["xlim"][1]


def test_figure_without_words_is_refused():
    with pytest.raises(ValueError, match="alt text"):
        plotting.show(DRAWN["curves"](), alt=" ")


def test_a_stale_font_cache_is_not_reported_in_a_notebook(tmp_path):
    """A cache without the fonts of mathematics, as one is left when another environment is removed while in use."""
    spoil = (
        "import json, pathlib, matplotlib as mpl\n"
        "from matplotlib import font_manager as fm\n"
        "path = next(pathlib.Path(mpl.get_cachedir()).glob('fontlist*.json'))\n"
        "cache = json.loads(path.read_text())\n"
        "cache['ttflist'] = [font for font in cache['ttflist'] if 'STIX' not in font['name']]\n"
        "path.write_text(json.dumps(cache))\n"
    )
    use = (
        "from course_utils import plotting\n"
        "import io\n"
        "figure = plotting.curves([1, 10], {'y': [1, 10]}, xlabel='x', ylabel='y', xscale='log')\n"
        "figure.savefig(io.BytesIO(), format='png')\n"
    )
    environment = {**os.environ, "MPLCONFIGDIR": str(tmp_path)}
    for code in (spoil, use):
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert run.stderr == ""


def test_a_figure_of_lines_takes_few_colours_and_one_of_a_colour_map_all():
    modes = {name: Image.open(io.BytesIO(_png(DRAWN[name]()))).mode for name in ("curves", "bars", "heatmap")}
    assert modes == {"curves": "P", "bars": "P", "heatmap": "RGB"}
    assert Image.open(io.BytesIO(_png(DRAWN["attention_over_images"]()))).mode == "RGB"
