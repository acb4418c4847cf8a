"""Put a figure into the notebook, with its text alternative and a description of what it shows."""

import base64
import io

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display
from matplotlib.figure import Figure
from matplotlib.image import AxesImage, BboxImage
from PIL import Image

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
    bundle = {
        "image/png": base64.b64encode(_png(figure)).decode(),
        "text/plain": alt,
        MIME_TYPE: describe(figure),
    }
    display(bundle, metadata={"image/png": {"alt": alt}}, raw=True)


def _png(figure: Figure) -> bytes:
    """The figure as a small file: 256 colours do for lines and words, but not for colour maps and images."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=100, bbox_inches="tight", metadata={"Software": None})
    picture = Image.open(drawn).convert("RGB")
    if not figure.findobj(AxesImage) and not figure.findobj(BboxImage):
        picture = picture.quantize(256, dither=Image.Dither.NONE)
    small = io.BytesIO()
    picture.save(small, "PNG", optimize=True)
    return small.getvalue()
