"""The course's diagrams, each drawn by a function of its own and shown as SVG.

`show("multihead")` puts one into a notebook, with its text alternative.
"""

from collections.abc import Callable

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from course_utils.diagrams.architecture import architecture
from course_utils.diagrams.layer_types import layer_types
from course_utils.diagrams.multihead import multihead
from course_utils.diagrams.scaled_dot_product import scaled_dot_product
from course_utils.diagrams.sentence import attention_over_a_sentence
from course_utils.diagrams.svg import Drawing

DIAGRAMS: dict[str, Callable[[], Drawing]] = {
    draw.__name__: draw
    for draw in (architecture, attention_over_a_sentence, layer_types, multihead, scaled_dot_product)
}


def show(name: str) -> None:
    """Put a diagram into the notebook.

    Args:
        name: one of `DIAGRAMS`.

    Raises:
        ValueError: for an unknown name.
    """
    if name not in DIAGRAMS:
        raise ValueError(f"there is no diagram {name!r}; there are: {', '.join(DIAGRAMS)}")
    drawing = DIAGRAMS[name]()
    if not InteractiveShell.initialized():
        print(drawing.description)
        return
    bundle = {"image/svg+xml": drawing.svg(), "text/plain": drawing.description}
    display(bundle, metadata={"image/svg+xml": {"alt": drawing.description}}, raw=True)
