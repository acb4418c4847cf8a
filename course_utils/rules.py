"""Rules that find the odd one of a set without being trained: what a set model has to beat."""

import torch.nn.functional as F
from torch import Tensor


def cosine_rule(sets: Tensor, centre: Tensor | None = None) -> Tensor:
    """The image of each set whose features are the least similar to those of the others, on average.

    Similarity is the cosine of the angle between two images' features, seen from a centre.

    Args:
        sets: features [..., T, D].
        centre: [D], such as the mean over the training images; None for 0. Features that are never negative (pixels,
            or what an activation gives) all lie in much the same direction from 0, and in different ones from
            their mean.

    Returns:
        Positions [...], from 0 to T-1.

    Raises:
        ValueError: for sets of fewer than 3 images: of two, each is as similar to the other.
    """
    if sets.dim() < 2 or sets.size(-2) < 3:
        raise ValueError(f"sets must be [..., T, D] with T of at least 3, got {list(sets.shape)}")
    direction = F.normalize(sets if centre is None else sets - centre, dim=-1)
    similarity = direction @ direction.transpose(-2, -1)  # [..., T, T]
    return similarity.sum(dim=-1).argmin(dim=-1)  # the similarity with itself is 1 for each, and changes nothing
