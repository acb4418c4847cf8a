"""Claim: self-attention is permutation-equivariant, f(P X) = P f(X); a positional encoding breaks that.

Refuted by a difference beyond rounding without positions, or by none beyond it with them.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from course_utils.attention import MultiheadAttention
from course_utils.positions import PositionalEncoding


def equivariance_error(
    length: int = 16, width: int = 32, num_heads: int = 4, seeds: Sequence[int] = range(10)
) -> dict[str, list[float]]:
    """How far f(P X) lies from P f(X) for an untrained attention layer f, relative to the size of f(X).

    Args:
        length: T, tokens of independent standard normal numbers.
        width: d.
        num_heads: of the layer.
        seeds: of the weights, the tokens and the permutation.

    Returns:
        ||f(P X) - P f(X)|| / ||f(X)|| in Frobenius norms, one for each seed: "attention" for the layer alone, and
        "with positions" where the sinusoidal encoding is added to what the layer gets. As a scale for both,
        "another permutation": ||P f(X) - f(X)|| / ||f(X)||, which is what not following the permutation at all gives.
    """
    results: dict[str, list[float]] = {"attention": [], "with positions": [], "another permutation": []}
    positional = PositionalEncoding(width)
    for seed in seeds:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(seed)
            layer = MultiheadAttention(width, width, num_heads)
            x = torch.randn(length, width)
            order = torch.randperm(length)
            output = layer(x[None])[0]
            located = layer(positional(x[None]))[0]
            results["attention"].append(_relative(layer(x[order][None])[0] - output[order], output))
            results["with positions"].append(_relative(layer(positional(x[order][None]))[0] - located[order], located))
            results["another permutation"].append(_relative(output[order] - output, output))
    return results


def _relative(difference: Tensor, to: Tensor) -> float:
    return (difference.norm() / to.norm()).item()
