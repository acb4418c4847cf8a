"""Inputs of the exercises' cases: random tensors, and a short way to list them."""

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

from course_utils.checks.exercise import Case


def normal(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> Tensor:
    """Normally distributed numbers of the given shape and deviation, in single precision."""
    return torch.from_numpy(scale * rng.standard_normal(shape)).float()


def as_cases(inputs: Callable[[np.random.Generator], Iterable[tuple | Case]]) -> Callable:
    """A function that lists bare tuples of arguments, as one that lists cases; what is a case already stays."""

    def cases(rng: np.random.Generator) -> list[Case]:
        return [entry if isinstance(entry, Case) else Case(entry) for entry in inputs(rng)]

    return cases
