"""The table of all ratios, the figures, and the raw numbers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.growth import Growth
from benchmarks.measure import Row
from course_utils.atomic import write_atomically
from course_utils.experiments.power_law import exponent
from course_utils.plotting.style import PALETTE, new_figure, styled

_OPENING = """\
# How fast it is

Each line compares the course's code with a floor or a peer that is measured in turn with it in the same run, so that
what else the machine does hits both. The ratio is the median over the pairs, and the spread is the half of them in the
middle; *at most* is what is promised. This page, its figures and `results.json` are written by `{command}`.

Measured on {processor}, {system}, Python {python}, torch {torch}, pytorch-lightning {pytorch-lightning}.

| what | against | size | threads | ratio | spread | at most | |
| --- | --- | --- | ---: | ---: | --- | ---: | --- |
"""

_NOT_KEPT = """
Where a line is not kept: `course run` begins the notebooks in the order of their names, so that the longest comes last
and the other worker has nothing to do at the end. Extraction is given small images, and enlarges them with
antialiasing before the backbone sees them; the bare backbone is spared that. A line of the attention layer that stands
out alone is noise of a machine that did other work: it computes the same at each length.
"""


def write(folder: Path, rows: Mapping[str, Sequence[Row]], grown: Sequence[Growth], made: Mapping[str, str]) -> None:
    """Write README.md, results.json and the figures into a folder.

    Args:
        folder: is made if it is not there.
        rows: by the name of the benchmark.
        grown: the data set over the number of images; may be empty.
        made: command, processor and versions.
    """
    folder.mkdir(parents=True, exist_ok=True)
    results = {
        "made": dict(made),
        "rows": {name: [asdict(row) for row in found] for name, found in rows.items()},
        "growth": [asdict(growth) for growth in grown],
    }
    write_atomically(folder / "results.json", (json.dumps(results, indent=1) + "\n").encode())
    page = _OPENING.format(**made) + "".join(_line(row) for found in rows.values() for row in found)
    if any(not row.holds for found in rows.values() for row in found):
        page += _NOT_KEPT
    timed = [row for row in rows.get("attention", ()) if row.x is not None]
    if timed:
        _attention(timed).savefig(folder / "attention.png", dpi=100)
        page += "\n## The attention layer against the length\n\n![" + _attention_in_words(timed) + "](attention.png)\n"
    if grown:
        _growth(grown).savefig(folder / "growth.png", dpi=100)
        page += "\n## The data set against the number of images\n\n![" + _growth_in_words(grown) + "](growth.png)\n\n"
        page += _growth_table(grown)
    write_atomically(folder / "README.md", page.encode())


def _line(row: Row) -> str:
    low, high = row.quartiles
    promised = "" if row.at_most is None else f"{row.at_most:.2f}"
    kept = "" if row.at_most is None else "kept" if row.holds else "**not kept**"
    cells = (row.what, row.against, row.size, row.threads, f"{row.ratio:.3g}", f"{low:.3g} to {high:.3g}")
    return "| " + " | ".join(map(str, (*cells, promised, kept))) + " |\n"


@styled
def _attention(rows: Sequence[Row]):
    """Time of a token against the length, a panel for each number of threads."""
    counts = sorted({row.threads for row in rows})
    figure = new_figure(4.6 * len(counts), 3.6)
    for axes, threads in zip(figure.subplots(1, len(counts), squeeze=False, sharey=True)[0], counts, strict=True):
        of_count = [row for row in rows if row.threads == threads]
        for number, against in enumerate(dict.fromkeys(row.against for row in of_count)):
            of_peer = [row for row in of_count if row.against == against]
            x = [row.x for row in of_peer]
            if number == 0:
                axes.plot(x, [1e3 * row.ours for row in of_peer], "o-", color=PALETTE[0], label="the course's layer")
            style = ("s--", "^:")[number % 2]
            axes.plot(x, [1e3 * row.theirs for row in of_peer], style, color=PALETTE[number + 1], label=against)
        axes.set(xscale="log", yscale="log", xlabel="length T (tokens)", title=f"{threads} thread(s)")
        axes.grid(True, alpha=0.4)
    figure.axes[0].set_ylabel("forward and backward of a batch (ms)")
    figure.axes[0].legend(fontsize="small")
    return figure


def _attention_in_words(rows: Sequence[Row]) -> str:
    worst = max(row.ratio for row in rows)
    long = sorted({(row.x, row.ours) for row in rows if row.threads == 1 and row.x >= 256})
    grows = ""
    if len(long) > 1:
        grows = f" At one thread and from T = 256 on, as many tokens take T to the power {_power(long):.2f}."
    return f"Time against length for the course's layer and its peers; the largest ratio is {worst:.2f}.{grows}"


def _power(points: Sequence[tuple[float, float]]) -> float:
    return exponent([x for x, _ in points], [y for _, y in points])


@styled
def _growth(grown: Sequence[Growth]):
    """Opening time, time of a batch and memory against the number of images."""
    figure = new_figure(10, 3.2)
    x = [growth.images for growth in grown]
    opening, batch, memory = figure.subplots(1, 3)
    opening.plot(x, [growth.opening for growth in grown], "o-")
    opening.set(ylabel="opening (s)", yscale="log")
    batch.plot(x, [1e3 * growth.batch for growth in grown], "o-")
    batch.set(ylabel="64 sets of 10 (ms)", ylim=(0, None))
    for style, name in (("o-", "index"), ("s--", "grown"), ("^:", "mapped")):
        memory.plot(x, [max(getattr(growth, name), 1e5) / 2**20 for growth in grown], style, label=name)
    memory.set(ylabel="memory (MiB)", yscale="log")
    memory.legend(fontsize="small")
    for axes in (opening, batch, memory):
        axes.set(xlabel="images", xscale="log")
        axes.grid(True, alpha=0.4)
    return figure


def _growth_in_words(grown: Sequence[Growth]) -> str:
    first, last = grown[0], grown[-1]
    return (
        f"From {first.images:,} to {last.images:,} images opening goes from {first.opening:.2g} to {last.opening:.2g} "
        f"s and a batch from {1e3 * first.batch:.2g} to {1e3 * last.batch:.2g} ms; the index takes "
        f"{last.index / last.images:.0f} bytes an image at the end."
    )


def _growth_table(grown: Sequence[Growth]) -> str:
    """The numbers of the figure."""
    lines = [
        "| images | opening (s) | a batch (ms) | index (MiB) | grown (MiB) | of the file mapped (MiB) |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for growth in grown:
        cells = (growth.index, growth.grown, growth.mapped)
        memory = " | ".join(f"{cell / 2**20:,.0f}" for cell in cells)
        lines.append(f"| {growth.images:,} | {growth.opening:.3g} | {1e3 * growth.batch:.3g} | {memory} |")
    return "\n".join(lines) + "\n"
