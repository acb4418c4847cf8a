"""Training steps with `torch.compile` and in bfloat16, against the plain ones; and after how many steps they pay."""

import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.measure import Row, row_of, seconds_of_pairs
from course_utils.anomaly import RECIPES as ANOMALY
from course_utils.anomaly import AnomalyPredictor
from course_utils.reverse import RECIPES as REVERSE
from course_utils.reverse import ReversePredictor


def rows(size: str, threads: int) -> list[Row]:
    """Both models, compiled and in half precision, each against itself as it is."""
    found = []
    for name, make in {"reverse": _reverse, "set anomaly, published model": _anomaly}.items():
        plain = make(lambda model: model)
        begun = time.perf_counter()
        forward = make(torch.compile)
        forward()  # compiles
        start = time.perf_counter() - begun
        seconds = seconds_of_pairs(forward, plain, threads, 7 if size == "full" else 1)
        saved = sorted(seconds[1])[len(seconds[1]) // 2] - sorted(seconds[0])[len(seconds[0]) // 2]
        pays = f"pays after {start / saved:,.0f} steps" if saved > 0 else "never pays"
        facts = {"size": f"starts in {start:.0f} s, {pays}", "threads": threads, "at_most": None}
        found.append(row_of(*seconds, what=f"{name}: a compiled step", against="a plain step", **facts))

        def half(forward: Callable[[], None] = plain) -> None:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                forward()

        seconds = seconds_of_pairs(half, plain, threads, 7 if size == "full" else 1)
        facts = {"size": "on this processor", "threads": threads, "at_most": None}
        found.append(row_of(*seconds, what=f"{name}: a step in bfloat16", against="in float32", **facts))
    return found


def _reverse(compiled: Callable[[nn.Module], nn.Module]) -> Callable[[], None]:
    model = ReversePredictor(max_iters=1, **REVERSE["full"].model)
    digits = torch.randint(10, (128, 16))
    return _step(model, compiled(model), model.one_hot(digits), digits.flip(-1), positions=True)


def _anomaly(compiled: Callable[[nn.Module], nn.Module]) -> Callable[[], None]:
    model = AnomalyPredictor(input_dim=512, max_iters=1, **ANOMALY["full"].model)
    return _step(model, compiled(model), torch.randn(64, 10, 512), torch.full((64,), 9), positions=False)


def _step(
    model: nn.Module, forward: nn.Module, x: torch.Tensor, target: torch.Tensor, positions: bool
) -> Callable[[], None]:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

    def run() -> None:
        logits = forward(x, add_positional_encoding=positions)
        loss = F.cross_entropy(logits.flatten(0, 1) if positions else logits.squeeze(-1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
