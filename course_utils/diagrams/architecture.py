"""The encoder-decoder architecture, with the part that the course builds standing out."""

import itertools

from course_utils.diagrams.svg import PALE, Drawing

_FADED_INK = "#5b5b60"


def architecture() -> Drawing:
    """Encoder on the left, in colour; decoder on the right, faded."""
    drawing = Drawing(
        "architecture",
        "Encoder and decoder",
        "On the left the encoder, which this notebook builds: tokens with positions pass N blocks of multi-head "
        "attention and a feed-forward network, each followed by a sum with its input and a layer norm. On the right, "
        "faded, the decoder of the original architecture: masked attention, attention to the encoder's output, and a "
        "feed-forward network, then a linear layer and a softmax over the next token.",
        520,
        600,
    )
    _encoder(drawing, 140)
    _decoder(drawing, 392)
    return drawing


def _encoder(drawing: Drawing, x: float) -> None:
    drawing.frame((x - 112, 216), 206, 278, fill="#f6f7fd", colour="#4a6fa5")
    drawing.text((x + 92, 204), "× N", anchor="end", bold=True)
    drawing.text((x, 22), "Encoder", size=17, bold=True)
    drawing.text((x, 44), "what you build here", size=13)
    drawing.text((x, 92), "encoded tokens [T, D]", size=13)
    drawing.line([(x, 241), (x, 104)])
    _part(drawing, x, 258, 310, "feed-forward", "layer")
    drawing.line([(x, 381), (x, 329)])
    _part(drawing, x, 398, 452, "multi-head\nattention", "weight")
    drawing.line([(x, 518), (x, 475)])
    drawing.box((x, 535), "+ positions", "value", 120)
    drawing.line([(x, 572), (x, 553)])
    drawing.text((x, 583), "tokens [T, D]", size=13)


def _part(drawing: Drawing, x: float, y_norm: float, y_part: float, name: str, role: str) -> None:
    """A part of a block, the sum with its input, and the norm of the sum."""
    half = 23 if "\n" in name else 19
    drawing.box((x, y_norm), "add, layer norm", "operation", 140, 34)
    drawing.box((x, y_part), name, role, 140, 2 * half)
    drawing.line([(x, y_part - half), (x, y_norm + 17)])
    below = y_part + half + 14
    drawing.line([(x, below), (x - 92, below), (x - 92, y_norm), (x - 70, y_norm)])


def _decoder(drawing: Drawing, x: float) -> None:
    drawing.frame((x - 94, 164), 200, 344, colour="#c9c9cd")
    drawing.text((x + 98, 494), "× N", anchor="end", colour=_FADED_INK)
    drawing.text((x, 22), "Decoder", size=17, colour=_FADED_INK)
    drawing.text((x, 44), "notebook 05", size=13, colour=_FADED_INK)
    drawing.text((x, 80), "next token", size=13, colour=_FADED_INK)
    parts = [
        (120, "linear, softmax"),
        (192, "add, layer norm"),
        (244, "feed-forward"),
        (296, "add, layer norm"),
        (348, "cross-attention"),
        (400, "add, layer norm"),
        (456, "masked\nself-attention"),
        (541, "+ positions"),
    ]
    tops = []
    for y, name in parts:
        half = 22 if "\n" in name else 16
        drawing.box((x, y), name, "faded", 120 if name.startswith("+") else 150, 2 * half, size=14)
        tops.append((y - half, y + half))
    for (_, bottom), (top, _) in itertools.pairwise(tops):
        drawing.line([(x, top), (x, bottom + 1)], colour=PALE)
    drawing.line([(x, 104), (x, 90)], colour=PALE)
    drawing.line([(140, 150), (268, 150), (268, 348), (x - 76, 348)], colour=PALE, dashed=True)
    drawing.line([(x, 574), (x, 558)], colour=PALE)
    drawing.text((x, 583), "output so far", size=13, colour=_FADED_INK)
