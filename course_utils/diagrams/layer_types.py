"""How far a signal travels between two tokens in three kinds of layer."""

import itertools

from course_utils.diagrams.svg import Drawing

_TOKENS = 6
_PATH, _OTHER = "#b3541e", "#b9bcc4"


def layer_types() -> Drawing:
    """Recurrence, convolution and self-attention over six tokens; the path from the first to the last stands out."""
    drawing = Drawing(
        "layer-types",
        "Paths between two tokens in three kinds of layer",
        "Six tokens in three kinds of layer. In a recurrent layer the signal of the first token reaches the last in "
        "five steps, one after the other. In convolutions of kernel 3 it moves on by one token a layer. In "
        "self-attention every token is connected with every other, and one step is enough.",
        500,
        430,
    )
    _recurrence(drawing, 40)
    _convolution(drawing, 112)
    _attention(drawing, 330)
    return drawing


def _columns() -> list[float]:
    return [150 + 62 * number for number in range(_TOKENS)]


def _title(drawing: Drawing, y: float, name: str, note: str) -> None:
    drawing.text((16, y), name, anchor="start", bold=True)
    drawing.text((16, y + 22), note, size=13, anchor="start")


def _row(drawing: Drawing, y: float) -> None:
    for x in _columns():
        drawing.dot((x, y), 7)


def _recurrence(drawing: Drawing, y: float) -> None:
    _title(drawing, y - 10, "recurrence", "T − 1 steps in turn")
    columns = _columns()
    for here, there in itertools.pairwise(columns):
        drawing.line([(here + 8, y), (there - 9, y)], width=3, colour=_PATH)
    _row(drawing, y)


def _convolution(drawing: Drawing, y: float) -> None:
    _title(drawing, y + 50, "convolution", "kernel 3:")
    drawing.text((16, y + 92), "T − 1 layers", size=13, anchor="start")
    columns, layers, gap = _columns(), 5, 30
    for layer in range(layers):
        below, above = y + gap * (layers - layer), y + gap * (layers - layer - 1)
        for number, x in enumerate(columns):
            for step in (-1, 0, 1):
                if 0 <= number + step < _TOKENS and not (step == 1 and number == layer):
                    drawing.line([(x, below), (columns[number + step], above)], head=False, width=0.8, colour=_OTHER)
    for layer in range(layers):
        below, above = y + gap * (layers - layer), y + gap * (layers - layer - 1)
        drawing.line([(columns[layer], below), (columns[layer + 1], above)], head=False, width=3, colour=_PATH)
    for layer in range(layers + 1):
        _row(drawing, y + gap * layer)


def _attention(drawing: Drawing, y: float) -> None:
    _title(drawing, y + 20, "self-attention", "1 step,")
    drawing.text((16, y + 62), "all at once", size=13, anchor="start")
    columns = _columns()
    for start in columns:
        for end in columns:
            if (start, end) != (columns[0], columns[-1]):
                drawing.line([(start, y + 70), (end, y)], head=False, width=0.8, colour=_OTHER)
    drawing.line([(columns[0], y + 70), (columns[-1], y)], head=False, width=3, colour=_PATH)
    _row(drawing, y)
    _row(drawing, y + 70)
