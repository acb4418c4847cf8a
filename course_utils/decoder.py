"""The decoder of the Transformer: causal self-attention, attention to a memory, a feed-forward network, and a stack."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from course_utils.causal_attention import CausalAttention
from course_utils.cross_attention import CrossAttention
from course_utils.encoder import feed_forward
from course_utils.key_value_cache import KeyValueCache


@dataclass
class BlockCache:
    """What a decoder block remembers between two tokens: of the tokens so far, and of the memory."""

    tokens: KeyValueCache = field(default_factory=KeyValueCache)
    memory: KeyValueCache = field(default_factory=KeyValueCache)


class DecoderBlock(nn.Module):
    """Causal self-attention, cross-attention to a memory and a feed-forward network, each with residual and norm.

    Args:
        input_dim: width D of the tokens and of the memory.
        num_heads: number of attention heads H; it divides input_dim.
        dim_feedforward: width of the hidden layer of the feed-forward network.
        dropout: probability of dropping a value, in training only.
        norm_first: pre-norm rather than post-norm, as in `EncoderBlock`.
    """

    def __init__(
        self, input_dim: int, num_heads: int, dim_feedforward: int, dropout: float = 0.0, norm_first: bool = False
    ):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = CausalAttention(input_dim, input_dim, num_heads)
        self.cross_attn = CrossAttention(input_dim, input_dim, input_dim, num_heads)
        self.linear_net = feed_forward(input_dim, dim_feedforward, dropout)
        self.norm1 = nn.LayerNorm(input_dim)
        self.norm2 = nn.LayerNorm(input_dim)
        self.norm3 = nn.LayerNorm(input_dim)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        *,
        token_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: BlockCache | None = None,
        return_attention: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor, Tensor]:
        """Map the tokens [B, T, D] to [B, T, D], given a memory [B, Tm, D].

        Args:
            x: the tokens; with a cache only the new ones.
            memory: what the encoder has made of the source.
            token_mask: [B, T], True where a real token stands.
            memory_mask: [B, Tm], True where a real token of the memory stands.
            cache: what the block remembers of earlier tokens; x is added to it.
            return_attention: also return the weights of self-attention [B, H, T, Tk] and cross-attention [B, H, T, Tm].
        """
        cache = BlockCache() if cache is None else cache
        attended = self.self_attn(
            self._before(self.norm1, x), return_attention, token_mask=token_mask, cache=cache.tokens
        )
        attended, own = attended if return_attention else (attended, None)
        x = self._add(self.norm1, x, attended)

        attended = self.cross_attn(
            self._before(self.norm2, x),
            memory,
            return_attention=return_attention,
            token_mask=memory_mask,
            cache=cache.memory,
        )
        attended, across = attended if return_attention else (attended, None)
        x = self._add(self.norm2, x, attended)

        x = self._add(self.norm3, x, self.linear_net(self._before(self.norm3, x)))
        return (x, own, across) if return_attention else x

    def _before(self, norm: nn.LayerNorm, x: Tensor) -> Tensor:
        """What a part is given."""
        return norm(x) if self.norm_first else x

    def _add(self, norm: nn.LayerNorm, x: Tensor, change: Tensor) -> Tensor:
        """The residual connection around a part."""
        x = x + self.dropout(change)
        return x if self.norm_first else norm(x)


class TransformerDecoder(nn.Module):
    """A stack of decoder blocks.

    Args:
        num_layers: number of blocks, at least 1.
        **block_args: the arguments of `DecoderBlock`, the same for each block.

    Attributes:
        layers: the blocks, from input to output.
        norm: the final layer norm of a pre-norm stack; the identity for post-norm.

    Raises:
        ValueError: if num_layers is below 1.
    """

    def __init__(self, num_layers: int, **block_args):
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"num_layers must be at least 1, got {num_layers}")
        self.layers = nn.ModuleList(DecoderBlock(**block_args) for _ in range(num_layers))
        self.norm = nn.LayerNorm(block_args["input_dim"]) if block_args.get("norm_first") else nn.Identity()

    def new_caches(self) -> list[BlockCache]:
        """Empty caches, one for each block, for the tokens of one batch of sequences."""
        return [BlockCache() for _ in self.layers]

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        *,
        token_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        caches: list[BlockCache] | None = None,
    ) -> Tensor:
        """Map the tokens [B, T, D] to [B, T, D], given a memory [B, Tm, D]; as `DecoderBlock.forward`."""
        for layer, cache in zip(self.layers, caches or self.new_caches(), strict=True):
            x = layer(x, memory, token_mask=token_mask, memory_mask=memory_mask, cache=cache)
        return self.norm(x)

    @torch.no_grad()
    def get_attention_maps(
        self, x: Tensor, memory: Tensor, *, token_mask: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> tuple[list[Tensor], list[Tensor]]:
        """The weights of each block, as `forward` uses them: on tokens [B, H, T, T] and memory [B, H, T, Tm]."""
        on_tokens, on_memory = [], []
        for layer in self.layers:
            x, own, across = layer(x, memory, token_mask=token_mask, memory_mask=memory_mask, return_attention=True)
            on_tokens.append(own)
            on_memory.append(across)
        return on_tokens, on_memory
