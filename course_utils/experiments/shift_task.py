"""A small task for questions of optimisation: name the digit before each digit, and train a Transformer on it."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn, optim

from course_utils.predictor import TransformerPredictor
from course_utils.schedule import CosineWarmupScheduler
from course_utils.threads import threads_for

DIGITS = 8
LENGTH = 10
WIDTH = 32
BATCH = 32
GUESSING = math.log(DIGITS)  # loss of a model that gives each digit the same probability, in nats
OPTIMIZERS = {
    "Adam": optim.Adam,
    "RAdam": optim.RAdam,
    "SGD": lambda parameters, lr: optim.SGD(parameters, lr=lr, momentum=0.9),
}


def shift_batch(size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """One-hot sequences [size, LENGTH, DIGITS], and the digit before each [size, LENGTH]: for the first, the last."""
    digits = torch.randint(DIGITS, (size, LENGTH), generator=generator)
    return F.one_hot(digits, num_classes=DIGITS).float(), digits.roll(1, dims=-1)


def shift_model(depth: int, norm_first: bool, seed: int) -> TransformerPredictor:
    """An untrained Transformer of width WIDTH with `depth` blocks, its weights drawn from a seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return TransformerPredictor(
            input_dim=DIGITS,
            model_dim=WIDTH,
            num_classes=DIGITS,
            num_heads=1,
            num_layers=depth,
            norm_first=norm_first,
            lr=1.0,  # the optimizer and the schedule are made below
            warmup=0,
            max_iters=1,
        )


def train_on_shift(
    *,
    depth: int,
    rate: float,
    seed: int,
    norm_first: bool = False,
    optimizer: str = "Adam",
    warmup: int = 0,
    clip: float | None = None,
    steps: int = 400,
) -> dict[str, object]:
    """Train a Transformer on the shift task with half a cosine of decay, and look at what came of it.

    Args:
        depth: number of encoder blocks.
        rate: highest learning rate.
        seed: of the weights and of the data.
        norm_first: pre-norm rather than post-norm.
        optimizer: one of OPTIMIZERS.
        warmup: steps of warm-up; 0 for none.
        clip: scale the gradient down to this norm where it is larger; None never does.
        steps: of the optimizer.

    Returns:
        "losses" in nats a digit and "gradient_norms" before clipping, one a step; "accuracy" of the trained model on
        new sequences, from 0 to 1; "similarity": the mean cosine similarity of two tokens of a sequence as they leave
        the last block.

    Raises:
        ValueError: for an unknown optimizer, or a clip that is not above 0.
    """
    if optimizer not in OPTIMIZERS:
        raise ValueError(f"optimizer must be one of {', '.join(OPTIMIZERS)}, got {optimizer!r}")
    if clip is not None and not clip > 0:
        raise ValueError(f"clip is a norm above 0, or None for no clipping; got {clip}")
    model = shift_model(depth, norm_first, seed)
    data = torch.Generator().manual_seed(1000 + seed)
    adapting = OPTIMIZERS[optimizer](model.parameters(), lr=rate)
    schedule = CosineWarmupScheduler(adapting, warmup=warmup, max_iters=steps)
    losses, gradient_norms = [], []
    with threads_for(model):
        for _ in range(steps):
            x, target = shift_batch(BATCH, data)
            loss = F.cross_entropy(model(x).flatten(0, 1), target.flatten())
            adapting.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), math.inf if clip is None else clip)
            adapting.step()
            schedule.step()
            losses.append(loss.item())
            gradient_norms.append(norm.item())
        accuracy, similarity = _looked_at(model, data)
    return {"losses": losses, "gradient_norms": gradient_norms, "accuracy": accuracy, "similarity": similarity}


@torch.no_grad()
def _looked_at(model: TransformerPredictor, data: torch.Generator) -> tuple[float, float]:
    """Accuracy on 500 new sequences, and the mean cosine similarity of two of their tokens after the last block."""
    leaving = []
    hook = model.transformer.register_forward_hook(lambda module, arguments, tokens: leaving.append(tokens))
    x, target = shift_batch(500, data)
    right = model.eval()(x).argmax(dim=-1) == target
    hook.remove()
    directions = F.normalize(leaving[0], dim=-1)  # [500, LENGTH, WIDTH]
    different = ~torch.eye(LENGTH, dtype=torch.bool)
    similarity = (directions @ directions.transpose(-2, -1))[:, different].mean()
    return right.float().mean().item(), similarity.item()
