"""The computation graph of multi-head attention."""

from course_utils.diagrams.svg import Drawing


def multihead() -> Drawing:
    """One projection, cut into heads that attend side by side, put together again and mixed."""
    drawing = Drawing(
        "multihead",
        "Multi-head attention",
        "The tokens X are projected to the queries, keys and values of all heads at once. Each head attends on its "
        "own, with a width of D divided by H. The outputs of the heads stand side by side and are mixed by one more "
        "matrix.",
        480,
        430,
    )
    middle, heads = 240, (95, 240, 385)
    drawing.box((middle, 38), "X", "token", 90, bold=True)
    drawing.text((middle + 56, 38), "[T, D]", size=13, anchor="start")
    drawing.line([(middle, 55), (middle, 80)])
    drawing.box((middle, 97), "qkv_proj: one linear layer", "layer", 220)
    drawing.text((middle + 126, 97), "[T, 3·D]", size=13, anchor="start")
    for number, x in enumerate(heads):
        name = ("head 1", "head 2", "head H")[number]
        drawing.line([(middle, 114), (middle, 132), (x, 132), (x, 152)])
        drawing.frame((x - 62, 152), 124, 112)
        for offset, letter, role in ((-38, "Q", "query"), (0, "K", "key"), (38, "V", "value")):
            drawing.box((x + offset, 176), letter, role, 32, 28)
        drawing.line([(x, 191), (x, 208)])
        drawing.box((x, 224), "attention", "weight", 100, 30)
        drawing.text((x, 252), name, size=13)
        drawing.line([(x, 264), (x, 286), (middle + (number - 1) * 30, 286), (middle + (number - 1) * 30, 304)])
    drawing.text((312.5, 208), "…", size=20, bold=True)
    drawing.text((394, 277), "[T, D/H]", size=13, anchor="start")
    drawing.box((middle, 321), "side by side", width=150)
    drawing.text((middle + 85, 321), "[T, D]", size=13, anchor="start")
    drawing.line([(middle, 338), (middle, 356)])
    drawing.box((middle, 373), "o_proj: a linear layer", "layer", 190)
    drawing.line([(middle, 390), (middle, 416)])
    drawing.text((middle + 12, 410), "output [T, D]", size=13, anchor="start")
    return drawing
