"""The addition task: given the digits of two numbers, write the digits of their sum, one after the other."""

from collections.abc import Sequence

import course_utils.quiet  # noqa: F401

import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.utils.data import Dataset

from course_utils.batches import WholeBatch, eval_loader, train_loader
from course_utils.seq2seq import SequenceToSequence
from course_utils.training import Loaders, Recipe, load_or_fit, recipe_of, test

NUM_DIGITS = 3  # of each number; the sum has one more
_MODEL = {"num_tokens": 10, "model_dim": 48, "num_heads": 4, "num_layers": 1, "norm_first": True, "warmup": 100}
RECIPES = {
    "quick": Recipe(model=_MODEL | {"lr": 5e-3}, max_epochs=5, batch_size=128, gradient_clip_val=1.0),
    "full": Recipe(model=_MODEL | {"lr": 2e-3}, max_epochs=5, batch_size=128, gradient_clip_val=1.0),
}
SIZES = {"quick": (19_200, 1_000, 2_000), "full": (100_000, 1_000, 10_000)}  # pairs for training, validation, testing


class AdditionDataset(Dataset):
    """Pairs of numbers and their sums, as digits with leading zeros.

    Args:
        pairs: int64 [N], each a·10^num_digits + b for the two numbers a and b.
        num_digits: digits of each number.
        units_first: write the sum from its last digit to its first, as on paper; else as it is read.

    Raises:
        ValueError: if num_digits is below 1, or a pair does not lie between 0 and 100^num_digits - 1.
    """

    def __init__(self, pairs: Tensor, num_digits: int = NUM_DIGITS, units_first: bool = True):
        if num_digits < 1:
            raise ValueError(f"num_digits must be at least 1, got {num_digits}")
        largest = 100**num_digits - 1
        if len(pairs) and not 0 <= pairs.min() <= pairs.max() <= largest:
            raise ValueError(
                f"pairs of {num_digits} digits each lie between 0 and {largest}, "
                f"got some from {pairs.min()} to {pairs.max()}"
            )
        self.source = _digits(pairs, 2 * num_digits)  # [N, 2·num_digits]
        sums = _digits(pairs // 10**num_digits + pairs % 10**num_digits, num_digits + 1)
        self.target = sums.flip(-1) if units_first else sums  # [N, num_digits + 1]

    def __len__(self) -> int:
        """The number of pairs."""
        return len(self.source)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        """The digits of both numbers [2·num_digits] and of their sum [num_digits + 1], all int64."""
        return self.source[index], self.target[index]

    def __getitems__(self, indices: list[int]) -> WholeBatch:
        """The same for B pairs at once."""
        return WholeBatch(self.source[indices], self.target[indices])


def _digits(numbers: Tensor, count: int) -> Tensor:
    """The last `count` decimal digits of numbers [N], the highest first: [N, count]."""
    powers = 10 ** torch.arange(count - 1, -1, -1)
    return numbers[:, None] // powers % 10


def addition_loaders(profile: str = "quick", *, units_first: bool = True, seed: int = 42) -> Loaders:
    """Batches of pairs for training, validation and testing; no pair is in two of them."""
    batch_size = recipe_of(RECIPES, profile, {}).batch_size
    all_pairs = torch.randperm(100**NUM_DIGITS, generator=torch.Generator().manual_seed(seed))
    train, val, test_pairs, _ = all_pairs.tensor_split(torch.tensor(SIZES[profile]).cumsum(0))
    return Loaders(
        train=train_loader(AdditionDataset(train, units_first=units_first), batch_size),
        val=eval_loader(AdditionDataset(val, units_first=units_first), batch_size=500),
        test=eval_loader(AdditionDataset(test_pairs, units_first=units_first), batch_size=500),
    )


def train_addition(
    *,
    profile: str = "quick",
    max_epochs: int | None = None,
    units_first: bool = True,
    seed: int = 42,
    callbacks: Sequence[pl.Callback] = (),
    **model_kwargs,
) -> tuple[SequenceToSequence, dict[str, float]]:
    """Train a model of the addition task, and test it.

    Args:
        profile: "quick" (750 steps) or "full" (3,905 steps).
        max_epochs: passes over the training pairs; None leaves it to the profile.
        units_first: whether the sum is written from its last digit to its first.
        seed: of the pairs and of the training run.
        callbacks: for the training run, such as `training.History`.
        **model_kwargs: arguments of `SequenceToSequence`, in place of the profile's.

    Returns:
        The model, the best one by validation loss, and {"test_acc": ..., "val_acc": ...}: shares of sums that are
        written without a mistake, the model reading its own digits.

    Raises:
        ValueError: for an unknown profile.
    """
    recipe = recipe_of(RECIPES, profile, model_kwargs)
    loaders = addition_loaders(profile, units_first=units_first, seed=seed)
    model = load_or_fit(
        SequenceToSequence,
        recipe,
        loaders,
        name="addition",
        checkpoint="none",
        max_epochs=max_epochs,
        seed=seed,
        callbacks=callbacks,
    )
    return model, {"test_acc": test(model, loaders.test), "val_acc": test(model, loaders.val)}
