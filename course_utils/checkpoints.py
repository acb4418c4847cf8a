"""Saved models: where a checkpoint lies, and loading it without trusting it."""

from pathlib import Path

import pytorch_lightning as pl
import torch

from course_utils.paths import checkpoint_dir


class CheckpointMissingError(FileNotFoundError):
    """A checkpoint that was asked for is not there."""


def fetch(name: str) -> Path:
    """The path of a checkpoint.

    Args:
        name: the file's name without its ending, such as "reverse".

    Raises:
        CheckpointMissingError: if it is not there.
    """
    path = checkpoint_dir() / f"{name}.ckpt"
    if not path.is_file():
        raise CheckpointMissingError(
            f"the checkpoint {path.name} is not in the folder {path.parent}; "
            f"put it there, or train instead with the parameter checkpoint='none'"
        )
    return path


def load(model_class: type[pl.LightningModule], name: str) -> pl.LightningModule:
    """The model of a checkpoint, on the CPU and in evaluation mode.

    Args:
        model_class: the class that the checkpoint was saved from.
        name: as for `fetch`.

    Raises:
        CheckpointMissingError: if the checkpoint is not there.
    """
    model = model_class.load_from_checkpoint(fetch(name), map_location="cpu", weights_only=True)
    return model.eval()


def save(model: pl.LightningModule, path: Path) -> None:
    """Write what `load` needs and nothing else: weights, hyper-parameters, and the version that wrote them."""
    torch.save(
        {
            "state_dict": {key: value.detach().cpu().clone() for key, value in model.state_dict().items()},
            "hyper_parameters": dict(model.hparams),
            "pytorch-lightning_version": pl.__version__,
        },
        path,
    )
