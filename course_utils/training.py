"""The one recipe that both tasks use: find a checkpoint or else fit, keep the best model, then test it."""

import inspect
import json
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import course_utils.quiet  # noqa: F401

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint, ProgressBar
from pytorch_lightning.utilities import rank_zero_only
from torch.utils.data import DataLoader

from course_utils import checkpoints
from course_utils.machine import Machine
from course_utils.paths import runs_dir
from course_utils.progress import progress_callbacks
from course_utils.registry import stand_in
from course_utils.shared_batches import SharedBatches
from course_utils.threads import threads_for

CHECKPOINT_CHOICES = ("auto", "required", "none")
_HISTORY = "history.json"


@dataclass(frozen=True)
class Recipe:
    """How a task is trained.

    Attributes:
        model: arguments of the predictor, but for max_iters, which follows from the number of steps.
        max_epochs: passes over the training set.
        batch_size: sequences or sets a step.
        gradient_clip_val: largest norm of the gradient; a longer one is scaled down to it.
    """

    model: Mapping[str, Any]
    max_epochs: int
    batch_size: int
    gradient_clip_val: float


@dataclass(frozen=True)
class Loaders:
    """The batches of each split, as one process has them; several share them (`shared_batches`)."""

    train: DataLoader
    val: DataLoader
    test: DataLoader


@dataclass
class History(pl.Callback):
    """What a training run went through, for drawing: pass it in `callbacks`.

    Attributes:
        train_loss: loss of each step.
        learning_rate: learning rate of each step.
        gradient_norm: norm of the gradient of each step, before clipping.
        val_step: optimizer steps made before each validation.
        val_acc: accuracy of each validation.
    """

    train_loss: list[float] = field(default_factory=list)
    learning_rate: list[float] = field(default_factory=list)
    gradient_norm: list[float] = field(default_factory=list)
    val_step: list[int] = field(default_factory=list)
    val_acc: list[float] = field(default_factory=list)

    @property
    def curves(self) -> dict[str, list]:
        """What `plotting.learning_curves` draws, by the names of its arguments."""
        return {name: getattr(self, name) for name in ("train_loss", "learning_rate", "val_step", "val_acc")}

    def on_before_optimizer_step(self, trainer, pl_module, optimizer) -> None:
        """Note the learning rate and the gradient as they are before the step."""
        squares = [parameter.grad.norm() ** 2 for parameter in pl_module.parameters() if parameter.grad is not None]
        self.gradient_norm.append(float(sum(squares)) ** 0.5)
        self.learning_rate.append(optimizer.param_groups[0]["lr"])

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx) -> None:
        """Note the loss, of all devices' shares of the batch."""
        self.train_loss.append(float(trainer.strategy.reduce(outputs["loss"].detach(), reduce_op="mean")))

    def on_validation_epoch_end(self, trainer, pl_module) -> None:
        """Note the accuracy."""
        self.val_step.append(trainer.global_step)
        self.val_acc.append(float(trainer.callback_metrics["val_acc"]))

    def on_fit_end(self, trainer, pl_module) -> None:
        """Leave what was noted where the process that began the run finds it, if it is another one."""
        if trainer.is_global_zero:
            (Path(trainer.default_root_dir) / _HISTORY).write_text(json.dumps(asdict(self)), encoding="utf-8")

    def read(self, folder: Path) -> None:
        """Take over what another process noted."""
        if not self.train_loss and (folder / _HISTORY).is_file():
            vars(self).update(json.loads((folder / _HISTORY).read_text(encoding="utf-8")))


def recipe_of(recipes: Mapping[str, Recipe], profile: str, model_kwargs: Mapping[str, Any]) -> Recipe:
    """The recipe of a profile, with some arguments of the model replaced.

    Raises:
        ValueError: for an unknown profile.
    """
    if profile not in recipes:
        raise ValueError(f"profile must be one of {', '.join(recipes)}, got {profile!r}")
    return replace(recipes[profile], model={**recipes[profile].model, **model_kwargs})


