"""Claim: in a post-norm Transformer the gradient near the output is large at the start, whatever the depth.

Xiong et al. (2020, theorem 1): for the last feed-forward layer it does not depend on the depth L in post-norm, and
falls as 1/sqrt(L) in pre-norm. Measured here: on untrained models of the shift task.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from course_utils.experiments.shift_task import shift_batch, shift_model

DEPTHS = (1, 2, 4, 8, 16, 32)
BATCH = 256


def gradient_at_start(depth: int, norm_first: bool, seed: int) -> float:
    """Norm of the loss's gradient by the second weight matrix of the last block's feed-forward network.

    Args:
        depth: number of encoder blocks.
        norm_first: pre-norm rather than post-norm.
        seed: of the weights and the data.
    """
    model = shift_model(depth, norm_first, seed)
    x, target = shift_batch(BATCH, torch.Generator().manual_seed(1000 + seed))
    loss = F.cross_entropy(model(x).flatten(0, 1), target.flatten())
    weight = model.transformer.layers[-1].linear_net[3].weight
    return torch.autograd.grad(loss, weight)[0].norm().item()


def over_depths(seeds: Sequence[int], depths: Sequence[int] = DEPTHS) -> dict[str, list[list[float]]]:
    """`gradient_at_start` for "post-norm" and "pre-norm": [depths][seeds]."""
    return {
        order: [[gradient_at_start(depth, order == "pre-norm", seed) for seed in seeds] for depth in depths]
        for order in ("post-norm", "pre-norm")
    }
