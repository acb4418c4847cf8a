"""Saved models: loading a checkpoint without trusting it, and saving one.

Where the files come from is the matter of `checkpoint_files`; its `fetch` is offered here as well.
"""

import inspect
import io
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import course_utils.quiet  # noqa: F401

import pytorch_lightning as pl
import torch
from torch import Tensor

from course_utils import registry
from course_utils.atomic import write_atomically
from course_utils.checkpoint_files import CheckpointMissingError, fetch

__all__ = ["CheckpointMissingError", "CheckpointUnfitError", "CheckpointUnsafeError", "fetch", "load", "save"]


class CheckpointUnsafeError(ValueError):
    """A checkpoint file holds something else than weights and plain values."""


class CheckpointUnfitError(ValueError):
    """A checkpoint does not fit the model that it is to be loaded into.

    Attributes:
        reason: the matter in a few words; the message says more.
    """

    def __init__(self, message: str, reason: str = "does not fit the model"):
        super().__init__(message)
        self.reason = reason


def load(model_class: type[pl.LightningModule], name: str) -> pl.LightningModule:
    """The model of a checkpoint, on the CPU and in evaluation mode.

    Args:
        model_class: the class that the checkpoint was saved from.
        name: as for `fetch`, which brings the file.

    Raises:
        CheckpointMissingError: if the checkpoint is not there and could not be fetched.
        CheckpointUnsafeError: if the file holds more than weights and plain values; nothing of it is run.
        CheckpointUnfitError: if it does not fit the class; says which weights or arguments, and why.
    """
    checkpoint = _read_safely(_verified_bytes(name), name)
    model = _build(model_class, checkpoint["hyper_parameters"], name)
    _check_weights(model.state_dict(), checkpoint["state_dict"], f"the checkpoint {name!r}", model_class.__name__)
    model.load_state_dict(checkpoint["state_dict"], strict=True)
    return model.eval()


def save(model: pl.LightningModule, path: Path) -> None:
    """Write what `load` needs and nothing else: weights, hyper-parameters, and the version that wrote them."""
    checkpoint = {
        "state_dict": {key: value.detach().cpu().clone() for key, value in model.state_dict().items()},
        "hyper_parameters": dict(model.hparams),
        "pytorch-lightning_version": pl.__version__,
    }
    # Into memory first: given a path, torch writes the file's name into the file, and equal models would differ.
    content = io.BytesIO()
    torch.save(checkpoint, content)
    write_atomically(Path(path), content.getvalue())


def _verified_bytes(name: str) -> bytes:
    """The bytes of a checkpoint, verified in memory: a file that changes after `fetch` has seen it gets no further."""
    path = fetch(name)
    content = path.read_bytes()
    if not registry.read()[name].recognises(content):
        raise CheckpointMissingError(f"the checkpoint {path.name} changed while it was being read; try again")
    return content


def _read_safely(content: bytes, name: str) -> Mapping[str, Any]:
    """The checkpoint in some bytes: weights_only, so that no pickled code runs, and mapped to the CPU, which exists."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch may remark on the format before it refuses it
            checkpoint = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:
        # Not chained: torch's own message recommends to load the file unsafely.
        raise CheckpointUnsafeError(
            f"the checkpoint {name!r} was refused: it holds {_what_is_wrong(error)}, and nothing of it was run; "
            f"fetch the right file, or train instead with the parameter checkpoint='none'"
        ) from None
    parts = ("state_dict", "hyper_parameters")
    if not isinstance(checkpoint, dict) or not all(isinstance(checkpoint.get(part), dict) for part in parts):
        raise CheckpointUnfitError(
            f"the checkpoint {name!r} is none of this course: it needs {' and '.join(parts)}; "
            f"write one with checkpoints.save"
        )
    return checkpoint


def _what_is_wrong(error: Exception) -> str:
    """What torch found in the file besides weights: the name of the forbidden object where it gives one."""
    forbidden = re.search(r"GLOBAL (\S+) was not an allowed global|Trying to load unsupported GLOBAL (\S+)", str(error))
    if forbidden:
        return f"code ({forbidden.group(1) or forbidden.group(2)}) besides weights"
    return f"something else than weights and plain values ({type(error).__name__})"


def _build(model_class: type[pl.LightningModule], arguments: Mapping[str, Any], name: str) -> pl.LightningModule:
    """A model of a class with the hyper-parameters of a checkpoint.

    Not `load_from_checkpoint`: for a checkpoint of an old version it prints advice about upgrading the file, and it
    wants a file where we have bytes that are verified.
    """
    try:
        inspect.signature(model_class).bind(**arguments)
    except TypeError as error:
        raise CheckpointUnfitError(
            f"the checkpoint {name!r} was saved from another class than {model_class.__name__}: {error}; "
            f"load it with the class {registry.read()[name].model.partition(':')[2]}"
        ) from error
    return model_class(**arguments)


def _check_weights(wanted: Mapping[str, Tensor], saved: Mapping[str, Tensor], what: str, model_name: str) -> None:
    """Compare names and shapes of weights."""
    differences = [f"{key} is missing" for key in wanted if key not in saved]
    differences += [f"{key} has no place in the model" for key in saved if key not in wanted]
    differences += [
        f"{key} has shape {list(saved[key].shape)} where the model has {list(tensor.shape)}"
        for key, tensor in wanted.items()
        if key in saved and saved[key].shape != tensor.shape
    ]
    if differences:
        raise CheckpointUnfitError(
            f"{what} does not fit {model_name}: {'; '.join(differences)}; "
            f"use a model of the checkpoint's sizes, or train with the parameter checkpoint='none'"
        )
