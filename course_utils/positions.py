"""Sinusoidal positional encoding (Vaswani et al., 2017, section 3.5)."""

import torch
from torch import Tensor, nn


class PositionalEncoding(nn.Module):
    """Add to each token a vector that depends on its position alone.

    Dimension 2i of position p holds sin(p / 10000^(2i/d_model)), dimension 2i+1 the cosine of the same angle.

    Args:
        d_model: width of the tokens; an odd width has one sine more than cosines.
        max_len: longest sequence that can be encoded.

    Attributes:
        pe: buffer [1, max_len, d_model]; computed, so it is not part of the state dict.

    Raises:
        ValueError: if a size is below 1.
    """

    pe: Tensor

    def __init__(self, d_model: int, max_len: int = 5000):
        super().__init__()
        if d_model < 1 or max_len < 1:
            raise ValueError(f"d_model and max_len must be at least 1, got {d_model=} and {max_len=}")
        # In double precision: at position 5000 a float32 angle is already off in the fourth digit.
        position = torch.arange(max_len, dtype=torch.float64)[:, None]  # [max_len, 1]
        exponent = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model  # 2i / d_model
        angle = position / 10000.0**exponent  # [max_len, ceil(d_model / 2)]
        pe = torch.empty(max_len, d_model, dtype=torch.float64)
        pe[:, 0::2] = angle.sin()
        pe[:, 1::2] = angle[:, : d_model // 2].cos()
        self.register_buffer("pe", pe[None].to(torch.get_default_dtype()), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return x plus the encoding of the positions 0 to T-1, in the type of x.

        Args:
            x: [B, T, d_model].

        Raises:
            ValueError: if x has another rank or width, or is longer than max_len.
            TypeError: if x is not of a floating-point type.
        """
        _, max_len, d_model = self.pe.shape
        if x.dim() != 3 or x.size(-1) != d_model:
            raise ValueError(f"x must be [batch, length, d_model={d_model}], got {list(x.shape)}")
        if not x.is_floating_point():
            raise TypeError(f"x must be of a floating-point type, got {x.dtype}: an integer cannot hold the sines")
        if x.size(1) > max_len:
            raise ValueError(f"a sequence of {x.size(1)} tokens is longer than max_len={max_len}; set a larger max_len")
        return x + self.pe[:, : x.size(1)].to(x.dtype)
