"""Scaled dot-product attention and multi-head attention (Vaswani et al., 2017, section 3.2).

Shape letters: B batch, T sequence or set length (Tq queries, Tk keys), H heads, D model width.
In every mask, True (or 1) means "may attend".
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def scaled_dot_product(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Attention by definition: softmax(q kᵀ / √d_k) v, with the weights returned beside the values.

    Args:
        q: queries [..., Tq, d_k], of a floating-point type.
        k: keys [..., Tk, d_k].
        v: values [..., Tk, d_v].
        mask: broadcastable to [..., Tq, Tk]; True (or 1) where a query may attend to a key.

    Returns:
        values [..., Tq, d_v] and attention [..., Tq, Tk]. Each attention row sums to 1;
        a query that may attend to nothing gets a row of zeros and zero values.

    Raises:
        ValueError: if the sizes do not fit together, or the mask holds a value other than 0 and 1.
        TypeError: if q, k and v are not of one floating-point type, or the mask is no tensor.
    """
    _check_qkv(q, k, v)
    d_k = q.size(-1)
    logits = (q / math.sqrt(d_k)) @ k.transpose(-2, -1)  # [..., Tq, Tk]; scaled first, so that float16 overflows later
    if mask is None:
        attention = logits.softmax(dim=-1)
    else:
        mask = _broadcastable_mask(mask, logits.shape)
        sees_a_key = mask.any(dim=-1, keepdim=True)
        # A row of nothing but -inf has no softmax: such a row keeps its logits and is zeroed afterwards.
        logits = logits.masked_fill(~mask & sees_a_key, float("-inf"))
        attention = logits.softmax(dim=-1).masked_fill(~sees_a_key, 0.0)
    return attention @ v, attention


def expand_mask(mask: Tensor) -> Tensor:
    """Bring an attention mask to rank 4, [B, H, Tq, Tk], with size 1 where it is shared.

    Args:
        mask: [Tq, Tk] (shared by the batch and the heads), [B, Tq, Tk] (shared by the heads) or [B, H, Tq, Tk].

    Returns:
        A view of the mask of rank 4.

    Raises:
        ValueError: for any other rank.
    """
    if mask.dim() == 2:
        return mask[None, None]
    if mask.dim() == 3:
        return mask[:, None]
    if mask.dim() == 4:
        return mask
    raise ValueError(
        f"a mask has rank 2 [Tq, Tk], 3 [B, Tq, Tk] or 4 [B, H, Tq, Tk], but this one has rank {mask.dim()} and "
        f"shape {list(mask.shape)}"
    )


def regroup_per_head(packed: Tensor, num_heads: int) -> Tensor:
    """Reorder the rows of PyTorch's packed projection into the layout of `MultiheadAttention.qkv_proj`.

    `nn.MultiheadAttention.in_proj_weight` holds the rows of all queries, then all keys, then all values; for two
    heads: [q₁ q₂ | k₁ k₂ | v₁ v₂]. Here each head keeps its own three together: [q₁ k₁ v₁ | q₂ k₂ v₂].

    Args:
        packed: a weight [3·D, input_dim] or a bias [3·D] in PyTorch's order.
        num_heads: number of heads H; it divides D.

    Returns:
        A tensor of the same shape with the rows grouped per head.

    Raises:
        ValueError: if the first size is not divisible by 3·num_heads.
    """
    if num_heads < 1 or packed.size(0) % (3 * num_heads) != 0:
        raise ValueError(
            f"the first size of the projection must be divisible by 3·num_heads = {3 * num_heads}, "
            f"but its shape is {list(packed.shape)}"
        )
    head_dim = packed.size(0) // (3 * num_heads)
    return packed.unflatten(0, (3, num_heads, head_dim)).transpose(0, 1).flatten(0, 2)


