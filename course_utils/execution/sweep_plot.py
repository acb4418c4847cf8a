"""Draw what came of a sweep: each recorded result against a swept value, a line for each choice of the others."""

import io
from collections import defaultdict
from collections.abc import Iterator, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from course_utils.execution.outcome import Outcome

_PANELS_IN_A_ROW = 3


def plots_of_sweeps(outcomes: Sequence[Outcome]) -> Iterator[tuple[bytes, str]]:
    """A picture as PNG, and its description, for each notebook that was swept and recorded something."""
    by_notebook = defaultdict(list)
    for outcome in outcomes:
        if outcome.run.swept and outcome.results:
            by_notebook[outcome.run.notebook.stem].append(outcome)
    for name, swept in by_notebook.items():
        results = list(dict.fromkeys(result for outcome in swept for result in outcome.results))
        png = io.BytesIO()
        _draw(name, swept, results).savefig(png, format="png", dpi=100)
        over = ", ".join(swept[0].run.swept)
        yield png.getvalue(), f"Results of {name} over {over}: {', '.join(results)}. The numbers stand in the table."


def _draw(name: str, swept: Sequence[Outcome], results: Sequence[str]) -> Figure:
    """A panel for each result. The parameter with the most values is on the x axis."""
    values = {parameter: _in_order(swept, parameter) for parameter in swept[0].run.swept}
    across = max(values, key=lambda parameter: len(values[parameter]))
    rows = -(-len(results) // _PANELS_IN_A_ROW)
    figure = Figure(figsize=(4 * min(len(results), _PANELS_IN_A_ROW), 3 * rows), layout="constrained")
    figure.suptitle(name)
    for number, result in enumerate(results, start=1):
        axes = figure.add_subplot(rows, min(len(results), _PANELS_IN_A_ROW), number)
        for label, (x, y) in _lines(swept, result, across, values[across]).items():
            axes.plot(x, y, marker="o", label=label)
        axes.set(xlabel=across, ylabel=result)
        if all(isinstance(value, int) for value in values[across]):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if len(values) > 1:
            axes.legend(fontsize="small")
    return figure


def _lines(
    swept: Sequence[Outcome], result: str, across: str, order: Sequence[object]
) -> dict[str, tuple[list, list[float]]]:
    lines: dict[str, tuple[list, list[float]]] = {}
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in order)
    for outcome in sorted(swept, key=lambda one: order.index(one.run.swept[across])):
        if result not in outcome.results:
            continue
        others = {name: value for name, value in outcome.run.swept.items() if name != across}
        x, y = lines.setdefault(", ".join(f"{name}={value}" for name, value in others.items()), ([], []))
        x.append(outcome.run.swept[across] if numeric else str(outcome.run.swept[across]))
        y.append(outcome.results[result])
    return lines


def _in_order(swept: Sequence[Outcome], parameter: str) -> list[object]:
    """The values of a parameter: numbers by size, others as they came."""
    values = []
    for outcome in swept:
        if outcome.run.swept[parameter] not in values:
            values.append(outcome.run.swept[parameter])
    return sorted(values) if all(isinstance(value, int | float) for value in values) else values
