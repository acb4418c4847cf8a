"""Claim: with a key-value cache, the next token costs less than without, and the more so the longer the text.

Without a cache the decoder computes all T tokens anew for each one: O(T·d² + T²·d). With it, one: O(d² + T·d). Refuted
if the time per token grows as fast with the cache as without.
"""

import copy
import time
from collections.abc import Callable, Sequence

import torch

from course_utils.decoder import BlockCache
from course_utils.seq2seq import SequenceToSequence

LENGTHS = (32, 64, 128, 256, 512, 1024, 2048)


def cache_speed(
    lengths: Sequence[int] = LENGTHS, width: int = 64, layers: int = 2, repeats: int = 5, seed: int = 0
) -> dict[str, list]:
    """Time to write one more token after a number of tokens, on one thread, with an untrained model.

    Args:
        lengths: T, tokens that are written already.
        width: D of the model.
        layers: blocks of the decoder.
        repeats: timings of each; the shortest counts, since other programs can only make it longer.
        seed: of the weights and tokens; it does not change the time.

    Returns:
        One number a length: "with" and "without" in seconds of the processor; "bytes" that the cache of the tokens
        takes; "difference", the largest between the logits of both.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    results = {"with": [], "without": [], "bytes": [], "difference": []}
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(seed)
            model = SequenceToSequence(
                10, width, num_heads=4, num_layers=layers, lr=1.0, warmup=0, max_iters=1, max_len=max(lengths) + 1
            ).eval()
            memory = model.encode(torch.randint(10, (1, 8)))
            tokens = torch.randint(10, (1, max(lengths) + 1))
            for length in lengths:
                caches = model.decoder.new_caches()
                model.decode(tokens[:, :length], memory, caches)
                results["bytes"].append(sum(cache.tokens.num_bytes for cache in caches))

                def with_cache(caches=caches, length=length):
                    return model.decode(tokens[:, length : length + 1], memory, _as_they_are(caches))

                def without(length=length):
                    return model.decode(tokens[:, : length + 1], memory)

                results["with"].append(min(_seconds(with_cache) for _ in range(repeats)))
                results["without"].append(min(_seconds(without) for _ in range(repeats)))
                results["difference"].append((with_cache() - without()[:, -1:]).abs().max().item())
    finally:
        torch.set_num_threads(threads)
    return results


def _as_they_are(caches: list[BlockCache]) -> list[BlockCache]:
    """Caches to which a token can be added while the given ones stay as they are; no tensor is copied."""
    return [BlockCache(copy.copy(cache.tokens), copy.copy(cache.memory)) for cache in caches]


def _seconds(compute: Callable[[], object]) -> float:
    """Processor time of this thread, which does not count what other programs take."""
    start = time.thread_time()
    compute()
    return time.thread_time() - start
