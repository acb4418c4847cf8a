"""Question: which positions still work on sequences longer than any that was trained on?

The task needs relative positions only: name the digit before each digit. Learned, sinusoidal and rotary positions are
trained on sequences of 2 to 16 digits and tested on the last four digits of up to 64. The claim that rotary positions
carry further is refuted by an accuracy beyond 16 that is no higher than with the others.

`python -m course_utils.experiments.beyond_length` measures all kinds over all seeds and writes the file beside this
one; `recorded` reads it.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.experiments import committed
from course_utils.experiments.gradient_steps import train_for
from course_utils.learned_positions import LearnedPositions
from course_utils.predictor import TransformerPredictor
from course_utils.rotary import RotaryAttention

PATH = Path(__file__).with_suffix(".json")
NEAR = "rotary, near keys only"  # tested with keys no farther away than in training
KINDS = ("learned", "sinusoidal", "rotary", NEAR, "none")
DIGITS = 8
WIDTH = 32
TRAINED = 16  # digits of the longest training sequence
LENGTHS = (4, 8, 12, 16, 20, 24, 32, 48, 64)
STEPS = 400
SEEDS = (0, 1, 2)
TESTED = 500  # sequences of each length
LAST = 4  # digits at the end of each sequence that are tested
NO_TARGET = -100  # of the first digit, which has none before it; the loss leaves it out


def recorded() -> dict:
    """The committed results: "measured" and how they came about ("made")."""
    return committed.read(PATH)


def accuracy_by_length(kind: str, seed: int, lengths: Sequence[int] = LENGTHS, steps: int = STEPS) -> list[float]:
    """Train with one kind of positions, and test on each length.

    Args:
        kind: one of KINDS.
        seed: of the weights and of the sequences.
        lengths: of the test sequences, from 4 to 64.
        steps: of the optimizer.

    Returns:
        For each length the share of the last four digits (of four: the last three) whose predecessor is named.
    """
    data = torch.Generator().manual_seed(1000 + seed)
    model = predictor(kind, seed)

    def next_loss() -> Tensor:
        length = int(torch.randint(2, TRAINED + 1, (), generator=data))
        digits, before = _sequences(64, length, data)
        return F.cross_entropy(model(digits).flatten(0, 1), before.flatten(), ignore_index=NO_TARGET)

    train_for(steps, model, next_loss, lr=1e-2, warmup=30)
    farthest = TRAINED - 1 if kind == NEAR else max(LENGTHS)
    return [round(_accuracy(model, *_sequences(TESTED, length, data), farthest), 4) for length in lengths]


def predictor(kind: str, seed: int) -> TransformerPredictor:
    """An untrained Transformer of one layer and two heads with one kind of positions.

    Raises:
        ValueError: for another kind.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = TransformerPredictor(DIGITS, WIDTH, DIGITS, num_heads=2, num_layers=1, lr=1.0, warmup=0, max_iters=1)
        if kind == "learned":
            model.positional_encoding = LearnedPositions(WIDTH, max_len=max(LENGTHS))
        elif kind != "sinusoidal":
            model.positional_encoding = nn.Identity()
        if kind in ("rotary", NEAR):
            for layer in model.transformer.layers:
                layer.self_attn = RotaryAttention(WIDTH, WIDTH, num_heads=2)
    return model


def _sequences(size: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """One-hot digits [size, length, DIGITS], and the digit before each [size, length]."""
    digits = torch.randint(DIGITS, (size, length), generator=generator)
    before = digits.roll(1, dims=-1)
    before[:, 0] = NO_TARGET
    return F.one_hot(digits, num_classes=DIGITS).float(), before


@torch.no_grad()
def _accuracy(model: TransformerPredictor, digits: Tensor, before: Tensor, farthest: int) -> float:
    """Accuracy on the last digits, where a query sees the keys that are at most `farthest` places away."""
    place = torch.arange(digits.size(1))
    near = (place[:, None] - place).abs() <= farthest  # [T, T]
    right = (model(digits, near).argmax(dim=-1) == before)[:, 1:]  # the first digit has no target
    return right[:, -LAST:].float().mean().item()


def measure(seeds: Sequence[int] = SEEDS) -> dict:
    """Every kind over the seeds: {"lengths": [...], "accuracy": {kind: a list of accuracies for each seed}}."""
    return {
        "lengths": list(LENGTHS),
        "accuracy": {kind: [accuracy_by_length(kind, seed) for seed in seeds] for kind in KINDS},
    }


if __name__ == "__main__":
    committed.measure_anew(PATH, measure, seeds=SEEDS, steps=STEPS, trained=TRAINED)
