"""Claim: residual connections let each token keep its identity; attention alone makes all tokens alike.

Dong et al. (2021) prove that attention without residuals loses rank doubly exponentially with depth. Measured here:
how alike tokens are after each of many untrained attention layers.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.attention import MultiheadAttention

DEPTH = 12
LENGTH = 16
WIDTH = 64
HEADS = 4


def similarity(tokens: Tensor) -> float:
    """Mean cosine similarity of two different tokens: 1 if all point in one direction.

    Args:
        tokens: [T, D], T at least 2.
    """
    directions = F.normalize(tokens, dim=-1)
    different = ~torch.eye(len(tokens), dtype=torch.bool)
    return (directions @ directions.T)[different].mean().item()


@torch.no_grad()
def similarity_over_depth(
    *, residual: bool, seed: int, value_gain: float = 1.0, score_gain: float = 1.0, depth: int = DEPTH
) -> list[float]:
    """How alike random tokens are before the first untrained layer and after each.

    A layer is attention, with or without a residual connection around it, and a layer norm.

    Args:
        residual: add the layer's input to what attention gives.
        seed: of the tokens and the weights; the same for every gain.
        value_gain: factor on the weights that make the values.
        score_gain: factor on the scores of queries and keys, before the softmax.
        depth: number of layers.

    Returns:
        depth + 1 mean cosine similarities, of LENGTH tokens of width WIDTH.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        x = torch.randn(1, LENGTH, WIDTH)
        similarities = [similarity(x[0])]
        for _ in range(depth):
            attention = MultiheadAttention(WIDTH, WIDTH, HEADS)
            # The rows of the projection are grouped per head as [q | k | v].
            queries, _, values = attention.qkv_proj.weight.view(HEADS, 3, WIDTH // HEADS, WIDTH).unbind(dim=1)
            queries.mul_(score_gain)
            values.mul_(value_gain)
            attended = attention(x)
            x = F.layer_norm(x + attended if residual else attended, [WIDTH])
            similarities.append(similarity(x[0]))
    return similarities


def over_seeds(seeds: Sequence[int], **arguments) -> list[list[float]]:
    """`similarity_over_depth` for each seed: [seeds][depth + 1]."""
    return [similarity_over_depth(seed=seed, **arguments) for seed in seeds]
