"""The encoder of the Transformer: a block, and a stack of blocks (Vaswani et al., 2017, section 3.1)."""

import torch
from torch import Tensor, nn

from course_utils.attention import MultiheadAttention
from course_utils.positions import PositionalEncoding

__all__ = ["EncoderBlock", "PositionalEncoding", "TransformerEncoder"]


def feed_forward(width: int, hidden: int, dropout: float = 0.0) -> nn.Sequential:
    """The network that a block applies to each token alone, [..., width] -> [..., width] (Vaswani et al., 2017)."""
    return nn.Sequential(nn.Linear(width, hidden), nn.Dropout(dropout), nn.ReLU(inplace=True), nn.Linear(hidden, width))


class EncoderBlock(nn.Module):
    """Self-attention, then a feed-forward network on each token, each with a residual connection and a layer norm.

    Args:
        input_dim: width D of the tokens.
        num_heads: number of attention heads H; it divides input_dim.
        dim_feedforward: width of the hidden layer of the feed-forward network.
        dropout: probability of dropping a value, in training only.
        norm_first: normalise the input of each part (pre-norm; Xiong et al., 2020) rather than the sum
            after it (post-norm, as in the original paper).
    """

    def __init__(
        self, input_dim: int, num_heads: int, dim_feedforward: int, dropout: float = 0.0, norm_first: bool = False
    ):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiheadAttention(input_dim, input_dim, num_heads)
        self.linear_net = feed_forward(input_dim, dim_feedforward, dropout)
        self.norm1 = nn.LayerNorm(input_dim)
        self.norm2 = nn.LayerNorm(input_dim)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        *,
        token_mask: Tensor | None = None,
        return_attention: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Map [B, T, D] to [B, T, D]; the masks are those of `MultiheadAttention.forward`.

        With `return_attention`, also return the attention weights [B, H, T, T] of this pass.
        """
        attended = self.self_attn(
            self.norm1(x) if self.norm_first else x, mask, return_attention, token_mask=token_mask
        )
        attended, attention = attended if return_attention else (attended, None)
        x = x + self.dropout(attended)
        if not self.norm_first:
            x = self.norm1(x)

        x = x + self.dropout(self.linear_net(self.norm2(x) if self.norm_first else x))
        if not self.norm_first:
            x = self.norm2(x)
        return (x, attention) if return_attention else x


class TransformerEncoder(nn.Module):
    """A stack of encoder blocks.

    Args:
        num_layers: number of blocks, at least 1.
        **block_args: the arguments of `EncoderBlock`, the same for each block.

    Attributes:
        layers: the blocks, from input to output.
        norm: the final layer norm of a pre-norm stack, whose blocks leave their sum unnormalised;
            the identity for post-norm.

    Raises:
        ValueError: if num_layers is below 1.
    """

    def __init__(self, num_layers: int, **block_args):
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"num_layers must be at least 1, got {num_layers}")
        self.layers = nn.ModuleList(EncoderBlock(**block_args) for _ in range(num_layers))
        self.norm = nn.LayerNorm(block_args["input_dim"]) if block_args.get("norm_first") else nn.Identity()

    def forward(self, x: Tensor, mask: Tensor | None = None, *, token_mask: Tensor | None = None) -> Tensor:
        """Map [B, T, D] to [B, T, D]; the masks are those of `MultiheadAttention.forward`."""
        for layer in self.layers:
            x = layer(x, mask, token_mask=token_mask)
        return self.norm(x)

    @torch.no_grad()
    def get_attention_maps(
        self, x: Tensor, mask: Tensor | None = None, *, token_mask: Tensor | None = None
    ) -> list[Tensor]:
        """The attention weights [B, H, T, T] of each block, from input to output, as `forward` uses them."""
        attention_maps = []
        for layer in self.layers:
            x, attention = layer(x, mask, token_mask=token_mask, return_attention=True)
            attention_maps.append(attention)
        return attention_maps
