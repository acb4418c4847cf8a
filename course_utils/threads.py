"""How many threads a model is worth."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

SMALL = 1_000_000  # parameters; below it, a step's matrix products are over before a second thread has woken up


@contextmanager
def threads_for(model: nn.Module) -> Iterator[None]:
    """Run a small model on one thread, a larger one on as many as torch has chosen.

    Handing work to another thread costs a small model more than the arithmetic, and far more when the other cores
    are busy: the thread that is done spins until the others come around.
    """
    threads = torch.get_num_threads()
    if sum(parameter.numel() for parameter in model.parameters()) < SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