def load_or_fit(
    model_class: type[pl.LightningModule],
    recipe: Recipe,
    loaders: Loaders,
    *,
    name: str,
    checkpoint: str = "auto",
    max_epochs: int | None = None,
    seed: int = 42,
    callbacks: Sequence[pl.Callback] = (),
    prepare: Callable[[pl.LightningModule], None] = lambda model: None,
    machine: Machine = Machine(),
) -> pl.LightningModule:
    """A trained model: the saved one if it is there and fits, else one trained now.

    Args:
        model_class: a predictor that logs val_loss.
        recipe: how to train.
        loaders: batches to train on and to validate with.
        name: of the checkpoint, and of the folder that keeps the logs.
        checkpoint: "auto" loads the checkpoint if it is there and else trains, "required" fails where it is not there,
            "none" trains.
        max_epochs: None leaves it to the recipe; a number trains, whatever is saved.
        seed: of the initial weights, the order of the batches and the dropout.
        callbacks: for the Trainer, such as `History`.
        prepare: is given a new model before it is trained, to set what is not learnt by the Trainer's steps.
        machine: devices and precision of a training run.

    Returns:
        The model, in evaluation mode on the CPU. Of a training run it is the one with the lowest validation loss.

    Raises:
        ValueError: for an unknown choice of `checkpoint`, or max_epochs below 1.
        TypeError: for an argument that the model does not have.
        CheckpointMissingError: if the checkpoint is required and not there.
    """
    if checkpoint not in CHECKPOINT_CHOICES:
        raise ValueError(f"checkpoint must be one of {', '.join(CHECKPOINT_CHOICES)}, got {checkpoint!r}")
    if max_epochs is not None and max_epochs < 1:
        raise ValueError(f"max_epochs must be at least 1, or None to leave it to the recipe, got {max_epochs}")
    _check_arguments(model_class, recipe)
    if max_epochs is None and checkpoint != "none":
        model = _load(model_class, recipe, name, required=checkpoint == "required")
        if model is not None:
            return model
    pl.seed_everything(seed, workers=True, verbose=False)
    epochs = recipe.max_epochs if max_epochs is None else max_epochs
    max_iters = epochs * len(loaders.train)
    model = model_class(**{"max_iters": max_iters, **recipe.model})
    prepare(model)
    return fit(
        model, loaders, name=name, max_epochs=epochs, recipe=recipe, callbacks=callbacks, machine=machine, seed=seed
    )


def is_published(model: pl.LightningModule) -> bool:
    """Whether `load_or_fit` found a model that was published elsewhere, and so trained on other splits than ours."""
    return getattr(model, "published_checkpoint", False)


def fit(
    model: pl.LightningModule,
    loaders: Loaders,
    *,
    name: str,
    max_epochs: int,
    recipe: Recipe,
    callbacks: Sequence[pl.Callback] = (),
    machine: Machine = Machine(),
    seed: int = 42,
) -> pl.LightningModule:
    """Train a model and return it as it was at its lowest validation loss, in evaluation mode on the CPU."""
    # By loss, not accuracy: a small validation set soon ties at 100 %, and the first of the ties is not the best.
    keep_best = ModelCheckpoint(monitor="val_loss", mode="min", save_weights_only=True)
    callbacks = [*progress_callbacks(), *callbacks]
    folder = _new_log_folder(name)
    with quiet_lightning(), threads_for(model):
        trainer = pl.Trainer(
            **machine.trainer_arguments(),
            default_root_dir=folder,  # CSV logs, or TensorBoard's where that is installed
            max_epochs=max_epochs,
            gradient_clip_val=recipe.gradient_clip_val,
            callbacks=[keep_best, *callbacks],
            enable_progress_bar=any(isinstance(callback, ProgressBar) for callback in callbacks),
            enable_model_summary=False,
            num_sanity_val_steps=0,
            log_every_n_steps=10,
            use_distributed_sampler=False,  # the batches are shared already
        )
        batches = SharedBatches(loaders.train, loaders.val, seed=seed, num_workers=machine.num_workers or None)
        trainer.fit(torch.compile(model) if machine.compile else model, datamodule=batches)
    for callback in callbacks:
        if isinstance(callback, History):
            callback.read(folder)
    best = type(model).load_from_checkpoint(keep_best.best_model_path, map_location="cpu", weights_only=True)
    return best.eval()


