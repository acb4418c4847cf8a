"""The key-value cache: what attention must remember of the tokens it has seen, so as not to compute it again."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class KeyValueCache:
    """Keys and values of one attention layer; queries are not kept, since each is used once.

    Attributes:
        keys: [B, H, T, head_dim] of the T tokens seen so far; None before the first.
        values: of the same shape.
    """

    keys: Tensor | None = None
    values: Tensor | None = None

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add the keys and values of new tokens, [B, H, new, head_dim] each, and return those of all tokens."""
        if self.keys is not None:
            keys = torch.cat([self.keys, keys], dim=-2)
            values = torch.cat([self.values, values], dim=-2)
        self.keys, self.values = keys, values
        return keys, values

    @property
    def length(self) -> int:
        """Number of tokens seen so far."""
        return 0 if self.keys is None else self.keys.size(-2)

    @property
    def num_bytes(self) -> int:
        """Memory of what is kept: 2·B·H·T·head_dim numbers."""
        return 0 if self.keys is None else self.keys.nbytes + self.values.nbytes
