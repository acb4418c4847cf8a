"""Question: does the scale of the scores, 1/√d_k, still matter once an attention layer is trained?

A single layer with one head learns to reverse sequences of digits, with the scale and without, each at several learning
rates, of which each arm gets its own best. It matters if the unscaled arm stays behind at its best rate; it does not if
both end alike.

`python -m course_utils.experiments.scale_in_training` measures all arms and writes them; `recorded` reads.
"""

import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.experiments import committed

PATH = Path(__file__).with_suffix(".json")
DIGITS, LENGTH, BATCH = 10, 16, 64
STEPS = 200
TOGETHER = 10  # steps whose mean loss is one point of a curve
WIDTHS = (16, 256)
RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
SEEDS = (0, 1, 2)
SCALED, PLAIN = "scaled", "plain"


def recorded() -> dict:
    """The committed results: "measured" and how they came about ("made")."""
    return committed.read(PATH)


class OneHead(nn.Module):
    """Digits [B, LENGTH] to logits [B, LENGTH, DIGITS]: embeddings of digit and place, attention, a linear layer.

    Args:
        width: d, and d_k.
        scaled: divide the scores by the root of d_k.
    """

    def __init__(self, width: int, scaled: bool):
        super().__init__()
        self.digits, self.places = nn.Embedding(DIGITS, width), nn.Embedding(LENGTH, width)
        self.projections = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.output = nn.Linear(width, DIGITS)
        self.scale = width**-0.5 if scaled else 1.0
        for projection in self.projections:
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)

    def forward(self, digits: Tensor) -> Tensor:
        """Logits of the digit at each place."""
        x = self.digits(digits) + self.places.weight  # [B, LENGTH, width]
        q, k, v = (projection(x) for projection in self.projections)
        weights = (q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1)
        return self.output(weights @ v)


def train(width: int, scaled: bool, rate: float, seed: int, steps: int = STEPS) -> list[float]:
    """The loss in nats a digit while the layer learns to reverse random sequences: the mean of each TOGETHER steps.

    Args:
        width: d, and d_k.
        scaled: divide the scores by the root of d_k.
        rate: of Adam.
        seed: of the weights and the sequences.
        steps: of the optimizer, each with a new batch; a multiple of TOGETHER.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = OneHead(width, scaled)
            optimizer = torch.optim.Adam(model.parameters(), lr=rate)
            losses = []
            for _ in range(steps):
                digits = torch.randint(DIGITS, (BATCH, LENGTH))
                loss = F.cross_entropy(model(digits).flatten(0, 1), digits.flip(1).flatten())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
    finally:
        torch.set_num_threads(threads)
    return [statistics.fmean(losses[step : step + TOGETHER]) for step in range(0, steps, TOGETHER)]


def best_rate(by_rate: Mapping[str, Sequence[Sequence[float]]]) -> str:
    """The learning rate with the lowest loss in the end, as the median over seeds.

    Args:
        by_rate: for each rate the curves [seeds][points].
    """
    return min(by_rate, key=lambda rate: statistics.median(losses[-1] for losses in by_rate[rate]))


def main() -> None:
    """Train all arms, and write the committed results."""
    start = time.perf_counter()
    measured: dict = {}
    for width in WIDTHS:
        for name in (SCALED, PLAIN):
            measured.setdefault(str(width), {})[name] = {
                f"{rate:g}": [[round(loss, 4) for loss in train(width, name == SCALED, rate, seed)] for seed in SEEDS]
                for rate in RATES
            }
            print(f"width {width}, {name}: {time.perf_counter() - start:.0f} s")
    committed.write(PATH, measured, seconds=time.perf_counter() - start, seeds=SEEDS, threads=1)


if __name__ == "__main__":
    main()
