"""Claim: the time and memory of linear and of windowed attention grow with the length, those of full attention with T².

Refuted if the fitted exponents of T differ: 2 for full attention, 1 for the others. Fused full attention (Dao et al.,
2022, FlashAttention) takes as many operations and does not keep the weights, so its memory is not quadratic.
"""

import time
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.attention import scaled_dot_product
from course_utils.efficient_attention import linear_attention, window_attention
from course_utils.experiments.peak_memory import peak_memory

RADIUS = 16
ATTENTION: dict[str, Callable[[Tensor, Tensor, Tensor], object]] = {
    "full": scaled_dot_product,
    "full, fused": F.scaled_dot_product_attention,
    "linear": linear_attention,
    "window": lambda q, k, v: window_attention(q, k, v, RADIUS),
}
LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096)


def efficient_cost(
    lengths: Sequence[int] = LENGTHS, width: int = 32, repeats: int = 3, seed: int = 0
) -> dict[str, dict[str, list]]:
    """Time and memory of one forward pass over one sequence and one head, on one thread.

    Args:
        lengths: T.
        width: of queries, keys and values.
        repeats: timings of each; the shortest counts, since other programs can only make it longer.
        seed: of the inputs; it changes neither time nor memory.

    Returns:
        For each kind one number a length: "seconds" of the processor, and "bytes" at the peak beyond the input.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(seed)
    results = {name: {"seconds": [], "bytes": []} for name in ATTENTION}
    try:
        for length in lengths:
            q, k, v = torch.randn(3, 1, 1, length, width, generator=generator)
            for name, attention in ATTENTION.items():
                results[name]["seconds"].append(min(_seconds(lambda: attention(q, k, v)) for _ in range(repeats)))  # noqa: B023
                results[name]["bytes"].append(peak_memory(lambda: attention(q, k, v)))  # noqa: B023
    finally:
        torch.set_num_threads(threads)
    return results


def _seconds(compute: Callable[[], object]) -> float:
    """Processor time of this thread, which does not count what other programs take."""
    start = time.thread_time()
    compute()
    return time.thread_time() - start
