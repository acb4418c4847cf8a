"""Question: what do linear and windowed attention lose in accuracy?

The same model, one layer and one head, is trained for as many steps with each kind of attention on two tasks: to
reverse a sequence, where the answer stands up to 15 places away, and to name the digit before each digit, where it
stands next to it. Refuted, if one expects a loss, by accuracies that are equal.

`python -m course_utils.experiments.efficient_accuracy` measures over all seeds and writes the file beside this one.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.efficient_attention import LinearAttention, WindowAttention
from course_utils.experiments import committed
from course_utils.experiments.gradient_steps import train_for
from course_utils.reverse import NUM_CATEGORIES, RECIPES, SEQ_LEN, ReversePredictor

PATH = Path(__file__).with_suffix(".json")
KINDS = ("full", "linear", "window")
TASKS = ("reverse", "digit before")
RADIUS = 2  # of the window
STEPS = 400
SEEDS = (0, 1, 2)
TESTED = 1_000  # sequences


def recorded() -> dict:
    """The committed results: "measured" and how they came about ("made")."""
    return committed.read(PATH)


def accuracy_of(kind: str, task: str, seed: int, steps: int = STEPS) -> float:
    """Train with one kind of attention on one task; the share of right digits on new sequences.

    Raises:
        ValueError: for another kind or task.
    """
    if kind not in KINDS or task not in TASKS:
        raise ValueError(f"kind must be one of {KINDS} and task one of {TASKS}, got {kind!r} and {task!r}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = ReversePredictor(max_iters=1, **RECIPES["quick"].model)
        width = model.hparams.model_dim
        for layer in model.transformer.layers:
            if kind == "linear":
                layer.self_attn = LinearAttention(width, width, num_heads=1)
            elif kind == "window":
                layer.self_attn = WindowAttention(width, width, num_heads=1, radius=RADIUS)
    data = torch.Generator().manual_seed(1000 + seed)

    def next_loss() -> Tensor:
        sequences, targets = _batch(task, 64, data)
        return F.cross_entropy(model(model.one_hot(sequences)).flatten(0, 1), targets.flatten())

    train_for(steps, model, next_loss, lr=5e-3)
    sequences, targets = _batch(task, TESTED, data)
    with torch.no_grad():
        return (model(model.one_hot(sequences)).argmax(dim=-1) == targets).float().mean().item()


def window_ceiling(task: str, length: int = SEQ_LEN) -> float:
    """The best accuracy of one layer whose queries see RADIUS places to either side; elsewhere it guesses."""
    mirrored = [length - 1 - place for place in range(length)]
    before = [(place - 1) % length for place in range(length)]
    answers = mirrored if task == "reverse" else before
    seen = sum(abs(place - answer) <= RADIUS for place, answer in enumerate(answers)) / length
    return seen + (1 - seen) / NUM_CATEGORIES


def _batch(task: str, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Digits [size, T] and what is to be named for each: the mirrored digit, or the one before (first: the last)."""
    sequences = torch.randint(NUM_CATEGORIES, (size, SEQ_LEN), generator=generator)
    return sequences, sequences.flip(-1) if task == "reverse" else sequences.roll(1, dims=-1)


def measure(seeds: Sequence[int] = SEEDS) -> dict[str, dict[str, list[float]]]:
    """For each task and kind the accuracy of each seed."""
    return {
        task: {kind: [round(accuracy_of(kind, task, seed), 4) for seed in seeds] for kind in KINDS} for task in TASKS
    }


if __name__ == "__main__":
    committed.measure_anew(PATH, measure, seeds=SEEDS, steps=STEPS, radius=RADIUS)
