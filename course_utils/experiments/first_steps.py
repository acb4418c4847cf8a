"""Claim: without warm-up, the first steps of a deep post-norm model let attention drown the residual connections.

Measured: how large the output of attention is beside the tokens that it is added to, and how alike the tokens are as
they leave the last block, after each of the first steps.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, optim

from course_utils.experiments.residuals import similarity
from course_utils.experiments.shift_task import BATCH, shift_batch, shift_model
from course_utils.predictor import TransformerPredictor
from course_utils.schedule import CosineWarmupScheduler
from course_utils.threads import threads_for

STEPS = 40
OF_TRAINING = 400  # steps that the schedule is made for


def first_steps(
    *, warmup: int, seed: int, depth: int = 6, rate: float = 0.01, steps: int = STEPS
) -> dict[str, list[float]]:
    """Train with Adam for a few steps, and look at the model before each and after the last.

    Args:
        warmup: steps of warm-up; 0 for none.
        seed: of the weights and the data.
        depth: number of post-norm blocks.
        rate: highest learning rate.
        steps: to make, of the OF_TRAINING that the schedule is made for.

    Returns:
        "share": the norm of attention's output over that of the token it is added to, averaged over tokens and blocks;
        "similarity": mean cosine similarity of two tokens of a sequence after the last block. steps + 1 numbers each.
    """
    model = shift_model(depth, norm_first=False, seed=seed)
    data = torch.Generator().manual_seed(1000 + seed)
    looked_at, _ = shift_batch(BATCH, torch.Generator().manual_seed(2000 + seed))
    optimizer = optim.Adam(model.parameters(), lr=rate)
    schedule = CosineWarmupScheduler(optimizer, warmup=warmup, max_iters=OF_TRAINING)
    seen: dict[str, list[float]] = {"share": [], "similarity": []}
    with threads_for(model):
        for step in range(steps + 1):
            share, alike = _look(model, looked_at)
            seen["share"].append(share)
            seen["similarity"].append(alike)
            if step == steps:
                break
            x, target = shift_batch(BATCH, data)
            optimizer.zero_grad()
            F.cross_entropy(model(x).flatten(0, 1), target.flatten()).backward()
            optimizer.step()
            schedule.step()
    return seen


@torch.no_grad()
def _look(model: TransformerPredictor, x: Tensor) -> tuple[float, float]:
    shares: list[Tensor] = []
    hooks = [
        block.self_attn.register_forward_hook(
            lambda module, arguments, attended: shares.append(attended.norm(dim=-1) / arguments[0].norm(dim=-1))
        )
        for block in model.transformer.layers
    ]
    leaving: list[Tensor] = []
    hooks.append(model.transformer.register_forward_hook(lambda module, arguments, tokens: leaving.append(tokens)))
    model(x)
    for hook in hooks:
        hook.remove()
    alike = torch.tensor([similarity(sequence) for sequence in leaving[0]])
    return torch.stack(shares).mean().item(), alike.mean().item()
