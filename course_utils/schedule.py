"""The learning-rate schedule: linear warm-up, then half a cosine down to zero."""

import math

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler


class CosineWarmupScheduler(LRScheduler):
    """Scale each learning rate by ½(1 + cos(π·step/max_iters)) · min(1, step/warmup).

    Call `step()` after each optimizer step (in Lightning: interval "step"), not after each epoch. The state dict
    carries the step reached, so a training run that resumes from a checkpoint goes on along the same curve.

    Args:
        optimizer: its learning rates are the ones at factor 1.
        warmup: optimizer steps until the warm-up factor reaches 1; 0 for no warm-up.
        max_iters: optimizer steps until the factor reaches 0, where it stays.

    Raises:
        ValueError: if warmup is negative or max_iters below 1.
    """

    def __init__(self, optimizer: Optimizer, warmup: int, max_iters: int):
        if warmup < 0 or max_iters < 1:
            raise ValueError(f"warmup must be at least 0 and max_iters at least 1, got {warmup=} and {max_iters=}")
        self.warmup = warmup
        self.max_iters = max_iters
        super().__init__(optimizer)

    def get_lr(self) -> list[float]:
        """The learning rate of each parameter group at the current step."""
        factor = self.get_lr_factor(self.last_epoch)
        return [float(base_lr) * factor for base_lr in self.base_lrs]

    def get_lr_factor(self, epoch: int) -> float:
        """The factor after `epoch` optimizer steps (named by PyTorch's custom), between 0 and 1."""
        if epoch >= self.max_iters:
            return 0.0
        factor = 0.5 * (1.0 + math.cos(math.pi * epoch / self.max_iters))
        if epoch < self.warmup:
            factor *= epoch / self.warmup
        return factor
