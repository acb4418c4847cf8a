"""Question: does warm-up prevent divergence of a post-norm Transformer? And where does it make no difference?

Xiong et al. (2020) find post-norm translation models of six layers untrainable without it; Liu et al. (2019) blame the
variance of Adam's first steps, and propose RAdam. Measured here: the shift task, at several depths and rates.

`python -m course_utils.experiments.warmup` measures all and writes the results; `recorded` reads them.
"""

import itertools
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch

from course_utils.experiments import committed
from course_utils.experiments.shift_task import BATCH, GUESSING, WIDTH, train_on_shift

PATH = Path(__file__).with_suffix(".json")
DEPTHS = (1, 6, 12)  # encoder blocks
RATES = (0.001, 0.003, 0.01)  # highest learning rate
SEEDS = (0, 1, 2)
STEPS = 400
WARMUP = 80
EVERY = 10  # steps that one point of a recorded curve is the mean of
LEARNT = GUESSING / 2  # a run has learnt if its final loss is below
STUCK = 0.95 * GUESSING  # and is stuck at guessing if its final loss is above
ARMS = {
    "post-norm": {},
    "post-norm, warm-up": {"warmup": WARMUP},
    "pre-norm": {"norm_first": True},
    "pre-norm, warm-up": {"norm_first": True, "warmup": WARMUP},
    "post-norm, RAdam": {"optimizer": "RAdam"},
}


def recorded() -> dict:
    """The committed results: "measured" as `measure` returns it, and how they came about ("made")."""
    return committed.read(PATH)


def one_run(arm: str, depth: int, rate: float, seed: int, steps: int = STEPS) -> dict[str, object]:
    """Train one model.

    Args:
        arm: one of ARMS.
        depth: number of encoder blocks.
        rate: highest learning rate.
        seed: of the weights and the data.
        steps: of the optimizer; the warm-up of an arm that has one takes WARMUP of them.

    Returns:
        "losses": the mean of each EVERY steps, in nats a digit; "final_loss": of the last 20 steps; "accuracy";
        "similarity" of the tokens after the last block; "largest_gradient_norm".

    Raises:
        ValueError: for an unknown arm.
    """
    if arm not in ARMS:
        raise ValueError(f"arm must be one of {'; '.join(ARMS)}; got {arm!r}")
    run = train_on_shift(depth=depth, rate=rate, seed=seed, steps=steps, **ARMS[arm])
    losses = torch.tensor(run["losses"])
    return {
        "losses": [committed.short(loss) for loss in losses.unfold(0, EVERY, EVERY).mean(dim=-1).tolist()],
        "final_loss": committed.short(losses[-20:].mean().item()),
        "accuracy": committed.short(run["accuracy"]),
        "similarity": committed.short(run["similarity"]),
        "largest_gradient_norm": committed.short(max(run["gradient_norms"])),
    }


def counted(runs: list[dict]) -> dict[str, float]:
    """Of the runs of a cell: the shares that "learnt" and are "stuck" at guessing, and the spread of the final loss."""
    final = [run["final_loss"] for run in runs]
    return {
        "learnt": sum(loss < LEARNT for loss in final) / len(final),
        "stuck": sum(loss > STUCK for loss in final) / len(final),
        "mean": sum(final) / len(final),
        "lowest": min(final),
        "highest": max(final),
    }


def measure(workers: int = 2) -> list[dict]:
    """Every arm at every depth and rate: a list of {"arm", "depth", "rate", "runs": one of `one_run` for each seed}."""
    cells = list(itertools.product(ARMS, DEPTHS, RATES))
    deepest_first = sorted(cells, key=lambda cell: -cell[1])  # so that no worker is left alone with one in the end
    with ProcessPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        running = {(cell, seed): pool.submit(one_run, *cell, seed) for cell in deepest_first for seed in SEEDS}
        return [
            {"arm": arm, "depth": depth, "rate": rate, "runs": [running[(arm, depth, rate), s].result() for s in SEEDS]}
            for arm, depth, rate in cells
        ]


if __name__ == "__main__":
    committed.measure_anew(
        PATH,
        measure,
        seeds=SEEDS,
        steps=STEPS,
        warmup=WARMUP,
        width=WIDTH,
        batch=BATCH,
    )
