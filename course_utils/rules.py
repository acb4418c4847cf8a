"""Rules that find the odd one of a set without being trained: what a set model has to beat."""

import torch
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


def posterior_rule(log_probabilities: Tensor, token_mask: Tensor | None = None) -> Tensor:
    """How likely each image of a set is the odd one, by Bayes' rule, from what is known of each image's class.

    If image i is the odd one and the others are of class c, then each of the others is of class c and image i is not:
    (1 - p_i(c)) times the product of p_j(c) over the others j. The score is the logarithm of the sum over c. The
    softmax of the scores over the set is the probability that an image is the odd one, if the probabilities are right,
    each image's errors are independent of the others', and all classes are equally frequent.

    Args:
        log_probabilities: log p of each class for each image, [..., T, C].
        token_mask: [..., T], True where a real image stands; None for everywhere.

    Returns:
        Scores [..., T]; of what is no image, the smallest number there is.
    """
    # 1 - p, of the most certain image too, is at least what single precision can tell from nothing.
    log_not = torch.log1p(-log_probabilities.exp().clamp(max=1 - 1e-6))
    if token_mask is not None:
        missing = ~token_mask.bool()
        log_probabilities = log_probabilities.masked_fill(missing[..., None], 0.0)
    of_all = log_probabilities.sum(dim=-2, keepdim=True)  # [..., 1, C]
    scores = torch.logsumexp(of_all - log_probabilities + log_not, dim=-1)  # [..., T]
    return scores if token_mask is None else scores.masked_fill(missing, torch.finfo(scores.dtype).min)
