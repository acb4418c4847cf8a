"""Claim: what attention gives to other than the mirrored position follows the similarity of positions.

It is refuted by weights off the anti-diagonal that do not go with the similarity of the encodings, or that go as well
with the mere distance. A weight is the exponential of a score, so it is its logarithm that is compared.
"""

import torch
from torch import Tensor

from course_utils.positions import PositionalEncoding


def mirror_profile(attention: Tensor, d_model: int) -> dict[str, list[float] | float]:
    """The weight at each distance from the mirrored position, and how similar positions at that distance are.

    Args:
        attention: weights [..., T, T] of a model of the reverse task; means are taken over all but the last two.
        d_model: width of the positional encoding.

    Returns:
        "distance": 0 to T-1; "weight": the mean weight of a key at that distance from the query's mirrored position;
        "log_weight": the mean of its natural logarithm; "similarity": the cosine of the encodings of two positions at
        that distance; "correlation": Pearson's, of log_weight and similarity for distances from 1 on;
        "correlation_with_distance": the same of log_weight and distance.

    Raises:
        ValueError: for maps that are not square, or of fewer than 4 positions.
    """
    length = attention.size(-1)
    if attention.size(-2) != length or length < 4:
        raise ValueError(f"attention must be [..., T, T] with T of at least 4, got {list(attention.shape)}")
    maps = attention.double().reshape(-1, length, length)
    positions = torch.arange(length)
    distance = (positions[None, :] - (length - 1 - positions)[:, None]).abs()  # [T, T]

    def at_each_distance(mean_map: Tensor) -> Tensor:
        return torch.stack([mean_map[distance == away].mean() for away in range(length)])

    weight = at_each_distance(maps.mean(dim=0))
    log_weight = at_each_distance(maps.clamp(min=torch.finfo(torch.float32).tiny).log().mean(dim=0))
    encoding = PositionalEncoding(d_model, max_len=length).pe[0].double()
    similarity = torch.cosine_similarity(encoding[:1], encoding, dim=-1)  # it depends on the distance alone
    return {
        "distance": positions.tolist(),
        "weight": weight.tolist(),
        "log_weight": log_weight.tolist(),
        "similarity": similarity.tolist(),
        "correlation": _correlation(log_weight[1:], similarity[1:]),
        "correlation_with_distance": _correlation(log_weight[1:], positions[1:].double()),
    }


def _correlation(one: Tensor, other: Tensor) -> float:
    return float(torch.corrcoef(torch.stack([one, other]))[0, 1])
