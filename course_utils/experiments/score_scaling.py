"""Claim: a dot product of d_k independent terms of unit variance has variance d_k, and unscaled scores saturate the
softmax.

Refuted if the variance does not grow in proportion to d_k, or if the entropy of the attention weights and the gradient
of the softmax do not fall with d_k where the scores are left unscaled, or fall where they are divided by √d_k.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

KEYS = 16  # that a query chooses from
WIDTHS = tuple(2**power for power in range(1, 11))  # 2 to 1024


def score_variance(
    widths: Sequence[int] = WIDTHS, samples: int = 2_000, seeds: Sequence[int] = range(5)
) -> dict[str, list[list[float]]]:
    """Variance of the dot product of a query and a key, whose components are independent standard normal numbers.

    Args:
        widths: d_k.
        samples: pairs of a query and a key, for each width.
        seeds: of the pairs.

    Returns:
        "plain", and "scaled" by 1/√d_k, as [seeds][widths].
    """
    variance: dict[str, list[list[float]]] = {"plain": [], "scaled": []}
    for seed in seeds:
        generator = torch.Generator().manual_seed(seed)
        plain = []
        for d_k in widths:
            queries, keys = torch.randn(2, samples, d_k, generator=generator)
            plain.append((queries * keys).sum(dim=-1))  # [samples]
        variance["plain"].append([scores.var().item() for scores in plain])
        scaled = [scores / math.sqrt(d_k) for scores, d_k in zip(plain, widths, strict=True)]
        variance["scaled"].append([scores.var().item() for scores in scaled])
    return variance


def softmax_saturation(
    widths: Sequence[int] = WIDTHS, queries: int = 500, seeds: Sequence[int] = range(5)
) -> dict[str, dict[str, list[list[float]]]]:
    """How sure of itself the softmax over KEYS random keys is, and how much gradient it lets through.

    Args:
        widths: d_k.
        queries: for each width, each with keys of its own.
        seeds: of the queries and keys.

    Returns:
        "entropy" of the weights in nats, and "gradient": the Frobenius norm of the Jacobian of the weights by the
        scores, both as means over the queries; each for "plain" and "scaled" scores, as [seeds][widths].
    """
    results: dict[str, dict[str, list[list[float]]]] = {
        quantity: {"plain": [], "scaled": []} for quantity in ("entropy", "gradient")
    }
    for seed in seeds:
        generator = torch.Generator().manual_seed(seed)
        rows: dict[str, list[Tensor]] = {"plain": [], "scaled": []}
        for d_k in widths:
            query = torch.randn(queries, 1, d_k, generator=generator)
            keys = torch.randn(queries, KEYS, d_k, generator=generator)
            scores = (query * keys).sum(dim=-1)  # [queries, KEYS]
            rows["plain"].append(scores.softmax(dim=-1))
            rows["scaled"].append((scores / math.sqrt(d_k)).softmax(dim=-1))
        for name, of_widths in rows.items():
            results["entropy"][name].append([entropy(weights).mean().item() for weights in of_widths])
            results["gradient"][name].append([jacobian_norm(weights).mean().item() for weights in of_widths])
    return results


def entropy(weights: Tensor) -> Tensor:
    """Entropy in nats of rows [..., N] that sum to 1: log N for a uniform row, 0 where one weight is 1.

    Returns:
        [...].
    """
    return torch.special.entr(weights).sum(dim=-1)


def jacobian_norm(weights: Tensor) -> Tensor:
    """Frobenius norm of the derivative of a softmax by its scores, diag(a) - a aᵀ for the weights a.

    Args:
        weights: rows [..., N] that the softmax gave.

    Returns:
        [...].
    """
    jacobian = torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]  # [..., N, N]
    return torch.linalg.matrix_norm(jacobian)
