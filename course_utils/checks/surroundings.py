"""A check's own surroundings: the notebook's random state, number types and warnings neither reach it nor change."""

import contextlib
import random
import warnings
from collections.abc import Iterator

import numpy as np
import torch


@contextlib.contextmanager
def own_surroundings() -> Iterator[None]:
    """While it lasts, PyTorch and NumPy behave as after a fresh start; afterwards all is as the notebook had it.

    That covers the random states, the default number type and device, recording for gradients, inference mode, NumPy's
    reaction to divisions by zero, and the warnings that are shown.
    """
    number_type, python_state, numpy_state = torch.get_default_dtype(), random.getstate(), np.random.get_state()
    deterministic = torch.are_deterministic_algorithms_enabled()
    only_warn = torch.is_deterministic_algorithms_warn_only_enabled()
    with (
        _same_default_device(),
        torch.random.fork_rng(),  # of all devices that are in use
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.device("cpu"),
        np.errstate(all="ignore"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        torch.set_default_dtype(torch.float32)
        torch.manual_seed(0)
        np.random.seed(0)
        random.seed(0)
        try:
            yield
        finally:
            torch.set_default_dtype(number_type)
            if deterministic != torch.are_deterministic_algorithms_enabled():  # setting it imports much
                torch.use_deterministic_algorithms(deterministic, warn_only=only_warn)
            np.random.set_state(numpy_state)
            random.setstate(python_state)


@contextlib.contextmanager
def _same_default_device() -> Iterator[None]:
    device = torch.get_default_device()
    try:
        yield
    finally:
        if torch.get_default_device() != device:
            torch.set_default_device(device)
