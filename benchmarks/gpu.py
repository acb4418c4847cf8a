"""What is to be seen on a GPU, in under four minutes: `python -m benchmarks.gpu` prints a table.

Right in half precision and TF32, the published recipes of both tasks, attention against its floor, and peak memory.
It runs on a CPU as well, with `--quick` in small sizes.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from benchmarks.attention import Floor
from benchmarks.measure import seconds_of_pairs
from course_utils.anomaly import train_anomaly
from course_utils.attention import MultiheadAttention, scaled_dot_product
from course_utils.machine import Machine
from course_utils.reverse import train_reverse

Line = tuple[str, str, bool | None]  # what, the number in words, whether it is as it should be


def correctness(device: str) -> Iterator[Line]:
    """The error of attention in half precision and with TF32, against float64 on the CPU."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 4, 128, 64, generator=generator, dtype=torch.float64) for _ in range(3))
    expected, _ = scaled_dot_product(q, k, v)
    for name, dtype, tf32, at_most in (
        ("float32", torch.float32, False, 1e-5),
        ("float32 with TF32", torch.float32, True, 5e-3),
        ("bfloat16", torch.bfloat16, False, 5e-2),
        ("float16", torch.float16, False, 5e-3),
    ):
        with _tf32(tf32):
            values, weights = scaled_dot_product(*(tensor.to(device, dtype) for tensor in (q, k, v)))
        error = (values.cpu().double() - expected).abs().max().item()
        whole = (weights.float().sum(dim=-1) - 1).abs().max().item()
        yield f"attention in {name}: largest error", f"{error:.1e} (rows sum to 1 within {whole:.0e})", error < at_most


@contextmanager
def _tf32(allowed: bool) -> Iterator[None]:
    """Allow or forbid TF32 in matrix products, and put it back as it was."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def speed(device: str, quick: bool) -> Iterator[Line]:
    """The attention layer against its floor, in the precisions of the device."""
    for length in (64,) if quick else (256, 1024, 4096):
        batch = max(1, 16_384 // length) if device == "cuda" else 1
        for dtype in (torch.float32, torch.bfloat16):
            ours, floor = (layer.to(device, dtype) for layer in (MultiheadAttention(512, 512, 8), Floor(512, 8)))
            x = torch.randn(batch, length, 512, device=device, dtype=dtype, requires_grad=True)
            mine, theirs = seconds_of_pairs(_step(ours, x), _step(floor, x), torch.get_num_threads(), 3 if quick else 7)
            ratio = sorted(a / b for a, b in zip(mine, theirs, strict=True))[len(mine) // 2]
            told = f"{ratio:.2f} of its floor, {1e3 * sorted(mine)[len(mine) // 2]:.2f} ms"
            good = None if quick else ratio <= 1.10
            yield f"attention forward and backward, T = {length}, {str(dtype).removeprefix('torch.')}", told, good


def _step(layer: nn.Module, x: torch.Tensor) -> Callable[[], None]:
    def run() -> None:
        layer(x).sum().backward()

    return run


def memory(device: str, quick: bool) -> Iterator[Line]:
    """Peak memory of a forward pass with and without maps; a CPU does not count its own."""
    if device != "cuda":
        return
    length = 256 if quick else 4096
    layer, x = MultiheadAttention(256, 256, 8).to(device), torch.randn(1, length, 256, device=device)
    peaks = []
    for return_attention in (False, True):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        held = torch.cuda.memory_allocated()
        with torch.no_grad():
            layer(x, return_attention=return_attention)
        peaks.append(torch.cuda.max_memory_allocated() - held)
    told = f"{peaks[0] / 2**20:.0f} MiB without maps, {peaks[1] / 2**20:.0f} MiB with them"
    yield f"peak memory of a forward pass, T = {length}", told, peaks[0] / peaks[1] <= 0.10


def recipes(device: str, quick: bool) -> Iterator[Line]:
    """Both tasks by the published recipe, trained anew; with bfloat16 as well, where there is a GPU."""
    profile, epochs = ("quick", 1) if quick else ("full", None)
    for precision in ("32-true", "bf16-mixed") if device == "cuda" else ("32-true",):
        machine = Machine(precision=precision)
        for name, train, goal in (("reverse", train_reverse, 0.9999), ("set anomaly on digits", train_anomaly, 0.98)):
            begun = time.perf_counter()
            _, accuracy = train(profile=profile, checkpoint="none", max_epochs=epochs, machine=machine)
            told = f"test {accuracy['test_acc']:.2%} in {time.perf_counter() - begun:.0f} s"
            yield f"{name}, {profile} recipe, {precision}", told, None if quick else accuracy["test_acc"] >= goal


def main(arguments: list[str]) -> int:
    """Print the table; 1 if something is not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: to see that all of it runs")
    quick = parser.parse_args(arguments).quick
    device = "cuda" if torch.cuda.is_available() else "cpu"
    card = torch.cuda.get_device_name() if device == "cuda" else "a CPU: no GPU was found"
    table = Table(title=f"On {card}, torch {torch.__version__}")
    for heading in ("what", "measured", ""):
        table.add_column(heading)
    failed = False
    for part in (
        correctness(device),
        speed(device, quick),
        memory(device, quick),
        recipes(device, quick),
    ):
        for what, measured, good in part:
            table.add_row(what, measured, {None: "", True: "as promised", False: "NOT as promised"}[good])
            failed |= good is False
    Console(width=150).print(table)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
