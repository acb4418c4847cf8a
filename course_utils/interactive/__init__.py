"""Pieces that a reader operates: in Jupyter, on the site, and in a file opened from disk, without network.

In a notebook:

    from course_utils import interactive

    maps = [layer[0] for layer in model.get_attention_maps(x)]  # for each layer [H, T, T]
    interactive.show(interactive.attention_explorer(maps, tokens=["the", "cat", "sat"]))

Each function takes arrays and plain data and returns a `Piece`: a block of HTML with its styles, program and data in
it, a plain figure that stands in its place where JavaScript does not run, and alt text. Outside of a notebook `show`
prints the alt text.
"""

from course_utils.interactive.explorer import attention_explorer
from course_utils.interactive.game import odd_one_out_game
from course_utils.interactive.live_reverse import reverse_live
from course_utils.interactive.notebook import show
from course_utils.interactive.piece import Piece
from course_utils.interactive.schedule import warmup_schedule

__all__ = ["Piece", "attention_explorer", "odd_one_out_game", "reverse_live", "show", "warmup_schedule"]