class MultiheadAttention(nn.Module):
    """Self-attention with several heads, each of width embed_dim / num_heads.

    Args:
        input_dim: width of the input.
        embed_dim: width D of the output, and of all heads together.
        num_heads: number of heads H; it divides embed_dim.

    Attributes:
        qkv_proj: Linear input_dim -> 3·embed_dim, whose rows are grouped per head as [q | k | v].
        o_proj: Linear embed_dim -> embed_dim, applied to the concatenated heads.

    Raises:
        ValueError: if a size is below 1 or num_heads does not divide embed_dim.
    """

    def __init__(self, input_dim: int, embed_dim: int, num_heads: int):
        super().__init__()
        if min(input_dim, embed_dim, num_heads) < 1:
            raise ValueError(
                f"input_dim, embed_dim and num_heads must be at least 1, got {input_dim}, {embed_dim} and {num_heads}"
            )
        if embed_dim % num_heads != 0:
            raise ValueError(f"embed_dim must be divisible by num_heads, got embed_dim={embed_dim}, {num_heads=}")
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads

        self.qkv_proj = nn.Linear(input_dim, 3 * embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for projection in (self.qkv_proj, self.o_proj):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        return_attention: bool = False,
        *,
        token_mask: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Let every token attend to every token that the masks allow.

        Args:
            x: [B, T, input_dim].
            mask: who may attend to whom: [Tq, Tk], [B, Tq, Tk] or [B, H, Tq, Tk]; a size of 1 broadcasts.
            return_attention: also return the attention weights. Without it no [T, T] tensor is kept.
            token_mask: [B, T], True (or 1) where a real token stands and not padding; combined with `mask`.

        Returns:
            [B, T, embed_dim]; with `return_attention` also the weights [B, H, T, T].

        Raises:
            ValueError: if x or a mask has another rank or size, or a mask holds a value other than 0 and 1.
        """
        input_dim = self.qkv_proj.in_features
        if x.dim() != 3 or x.size(-1) != input_dim:
            raise ValueError(f"x must be [batch, length, input_dim={input_dim}], got {list(x.shape)}")
        batch, length, _ = x.shape
        mask = combined_mask(mask, token_mask, (batch, self.num_heads, length, length))

        qkv = self.qkv_proj(x)  # [B, T, 3·D]
        qkv = qkv.view(batch, length, self.num_heads, 3 * self.head_dim).transpose(1, 2)  # [B, H, T, 3·head_dim]
        q, k, v = qkv.chunk(3, dim=-1)  # each [B, H, T, head_dim]

        if return_attention:
            values, attention = scaled_dot_product(q, k, v, mask)
        else:
            values, attention = fused_attention(q, k, v, mask), None
        values = values.transpose(1, 2).reshape(batch, length, self.embed_dim)  # the heads side by side again
        output = self.o_proj(values)
        return (output, attention) if return_attention else output


def fused_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """The values of `scaled_dot_product` by PyTorch's fused kernels, which never form the [Tq, Tk] weights."""
    if mask is None:
        return F.scaled_dot_product_attention(q, k, v)
    # What a kernel does with a row that sees nothing differs between devices and versions: give it everything to see,
    # then take the result away.
    sees_a_key = mask.any(dim=-1, keepdim=True)
    values = F.scaled_dot_product_attention(q, k, v, attn_mask=mask | ~sees_a_key)
    return values.masked_fill(~sees_a_key, 0.0)


def _check_qkv(q: Tensor, k: Tensor, v: Tensor) -> None:
    shapes = f"q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)}"
    if not (q.is_floating_point() and q.dtype == k.dtype == v.dtype):
        raise TypeError(f"q, k and v must be of one floating-point type, got {q.dtype}, {k.dtype} and {v.dtype}")
    if min(q.dim(), k.dim(), v.dim()) < 2:
        raise ValueError(f"q, k and v need a length and a width, [..., T, d], got {shapes}")
    if q.size(-1) != k.size(-1) or q.size(-1) == 0:
        raise ValueError(f"q and k must have the same width d_k, at least 1, got {shapes}")
    if k.size(-2) != v.size(-2):
        raise ValueError(f"k and v must have the same length Tk, got {shapes}")
    try:
        torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    except RuntimeError as error:
        raise ValueError(f"the sizes before the last two must be equal or 1, got {shapes}") from error


def _boolean_mask(mask: Tensor) -> Tensor:
    """A mask of 0 and 1, of any type, as booleans."""
    if not isinstance(mask, Tensor):
        raise TypeError(f"a mask must be a tensor, got {type(mask).__name__}; wrap it in torch.tensor(...)")
    if mask.dtype == torch.bool:
        return mask
    if not ((mask == 0) | (mask == 1)).all():
        raise ValueError(
            "a mask holds only 0 and 1, where 1 (or True) means 'may attend'; this one has other values. "
            "An additive mask (0 for 'may attend', a large negative number elsewhere) becomes one by `mask == 0`"
        )
    return mask != 0


def _broadcastable_mask(mask: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The mask as booleans, once it is sure that it broadcasts to the shape and does not enlarge it."""
    mask = _boolean_mask(mask)
    if not _broadcasts(mask, shape):
        raise ValueError(
            f"the mask must broadcast to the attention weights {list(shape)}, but its shape is {list(mask.shape)}"
        )
    return mask


def _broadcasts(mask: Tensor, shape: tuple[int, ...]) -> bool:
    sizes_fit = all(size in (1, target) for size, target in zip(reversed(mask.shape), reversed(shape), strict=False))
    return mask.dim() <= len(shape) and sizes_fit


def combined_mask(mask: Tensor | None, token_mask: Tensor | None, shape: tuple[int, int, int, int]) -> Tensor | None:
    """One boolean mask, broadcastable to [B, H, Tq, Tk], from the two kinds; None where neither is given."""
    batch, _, _, length = shape
    if mask is not None:
        given = mask
        mask = expand_mask(_boolean_mask(given))
        if not _broadcasts(mask, shape):
            raise ValueError(
                f"a mask [Tq, Tk], [B, Tq, Tk] or [B, H, Tq, Tk] must fit [B, H, Tq, Tk] = {list(shape)} (a size of 1 "
                f"broadcasts), but its shape is {list(given.shape)}; which tokens are padding says token_mask [B, T]"
            )
    if token_mask is None:
        return mask
    token_mask = _boolean_mask(token_mask)
    if token_mask.shape != (batch, length):
        raise ValueError(
            f"token_mask must be [batch, length] = {[batch, length]}, but its shape is {list(token_mask.shape)}"
        )
    visible_keys = token_mask[:, None, None, :]  # padding is hidden from every query
    return visible_keys if mask is None else mask & visible_keys
