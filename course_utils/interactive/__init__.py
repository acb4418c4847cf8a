"""Pieces that a reader operates: in Jupyter, on the site, and in a file opened from disk, without network.

In a notebook:

    from course_utils import interactive

    maps = [layer[0] for layer in model.get_attention_maps(x)]  # for each layer [H, T, T]
    interactive.show(interactive.attention_explorer(maps, tokens=["the", "cat", "sat"]))

    interactive.show(interactive.warmup_schedule(warmup=100, max_iters=2000, lr=1e-3))

    # a model of the reverse task, with one sequence [T] and what PyTorch computes for it
    interactive.show(interactive.reverse_live(model.state_dict(), digits, logits, attention))

    # sets of images [S, T, height, width], positions of the odd ones [S], the model's probabilities [S, T]
    interactive.show(interactive.odd_one_out_game(images, odd, probabilities))

Each function takes arrays and plain data and returns a `Piece`: a block of HTML with its styles, program and data in
it, a plain figure that stands in its place where JavaScript does not run, and alt text. Outside of a notebook `show`
prints the alt text. The values behind a piece stand in the description that `pytest --nbval` compares.

The programs are the .js files of this folder. Those that compute and touch no element of the page (weights.js,
reverse_model.js, schedule_factor.js) are held to PyTorch by tests. Each piece lives in a shadow root, so that its
styles and names meet those of no other.
"""

from course_utils.interactive.explorer import attention_explorer
from course_utils.interactive.game import odd_one_out_game
from course_utils.interactive.live_reverse import reverse_live
from course_utils.interactive.notebook import show
from course_utils.interactive.piece import Piece
from course_utils.interactive.schedule import warmup_schedule

__all__ = ["Piece", "attention_explorer", "odd_one_out_game", "reverse_live", "show", "warmup_schedule"]
