"""The reverse task: given a sequence of digits, predict the same digits in reverse order."""

from collections.abc import Sequence

import course_utils.quiet  # noqa: F401

import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import Dataset

from course_utils.batches import WholeBatch, eval_loader, train_loader
from course_utils.machine import Machine
from course_utils.predictor import TransformerPredictor
from course_utils.training import Loaders, Recipe, load_or_fit, recipe_of, test

NUM_CATEGORIES = 10
SEQ_LEN = 16

# The published recipe, and a shorter one: a higher peak of the learning rate needs a tenth of the steps.
_MODEL = {
    "input_dim": NUM_CATEGORIES,
    "num_classes": NUM_CATEGORIES,
    "model_dim": 32,
    "num_heads": 1,
    "num_layers": 1,
    "dropout": 0.0,
}
RECIPES = {
    "quick": Recipe(model=_MODEL | {"lr": 5e-3, "warmup": 50}, max_epochs=3, batch_size=128, gradient_clip_val=5.0),
    "full": Recipe(model=_MODEL | {"lr": 5e-4, "warmup": 50}, max_epochs=10, batch_size=128, gradient_clip_val=5.0),
}
TRAIN_SIZES = {"quick": 12_800, "full": 50_000}
CHECKPOINT = "reverse"


class ReverseDataset(Dataset):
    """Random sequences of digits, and the same sequences reversed.

    Args:
        num_categories: how many different digits there are.
        seq_len: length T of each sequence.
        size: number of sequences.
        seed: of the sequences; None draws them from torch's global generator.

    Raises:
        ValueError: if a number is below 1 (size: below 0).
    """

    def __init__(self, num_categories: int, seq_len: int, size: int, seed: int | None = None):
        if num_categories < 1 or seq_len < 1 or size < 0:
            raise ValueError(
                f"num_categories and seq_len must be at least 1 and size at least 0, "
                f"got {num_categories=}, {seq_len=}, {size=}"
            )
        self.num_categories = num_categories
        self.seq_len = seq_len
        self.size = size
        generator = None if seed is None else torch.Generator().manual_seed(int(seed))
        self.data = torch.randint(num_categories, (size, seq_len), generator=generator)  # int64 [size, T]

    def __len__(self) -> int:
        """The number of sequences."""
        return self.size

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        """A sequence [T] and the same one reversed [T], both int64."""
        sequence = self.data[index]
        return sequence, sequence.flip(-1)

    def __getitems__(self, indices: list[int]) -> WholeBatch:
        """The sequences [B, T] and their reversals [B, T] at once."""
        sequences = self.data[indices]
        return WholeBatch(sequences, sequences.flip(-1))


class ReversePredictor(TransformerPredictor):
    """A Transformer that predicts, for each position, the digit at the mirrored position."""

    def one_hot(self, sequences: Tensor) -> Tensor:
        """Digits int64 [B, T] as vectors [B, T, num_classes] of one 1 and otherwise 0."""
        return F.one_hot(sequences, num_classes=self.hparams.num_classes).to(self.dtype)

    def _calculate_loss(self, batch: tuple[Tensor, Tensor], mode: str) -> Tensor:
        sequences, targets = batch  # both [B, T]
        logits = self(self.one_hot(sequences))  # [B, T, C]; with positions: without them, no token knows its place
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        if self.is_noted(mode):
            accuracy = (logits.argmax(dim=-1) == targets).float().mean()
            self.log(f"{mode}_loss", loss, batch_size=len(targets), sync_dist=mode != "train")
            self.log(
                f"{mode}_acc", accuracy, batch_size=len(targets), prog_bar=mode == "val", sync_dist=mode != "train"
            )
        return loss

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
        """The cross-entropy of a batch, in nats a digit."""
        return self._calculate_loss(batch, "train")

    def validation_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> None:
        """Log val_loss and val_acc, the share of digits that are right."""
        self._calculate_loss(batch, "val")

    def test_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> None:
        """Log test_loss and test_acc, the share of digits that are right."""
        self._calculate_loss(batch, "test")


def reverse_loaders(profile: str = "quick", *, num_categories: int = NUM_CATEGORIES, seed: int = 42) -> Loaders:
    """Batches of sequences for training (12,800 or 50,000), validation (1,000) and testing (10,000)."""
    batch_size = recipe_of(RECIPES, profile, {}).batch_size
    sizes = {"train": TRAIN_SIZES[profile], "val": 1_000, "test": 10_000}
    data = {
        split: ReverseDataset(num_categories, SEQ_LEN, size, seed=seed + number)
        for number, (split, size) in enumerate(sizes.items())
    }
    return Loaders(
        train=train_loader(data["train"], batch_size),
        val=eval_loader(data["val"], batch_size),
        test=eval_loader(data["test"], batch_size),
    )


def train_reverse(
    *,
    profile: str = "quick",
    checkpoint: str = "auto",
    max_epochs: int | None = None,
    seed: int = 42,
    callbacks: Sequence[pl.Callback] = (),
    machine: Machine = Machine(),
    **model_kwargs,
) -> tuple[ReversePredictor, dict[str, float]]:
    """Load or train a model of the reverse task, and test it.

    Args:
        profile: "quick" (300 steps) or "full" (the published recipe, 3,900 steps).
        checkpoint: "auto", "required" or "none", as in `training.load_or_fit`.
        max_epochs: None leaves it to the profile; a number trains, whatever is saved.
        seed: of the data, and of a training run.
        callbacks: for a training run, such as `training.History`.
        machine: devices and precision of a training run.
        **model_kwargs: arguments of `ReversePredictor`, in place of the profile's.

    Returns:
        The model, the best one by validation, and {"test_acc": ..., "val_acc": ...}: shares of digits that are right.

    Raises:
        ValueError: for an unknown profile or choice of checkpoint.
        CheckpointMissingError: if the checkpoint is required and not there.
    """
    recipe = recipe_of(RECIPES, profile, model_kwargs)
    loaders = reverse_loaders(profile, num_categories=recipe.model["num_classes"], seed=seed)
    model = load_or_fit(
        ReversePredictor,
        recipe,
        loaders,
        name=CHECKPOINT,
        checkpoint=checkpoint,
        max_epochs=max_epochs,
        seed=seed,
        callbacks=callbacks,
        machine=machine,
    )
    return model, _measure(model, loaders)


def measure_reverse(model: ReversePredictor, *, seed: int = 42) -> dict[str, float]:
    """The metrics of a trained model, on the data that `train_reverse` tests with."""
    return _measure(model, reverse_loaders(num_categories=model.hparams.num_classes, seed=seed))


def _measure(model: ReversePredictor, loaders: Loaders) -> dict[str, float]:
    return {"test_acc": test(model, loaders.test), "val_acc": test(model, loaders.val)}
