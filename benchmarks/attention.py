"""The attention layer, forward and backward, against its floor and against PyTorch's own layer; and its memory."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.measure import Row, compare, row_of
from course_utils.attention import MultiheadAttention
from course_utils.experiments.peak_memory import peak_memory

WIDTH, HEADS, TOKENS = 256, 8, 2048  # so many tokens a batch, in sequences of each length
LENGTHS = {"full": (16, 64, 256, 1024, 4096), "quick": (16, 64)}


class Floor(nn.Module):
    """Two projections around the fused kernel: the least that multi-head attention can be made of."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.project, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """x: [B, T, D] -> [B, T, D]."""
        batch, length, width = x.shape
        q, k, v = self.project(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        values = F.scaled_dot_product_attention(q, k, v)
        return self.mix(values.transpose(1, 2).reshape(batch, length, width))


def _forward_and_backward(layer: Callable[[Tensor], Tensor], x: Tensor) -> Callable[[], None]:
    def run() -> None:
        layer(x).sum().backward()

    return run


def rows(size: str, threads: int) -> list[Row]:
    """The layer's time against two others, over the length."""
    found = []
    for length in LENGTHS[size]:
        batch = max(1, TOKENS // length)
        x = torch.randn(batch, length, WIDTH, requires_grad=True)
        theirs = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        peers = {
            "two projections + fused attention": (Floor(WIDTH, HEADS), 1.10),
            "nn.MultiheadAttention": (lambda x, layer=theirs: layer(x, x, x, need_weights=False)[0], 1.05),
        }
        ours = MultiheadAttention(WIDTH, WIDTH, HEADS)
        for against, (layer, at_most) in peers.items():
            found.append(
                compare(
                    _forward_and_backward(ours, x),
                    _forward_and_backward(layer, x),
                    what="attention layer, forward and backward",
                    against=against,
                    size=f"T = {length}, B = {batch}",
                    threads=threads,
                    at_most=at_most,
                    x=length,
                    pairs=7 if length > 1000 else 11,
                )
            )
    return found


def memory(size: str) -> list[Row]:
    """The peak memory of a forward pass without maps, against one with them."""
    length = max(LENGTHS[size])
    layer, x = MultiheadAttention(WIDTH, WIDTH, HEADS), torch.randn(1, length, WIDTH)
    with torch.no_grad():
        without = peak_memory(lambda: layer(x))
        with_maps = peak_memory(lambda: layer(x, return_attention=True))
    return [
        row_of(
            [without],
            [with_maps],
            what="peak memory of a forward pass without maps",
            against="the layer with maps",
            size=f"T = {length}, B = 1",
            threads=1,
            at_most=0.10 if size == "full" else None,
            unit="bytes",
        )
    ]
