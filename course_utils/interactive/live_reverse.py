"""The trained reverse model, running in the reader's page: type digits, see its output and its attention."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from course_utils import plotting
from course_utils.figure_description import summary
from course_utils.interactive.packing import attention_layers, pack_floats
from course_utils.interactive.piece import Piece, assemble
from course_utils.plotting.style import as_array

_BLOCK = "transformer.layers.0."
_DIGITS = 10
_LINEAR = (
    "input_net.1",
    _BLOCK + "self_attn.qkv_proj",
    _BLOCK + "self_attn.o_proj",
    _BLOCK + "linear_net.0",
    _BLOCK + "linear_net.3",
    _BLOCK + "norm1",
    _BLOCK + "norm2",
    "output_net.0",
    "output_net.1",
    "output_net.4",
)
_PARAMETERS = tuple(f"{name}.{kind}" for name in _LINEAR for kind in ("weight", "bias"))


def reverse_live(
    state: Mapping[str, ArrayLike],
    digits: ArrayLike,
    logits: ArrayLike,
    attention: ArrayLike,
    *,
    alt: str | None = None,
) -> Piece:
    """A trained reverse model in the page, which computes it anew with every digit that the reader types.

    The parameters travel as float32, and the page computes with them in double precision: its logits agree with
    PyTorch's to 1e-4. The sequence given is the one that the page begins with, and the plain figure shows it.

    Args:
        state: the model's state dict, as `model.state_dict()` gives it: one post-norm block with one head.
        digits: the sequence [T] to begin with. T is the length that the model was trained on, and the longest that the
            reader may type.
        logits: of the model for this sequence, [T, 10].
        attention: of the model for this sequence, [T, T].
        alt: what is to be seen, in a sentence or two.

    Raises:
        ValueError: if the state is of another model, or the shapes disagree.
    """
    parameters = _parameters(state)
    digits, logits, attention = as_array(digits).astype(int), as_array(logits), as_array(attention)
    length = len(digits)
    shapes = (digits.shape, logits.shape, attention.shape)
    if length == 0 or shapes != ((length,), (length, _DIGITS), (length, length)):
        raise ValueError(f"digits, logits and attention must be [T], [T, {_DIGITS}] and [T, T], got {shapes}")
    if digits.min() < 0 or digits.max() >= _DIGITS:
        raise ValueError(f"digits must be from 0 to {_DIGITS - 1}, got {digits.min()} to {digits.max()}")
    attention = attention_layers([attention[None]])
    outputs = logits.argmax(axis=-1)
    right = int((outputs == digits[::-1]).sum())
    return assemble(
        "liveReverse",
        {
            "parameters": {
                "data": pack_floats(np.concatenate([values.ravel() for values in parameters.values()])),
                "shapes": [[name, list(values.shape)] for name, values in parameters.items()],
            },
            "count": sum(values.size for values in parameters.values()),
            "length": length,
            "start": digits.tolist(),
        },
        scripts=("reverse_model.js", "map.js", "live_reverse.js"),
        styles=("live_reverse.css",),
        fallback=_figure(digits, outputs, attention[0]),
        alt=alt
        or f"Attention of the reverse model over {length} digits; {right} of its {length} outputs are right. "
        "Type other digits and see both change.",
        facts={
            "digits": digits.tolist(),
            "outputs": outputs.tolist(),
            "attention": summary(attention),
            "parameters": {name: summary(values) for name, values in parameters.items()},
        },
    )


def _parameters(state: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
    """The parameters in the order in which they travel, once it is sure that the page can compute this model."""
    if set(state) != set(_PARAMETERS):
        missing, unknown = sorted(set(_PARAMETERS) - set(state)), sorted(set(state) - set(_PARAMETERS))
        raise ValueError(
            "the page computes a predictor with one post-norm block; this state dict is of another model: "
            f"it lacks {missing} and has besides {unknown}"
        )
    parameters = {name: as_array(state[name]) for name in _PARAMETERS}
    classes = (parameters["input_net.1.weight"].shape[1], parameters["output_net.4.weight"].shape[0])
    if classes != (_DIGITS, _DIGITS):
        raise ValueError(
            f"the page shows a model of {_DIGITS} digits, this one has {classes[0]} in and {classes[1]} out"
        )
    return parameters


def _figure(digits: np.ndarray, outputs: np.ndarray, attention: np.ndarray) -> Figure:
    queries = [f"{digit} → {output}" for digit, output in zip(digits, outputs, strict=True)]
    figure = plotting.attention_maps([attention], queries, digits.tolist())
    figure.axes[0].set(xlabel="key: the digits", ylabel="query: its digit → output")
    figure.axes[0].tick_params(axis="x", rotation=0)
    return figure
