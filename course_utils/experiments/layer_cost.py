"""Claim: attention costs O(T²·d), recurrence O(T·d²) and a convolution O(k·T·d²), for length T, width d, kernel k.

The orders of growth are those of Vaswani et al. (2017), table 1. Refuted if the fitted exponents of T differ: 2 for
the time of attention, 1 for the others. Explicit attention keeps the map [T, T]; fused attention gives the same values
and never forms it (Dao et al., 2022, FlashAttention), so its memory is not quadratic.

`python -m course_utils.experiments.layer_cost` measures all widths and lengths and writes them; `recorded` reads.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from course_utils.attention import MultiheadAttention
from course_utils.experiments import committed
from course_utils.experiments.peak_memory import peak_memory

PATH = Path(__file__).with_suffix(".json")
EXPLICIT, FUSED, LSTM, CONVOLUTION = "explicit attention", "fused attention", "LSTM", "convolution"
KERNEL = 3
WIDTHS = (32, 64, 128, 256, 512)
LENGTHS = (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
SHORTEST = 0.02  # seconds of a timing; what is over sooner is called several times


def recorded() -> dict:
    """The committed results: "measured" and how they came about ("made")."""
    return committed.read(PATH)


def layer_cost(width: int, lengths: Sequence[int], repeats: int = 5, seed: int = 0) -> dict[str, dict[str, list]]:
    """Time and memory of one forward pass of each layer over one sequence, on one thread.

    Args:
        width: d, of the input, the output and everything in between; attention has a single head.
        lengths: T.
        repeats: timings of each; the shortest counts, since other programs can only make it longer.
        seed: of the weights and inputs; it changes neither time nor memory.

    Returns:
        For each layer, one number a length: "multiplications" as counted on paper, "seconds" of the processor, the
        "longest" timing in place of the shortest, and "bytes" of memory at the peak, beyond the input and the weights.
    """
    with torch.random.fork_rng(devices=[]), _one_thread(), torch.no_grad():
        torch.manual_seed(seed)
        results = {}
        for name, layer in layers(width).items():
            results[name] = {"multiplications": [], "seconds": [], "longest": [], "bytes": []}
            for length in lengths:
                x = torch.randn(1, length, width)
                results[name]["multiplications"].append(multiplications(name, length, width))
                timings = _timings(lambda layer=layer, x=x: layer(x), repeats)
                results[name]["seconds"].append(_rounded(min(timings)))
                results[name]["longest"].append(_rounded(max(timings)))
                results[name]["bytes"].append(peak_memory(lambda layer=layer, x=x: layer(x)))
    return results


def layers(width: int) -> dict[str, Callable[[Tensor], Tensor]]:
    """The four layers, each from [B, T, width] to [B, T, width]."""
    attention = MultiheadAttention(width, width, num_heads=1)
    recurrence = nn.LSTM(width, width, batch_first=True)
    convolution = nn.Conv1d(width, width, KERNEL, padding=KERNEL // 2)
    return {
        EXPLICIT: lambda x: attention(x, return_attention=True),
        FUSED: attention,
        LSTM: lambda x: recurrence(x)[0],
        CONVOLUTION: lambda x: convolution(x.transpose(1, 2)).transpose(1, 2),
    }


def multiplications(name: str, length: int, width: int) -> int:
    """Multiplications in a layer's matrix products, as counted on paper.

    Attention: four projections, T·d² each; the scores and the weighted means, T²·d each. LSTM: for each of four gates
    one product with the input and one with the state, T·d² each. Convolution: k products, T·d² each.

    Raises:
        ValueError: for a layer that is not one of these.
    """
    if name in (EXPLICIT, FUSED):
        return 4 * length * width**2 + 2 * length**2 * width
    if name == LSTM:
        return 8 * length * width**2
    if name == CONVOLUTION:
        return KERNEL * length * width**2
    raise ValueError(f"no layer is called {name!r}; there are {EXPLICIT!r}, {FUSED!r}, {LSTM!r} and {CONVOLUTION!r}")


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _timings(compute: Callable[[], object], repeats: int) -> list[float]:
    """Processor time of a computation on this thread in seconds, which does not count what other programs take."""
    compute()  # the first call also prepares kernels
    calls, timings = 1, []
    while len(timings) < repeats:
        start = time.thread_time()
        for _ in range(calls):
            compute()
        taken = time.thread_time() - start
        if taken < SHORTEST and not timings:
            calls *= 2
        else:
            timings.append(taken / calls)
    return timings


def _rounded(seconds: float) -> float:
    return float(f"{seconds:.3g}")


def main() -> None:
    """Measure everything, and write the committed results."""
    start = time.perf_counter()
    measured = {"lengths": list(LENGTHS), "kernel": KERNEL, "widths": {}}
    for width in WIDTHS:
        measured["widths"][str(width)] = layer_cost(width, LENGTHS)
        print(f"width {width}: {time.perf_counter() - start:.0f} s")
    committed.write(PATH, measured, seconds=time.perf_counter() - start, seeds=[0], threads=1)


if __name__ == "__main__":
    main()
