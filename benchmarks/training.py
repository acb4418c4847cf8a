"""The reverse task: a step in Lightning against a bare loop, and the quick recipe against the published one."""

import time
from collections.abc import Sequence

import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import Tensor, nn, optim

from benchmarks.measure import Row, row_of
from course_utils.reverse import RECIPES, ReversePredictor, reverse_loaders
from course_utils.schedule import CosineWarmupScheduler
from course_utils.training import fit

GOAL = 0.9999  # of the digits of the validation set


def _model(profile: str, steps: int) -> ReversePredictor:
    pl.seed_everything(42, verbose=False)
    return ReversePredictor(max_iters=steps, **RECIPES[profile].model)


def _bare_loop(batches: Sequence[tuple[Tensor, Tensor]], profile: str) -> float:
    """Seconds a step of the same arithmetic in plain PyTorch."""
    recipe, model = RECIPES[profile], _model(profile, len(batches))
    optimizer = optim.Adam(model.parameters(), lr=recipe.model["lr"])
    schedule = CosineWarmupScheduler(optimizer, warmup=recipe.model["warmup"], max_iters=len(batches))
    begun = time.perf_counter()
    for sequences, targets in batches:
        logits = model(model.one_hot(sequences))
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), recipe.gradient_clip_val)
        optimizer.step()
        schedule.step()
    return (time.perf_counter() - begun) / len(batches)


class _Clock(pl.Callback):
    """When the training epoch begins and ends."""

    def on_train_epoch_start(self, trainer, pl_module) -> None:
        self.begun = time.perf_counter()

    def on_train_epoch_end(self, trainer, pl_module) -> None:
        self.ended = time.perf_counter()


class _Validated(pl.Callback):
    """Seconds of training until the goal was met, the validations left out."""

    def __init__(self):
        self.begun = self.paused = self.reached = None
        self.idle = 0.0

    def on_fit_start(self, trainer, pl_module) -> None:
        self.begun = time.perf_counter()

    def on_validation_start(self, trainer, pl_module) -> None:
        self.paused = time.perf_counter()

    def on_validation_end(self, trainer, pl_module) -> None:
        self.idle += time.perf_counter() - self.paused
        if self.reached is None and float(trainer.callback_metrics["val_acc"]) >= GOAL:
            self.reached = time.perf_counter() - self.begun - self.idle


def _in_lightning(profile: str) -> float:
    """Seconds a step of one epoch of the course's training, its validation left out."""
    loaders, clock = reverse_loaders(profile), _Clock()
    steps = len(loaders.train)
    fit(
        _model(profile, steps),
        loaders,
        name="benchmark",
        max_epochs=1,
        recipe=RECIPES[profile],
        callbacks=[clock],
    )
    return (clock.ended - clock.begun) / steps


def step(size: str, threads: int) -> list[Row]:
    """A training step; the model is small, so that one thread is used whatever is allowed."""
    torch.set_num_threads(1)
    batches = [(sequences, targets) for sequences, targets in reverse_loaders("quick").train]
    pairs = [(_in_lightning("quick"), _bare_loop(batches, "quick")) for _ in range(5 if size == "full" else 1)]
    return [
        row_of(
            [ours for ours, _ in pairs],
            [theirs for _, theirs in pairs],
            what="training step of the reverse task in Lightning",
            against="a bare PyTorch loop",
            size="128 sequences of 16",
            threads=1,
            at_most=1.25,
        )
    ]


def recipe(size: str, threads: int) -> list[Row]:
    """Time of training until 99.99 % of the validation digits are right, looked at after each epoch."""
    profiles = ("quick", "full")
    seconds: dict[str, list[float]] = {profile: [] for profile in profiles}
    to_the_end: dict[str, list[float]] = {profile: [] for profile in profiles}
    for seed in range(42, 45 if size == "full" else 43):
        for profile in profiles:
            loaders, validated, clock = reverse_loaders(profile, seed=seed), _Validated(), _Clock()
            epochs = RECIPES[profile].max_epochs if size == "full" else 1
            begun = time.perf_counter()
            fit(
                _model(profile, epochs * len(loaders.train)),
                loaders,
                name="benchmark",
                max_epochs=epochs,
                recipe=RECIPES[profile],
                callbacks=[validated, clock],
            )
            to_the_end[profile].append(time.perf_counter() - begun)
            if size == "full" and validated.reached is None:
                raise RuntimeError(f"the {profile} recipe did not reach {GOAL:.2%} with seed {seed}")
            seconds[profile].append(validated.reached or to_the_end[profile][-1])
    shared = {"against": "the published recipe", "threads": 1, "size": "128 sequences of 16 a step"}
    return [
        row_of(*to_the_end.values(), what="quick recipe of the reverse task, to its end", at_most=0.10, **shared),
        row_of(*seconds.values(), what="quick recipe, to 99.99 % at the end of an epoch", at_most=None, **shared),
    ]
