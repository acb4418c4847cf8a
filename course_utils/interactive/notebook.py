"""Put an interactive piece into the notebook."""

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from course_utils.interactive.piece import Piece


def show(piece: Piece) -> None:
    """Put an interactive piece into the notebook; outside of one, print its alt text."""
    if not InteractiveShell.initialized():
        print(piece.alt)
        return
    display(piece.bundle(), raw=True)
