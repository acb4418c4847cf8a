"""Learned positions: a vector of its own for each position, found by training like any other weight."""

import torch
from torch import Tensor, nn


class LearnedPositions(nn.Module):
    """Add to each token the vector of its position.

    Args:
        d_model: width D of the tokens.
        max_len: number of positions that have a vector.

    Attributes:
        vectors: parameter [max_len, d_model]. A position that no training sequence reaches keeps its initial vector.

    Raises:
        ValueError: if a size is below 1.
    """

    def __init__(self, d_model: int, max_len: int):
        super().__init__()
        if d_model < 1 or max_len < 1:
            raise ValueError(f"d_model and max_len must be at least 1, got {d_model=} and {max_len=}")
        self.vectors = nn.Parameter(torch.randn(max_len, d_model))

    def forward(self, x: Tensor, first: int = 0) -> Tensor:
        """Return x [B, T, d_model] plus the vectors of the positions first, first + 1, ..., first + T - 1.

        Raises:
            ValueError: if x has another rank or width, or goes beyond the last position.
        """
        max_len, d_model = self.vectors.shape
        if x.dim() != 3 or x.size(-1) != d_model:
            raise ValueError(f"x must be [batch, length, d_model={d_model}], got {list(x.shape)}")
        end = first + x.size(1)
        if end > max_len:
            raise ValueError(f"a sequence of {end} tokens is longer than max_len={max_len}: no vector is left")
        return x + self.vectors[first:end]
