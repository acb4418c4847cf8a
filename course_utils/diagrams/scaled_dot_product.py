"""The computation graph of scaled dot-product attention, from top to bottom, with the shape of each tensor."""

from course_utils.diagrams.svg import Drawing


def scaled_dot_product() -> Drawing:
    """Q and K are multiplied, scaled, masked and normalised; the weights then average V."""
    drawing = Drawing(
        "scaled-dot-product",
        "Scaled dot-product attention",
        "The queries Q and keys K are multiplied to scores, which are divided by the square root of d_k, masked, and "
        "turned into weights by a softmax over the keys. The weights are multiplied with the values V.",
        460,
        440,
    )
    left, right = 150, 350
    drawing.box((80, 40), "Q", "query", 90, bold=True)
    drawing.box((220, 40), "K", "key", 90, bold=True)
    drawing.box((right, 40), "V", "value", 90, bold=True)
    for x, shape in ((80, "[Tq, d_k]"), (220, "[Tk, d_k]"), (right, "[Tk, d_v]")):
        drawing.text((x, 12), shape, size=13)
    steps = [
        (115, "Q Kᵀ", "scores [Tq, Tk]"),
        (180, "÷ √d_k", "variance back to 1"),
        (245, "mask", "not allowed: −∞"),
        (310, "softmax", "over the keys"),
    ]
    drawing.line([(80, 57), (80, 78), (left - 20, 78), (left - 20, 98)])
    drawing.line([(220, 57), (220, 78), (left + 20, 78), (left + 20, 98)])
    for (y, name, note), following in zip(steps, [*steps[1:], None], strict=True):
        drawing.box((left, y), name, "weight" if name == "softmax" else "operation")
        drawing.text((left + 66, y), note, size=13, anchor="start")
        if following:
            drawing.line([(left, y + 17), (left, following[0] - 17)])
    drawing.line([(left, 327), (left, 350), (230, 350), (230, 368)])
    drawing.text((left - 8, 352), "weights", size=13, anchor="end")
    drawing.line([(right, 57), (right, 350), (270, 350), (270, 368)])
    drawing.box((250, 385), "weights · V", width=130)
    drawing.line([(250, 402), (250, 424)])
    drawing.text((262, 418), "output [Tq, d_v]", size=13, anchor="start")
    return drawing
