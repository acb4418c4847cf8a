"""The training loop of small experiments: Adam with the course's schedule and clipped gradients, without a Trainer."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from course_utils.schedule import CosineWarmupScheduler
from course_utils.threads import threads_for


def train_for(
    steps: int,
    network: nn.Module,
    next_loss: Callable[[], Tensor],
    *,
    lr: float,
    warmup: int = 50,
    clip: float = 5.0,
    after_step: Callable[[int], None] = lambda step: None,
) -> None:
    """Train a network in place, and leave it in evaluation mode.

    Args:
        steps: of the optimizer; the learning rate has then come down to 0.
        network: its parameters are changed.
        next_loss: draws a batch and returns its loss.
        lr: highest learning rate.
        warmup: steps of warm-up.
        clip: largest norm of the gradient; a longer one is scaled down to it.
        after_step: is told the number of steps made, from 1; it may evaluate the network.

    Raises:
        ValueError: for fewer than 1 step.
    """
    if steps < 1:
        raise ValueError(f"training takes at least 1 step, got {steps=}")
    optimizer = torch.optim.Adam(network.parameters(), lr=lr)
    schedule = CosineWarmupScheduler(optimizer, warmup=warmup, max_iters=steps)
    with threads_for(network):
        for step in range(1, steps + 1):
            network.train()
            optimizer.zero_grad()
            next_loss().backward()
            nn.utils.clip_grad_norm_(network.parameters(), clip)
            optimizer.step()
            schedule.step()
            network.eval()
            after_step(step)


def endless(loader: DataLoader) -> Iterator[tuple[Tensor, ...]]:
    """The batches of a loader, epoch after epoch without end."""
    while True:
        yield from loader
