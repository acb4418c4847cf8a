"""Claim: a recurrent network of equal size has difficulty reversing what one attention layer reverses.

It is refuted by a recurrent network of about as many parameters that, after as many steps and with the best learning
rate of a grid, is right about as often. Every network is trained on the same sequences, drawn anew for each step.

`python -m course_utils.experiments.recurrent_reversal` measures all and writes the file beside this one.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.experiments import committed
from course_utils.experiments.gradient_steps import train_for
from course_utils.reverse import NUM_CATEGORIES, RECIPES, SEQ_LEN, ReverseDataset, ReversePredictor

PATH = Path(__file__).with_suffix(".json")
BATCH_SIZE = 128
STEPS = 300  # what the quick recipe of the reverse task takes
MANY_STEPS = 1_200  # for the recurrent networks; attention is done long before
RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)  # the coarse grid
SEEDS = (0, 1, 2)
TUNING_SEED = 100  # of the runs and sequences that a rate is chosen by
TEST_SEED = 200
TESTED = 2_000  # sequences: 32,000 digits


class OneAttentionLayer(nn.Module):
    """The model of the reverse task: one layer, one head."""

    def __init__(self):
        super().__init__()
        self.predictor = ReversePredictor(max_iters=1, **RECIPES["quick"].model)

    def forward(self, sequences: Tensor, targets: Tensor) -> Tensor:
        """Logits [B, T, C] for sequences [B, T]; the targets [B, T] are not looked at."""
        return self.predictor(self.predictor.one_hot(sequences))

    def predict(self, sequences: Tensor) -> Tensor:
        """Digits [B, T] for sequences [B, T]."""
        return self(sequences, sequences).argmax(dim=-1)


class LSTMPerPosition(nn.Module):
    """An LSTM that answers at each position from its state there.

    Args:
        width: of the state; of each of the two where it reads in both directions.
        bidirectional: also read backwards. Otherwise no position knows what comes after it.
    """

    def __init__(self, width: int, bidirectional: bool):
        super().__init__()
        self.lstm = nn.LSTM(NUM_CATEGORIES, width, batch_first=True, bidirectional=bidirectional)
        self.output = nn.Linear(width * (2 if bidirectional else 1), NUM_CATEGORIES)

    def forward(self, sequences: Tensor, targets: Tensor) -> Tensor:
        """Logits [B, T, C] for sequences [B, T]; the targets [B, T] are not looked at."""
        states, _ = self.lstm(_one_hot(sequences))
        return self.output(states)

    def predict(self, sequences: Tensor) -> Tensor:
        """Digits [B, T] for sequences [B, T]."""
        return self(sequences, sequences).argmax(dim=-1)


class LSTMEncodeDecode(nn.Module):
    """One LSTM reads the sequence, another one goes on from its last state and writes the answer digit by digit.

    Sutskever et al. (2014), Sequence to Sequence Learning with Neural Networks. In training the writer is told the
    right digit before (teacher forcing); in prediction it is told its own.

    Args:
        width: of both states.
    """

    def __init__(self, width: int):
        super().__init__()
        self.reader = nn.LSTM(NUM_CATEGORIES, width, batch_first=True)
        self.writer = nn.LSTM(NUM_CATEGORIES + 1, width, batch_first=True)  # one more symbol: the start
        self.output = nn.Linear(width, NUM_CATEGORIES)

    def forward(self, sequences: Tensor, targets: Tensor) -> Tensor:
        """Logits [B, T, C] for sequences [B, T], given the targets [B, T] before each."""
        _, state = self.reader(_one_hot(sequences))
        start = torch.full_like(targets[:, :1], NUM_CATEGORIES)
        before = torch.cat([start, targets[:, :-1]], dim=1)
        states, _ = self.writer(_one_hot(before, NUM_CATEGORIES + 1), state)
        return self.output(states)

    def predict(self, sequences: Tensor) -> Tensor:
        """Digits [B, T] for sequences [B, T], each from those that were predicted before it."""
        _, state = self.reader(_one_hot(sequences))
        digit, written = torch.full_like(sequences[:, :1], NUM_CATEGORIES), []
        for _ in range(sequences.size(1)):
            states, state = self.writer(_one_hot(digit, NUM_CATEGORIES + 1), state)
            digit = self.output(states).argmax(dim=-1)  # [B, 1]
            written.append(digit)
        return torch.cat(written, dim=1)


# Widths by which each has about as many parameters as the attention layer (10,346).
NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "attention": OneAttentionLayer,
    "BiLSTM": lambda: LSTMPerPosition(29, bidirectional=True),
    "BiLSTM, seven times the size": lambda: LSTMPerPosition(88, bidirectional=True),
    "encode-decode LSTM": lambda: LSTMEncodeDecode(30),
    "one-directional LSTM": lambda: LSTMPerPosition(44, bidirectional=False),
}
COPYING = "encode-decode LSTM, copying"  # the same network, asked for the sequence as it stands


def ceiling_of_one_direction(length: int = SEQ_LEN, categories: int = NUM_CATEGORIES) -> list[float]:
    """The best accuracy at each position [length] of a network that sees nothing of what comes after it.

    The answer at position p, from 0, stands at length - 1 - p. Where that is p or before, it has been read; elsewhere
    any digit is equally likely.
    """
    return [1.0 if length - 1 - position <= position else 1 / categories for position in range(length)]


def reversal(name: str, seed: int, lr: float, steps: int = STEPS, evaluations: Sequence[int] = ()) -> dict[str, object]:
    """Train one of the networks and test it.

    Args:
        name: one of NETWORKS, or COPYING.
        seed: of the initial weights and the training sequences.
        lr: highest learning rate.
        steps: of the optimizer, of 128 sequences each.
        evaluations: numbers of steps after which to test as well.

    Returns:
        "accuracy": share of digits that are right; "per_position": the same at each position; "curve": the accuracy
        after each of the evaluations.

    Raises:
        ValueError: for another name.
    """
    return _trained_and_tested(name, seed, lr, steps, evaluations, TEST_SEED)


def parameters_of(name: str) -> int:
    """The number of parameters of a network."""
    return sum(parameter.numel() for parameter in _new_network(name, 0).parameters())


def tuned_rate(name: str, steps: int = STEPS, rates: Sequence[float] = RATES) -> tuple[float, dict[str, float]]:
    """The best learning rate of some, and the accuracy with each, from runs that are not reported otherwise."""
    accuracies = {
        rate: float(_trained_and_tested(name, TUNING_SEED, rate, steps, (), TUNING_SEED)["accuracy"]) for rate in rates
    }
    return max(accuracies, key=accuracies.get), {f"{rate:g}": accuracy for rate, accuracy in accuracies.items()}


def measure() -> dict[str, object]:
    """Everything, two networks at a time: each as `measure_network` has it."""
    names = (*NETWORKS, COPYING)
    with ProcessPoolExecutor(max_workers=2) as pool:
        running = {name: pool.submit(measure_network, name) for name in sorted(names, key=parameters_of, reverse=True)}
        return {name: running[name].result() for name in names}


def measure_network(name: str) -> dict[str, object]:
    """One network after STEPS and, if it is recurrent, after MANY_STEPS: three seeds, at its best rate for that many.

    For MANY_STEPS the choice is between the rate that is best for STEPS and the next lower one of the grid.
    """
    measured: dict[str, object] = {"parameters": parameters_of(name)}
    rates: Sequence[float] = RATES
    for steps in (STEPS,) if name == "attention" else (STEPS, MANY_STEPS):
        rate, grid = tuned_rate(name, steps, rates)
        place = RATES.index(rate)
        rates = RATES[max(place - 1, 0) : place + 1]
        evaluations = range(steps // 10, steps + 1, steps // 10)
        runs = [reversal(name, seed, rate, steps, evaluations) for seed in SEEDS]
        measured[str(steps)] = {
            "rate": rate,
            "accuracy_by_rate": grid,
            "accuracy": [run["accuracy"] for run in runs],
            "per_position": [run["per_position"] for run in runs],
            "evaluated_after": list(evaluations),
            "curves": [run["curve"] for run in runs],
        }
    return measured


def recorded() -> dict:
    """The committed results: "measured" and how they came about ("made")."""
    return committed.read(PATH)


def _new_network(name: str, seed: int) -> nn.Module:
    if name != COPYING and name not in NETWORKS:
        raise ValueError(f"name must be one of {', '.join((*NETWORKS, COPYING))}, got {name!r}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return NETWORKS["encode-decode LSTM" if name == COPYING else name]()


def _trained_and_tested(
    name: str, seed: int, lr: float, steps: int, evaluations: Sequence[int], test_seed: int
) -> dict[str, object]:
    network = _new_network(name, seed)
    tested = ReverseDataset(NUM_CATEGORIES, SEQ_LEN, TESTED, seed=test_seed).data
    generator = torch.Generator().manual_seed(seed)

    def asked_for(sequences: Tensor) -> Tensor:
        return sequences if name == COPYING else sequences.flip(-1)

    def next_loss() -> Tensor:
        sequences = torch.randint(NUM_CATEGORIES, (BATCH_SIZE, SEQ_LEN), generator=generator)
        targets = asked_for(sequences)
        return F.cross_entropy(network(sequences, targets).flatten(0, 1), targets.flatten())

    def right() -> Tensor:
        with torch.no_grad():
            return (network.predict(tested) == asked_for(tested)).double().mean(dim=0)  # [T]

    curve = []

    def after_step(step: int) -> None:
        if step in evaluations:
            curve.append(round(float(right().mean()), 4))

    train_for(steps, network, next_loss, lr=lr, after_step=after_step)
    per_position = right()
    return {
        "accuracy": round(float(per_position.mean()), 4),
        "per_position": [round(float(share), 4) for share in per_position],
        "curve": curve,
    }


def _one_hot(digits: Tensor, categories: int = NUM_CATEGORIES) -> Tensor:
    return F.one_hot(digits, num_classes=categories).float()


if __name__ == "__main__":
    committed.measure_anew(
        PATH,
        measure,
        seeds=SEEDS,
        batch_size=BATCH_SIZE,
        rates=list(RATES),
        tested_sequences=TESTED,
    )