def test(model: pl.LightningModule, loader: DataLoader) -> float:
    """The accuracy of a model on the batches of a loader, between 0 and 1."""
    with quiet_lightning(), threads_for(model):
        trainer = pl.Trainer(
            accelerator="auto", devices=1, logger=False, enable_checkpointing=False, enable_progress_bar=False
        )
        (metrics,) = trainer.test(model, loader, verbose=False)
    model.to("cpu")
    return metrics["test_acc"]


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Silence what Lightning says of devices and workers, which differs between machines and asks for no action."""
    loggers = [logging.getLogger(name) for name in ("pytorch_lightning", "lightning.pytorch")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="pytorch_lightning")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _check_arguments(model_class: type[pl.LightningModule], recipe: Recipe) -> None:
    """Refuse an argument that the model does not have: where a checkpoint is loaded, no one else would."""
    known = inspect.signature(model_class).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    unknown = recipe.model.keys() - known.keys()
    if unknown and not takes_any:
        raise TypeError(
            f"{model_class.__name__} has no argument {', '.join(sorted(unknown))}; it has: {', '.join(known)}"
        )


def _load(
    model_class: type[pl.LightningModule], recipe: Recipe, name: str, required: bool
) -> pl.LightningModule | None:
    """The saved model, or None where there is none that fits, and training is allowed.

    Says in a line, the same on every machine, what was loaded or why nothing was. Where ours is missing and has no
    address to be fetched from, the published one of the same task may replace it, unless ours is required.
    """
    published = None if required else stand_in(name)
    obstacles = []
    for candidate in filter(None, [name, published]):
        which = f"the {'published ' if candidate == published else ''}checkpoint {candidate!r}"
        try:
            model = _load_fitting(model_class, recipe, candidate)
        except (checkpoints.CheckpointMissingError, checkpoints.CheckpointUnfitError) as error:
            if required:
                raise
            obstacles.append(f"{which} {error.reason}")
            if isinstance(error, checkpoints.CheckpointUnfitError):
                break
        else:
            print(f"Loaded {which}: nothing was trained.")
            model.published_checkpoint = candidate == published
            return model
    print(f"Training, because {' and '.join(obstacles)}.")
    return None


def _load_fitting(model_class: type[pl.LightningModule], recipe: Recipe, name: str) -> pl.LightningModule:
    """The model of a checkpoint, if it has the architecture of the recipe."""
    model = checkpoints.load(model_class, name)
    other = _architecture_differences(model, recipe)
    if other:
        raise checkpoints.CheckpointUnfitError(
            f"the checkpoint {name!r} has {other}; ask for the same, or train with checkpoint='none'", f"has {other}"
        )
    return model


def _architecture_differences(model: pl.LightningModule, recipe: Recipe) -> str:
    """What the recipe asks of the architecture and a saved model has not, as words; empty if it fits.

    Settings that only training uses (learning rate, dropout) do not count.
    """
    architecture = ("input_dim", "model_dim", "num_classes", "num_heads", "num_layers", "norm_first", "known_classes")
    return ", ".join(
        f"{key}={model.hparams[key]} where {recipe.model[key]} is asked for"
        for key in architecture
        if key in recipe.model and model.hparams[key] != recipe.model[key]
    )


def _new_log_folder(name: str) -> Path:
    """A folder of this run's own, so that runs side by side do not mix; its first process makes it."""
    folder = runs_dir() / "training"
    if rank_zero_only.rank:
        return folder / f"{name}-of-rank-{rank_zero_only.rank}"  # nothing is written there
    folder.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=folder))
