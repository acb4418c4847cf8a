"""Put a figure into the notebook, with its text alternative and a description of what it shows."""

import base64
import io

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display
from matplotlib.figure import Figure

from course_utils.figure_description import MIME_TYPE, describe


def show(figure: Figure, alt: str) -> None:
    """Put a figure into the notebook.

    Args:
        figure: as returned by a function of this module.
        alt: what the figure shows, in a sentence or two, for readers who cannot see it.

    Raises:
        ValueError: if alt is empty.
    """
    if not alt.strip():
        raise ValueError("a figure needs alt text: say in a sentence what it shows")
    if not InteractiveShell.initialized():
        print(alt)
        return
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=100, bbox_inches="tight", metadata={"Software": None})
    bundle = {
        "image/png": base64.b64encode(png.getvalue()).decode(),
        "text/plain": alt,
        MIME_TYPE: describe(figure),
    }
    display(bundle, metadata={"image/png": {"alt": alt}}, raw=True)
