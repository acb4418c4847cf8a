"""Question: does gradient clipping steady training? And does it depend on the optimizer?

Pascanu et al. (2013) clip the norm of the gradient so that a rare huge one does not throw the weights of a recurrent
network far off. Measured here on Transformers of the shift task, whose gradients have spikes: with Adam and with SGD.

`python -m course_utils.experiments.clipping` measures all and writes the results; `recorded` reads them.
"""

import itertools
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch

from course_utils.experiments import committed
from course_utils.experiments.shift_task import BATCH, WIDTH, train_on_shift

PATH = Path(__file__).with_suffix(".json")
CLIPS = (None, 1.0, 0.1, 0.01)  # norms that a gradient is scaled down to where it is larger; None: never
SEEDS = (0, 1, 2)
STEPS = 400
EVERY = 10  # steps that one point of a recorded curve stands for
SETTINGS = {
    "Adam, 6 layers": {"depth": 6, "rate": 0.01},
    "Adam, 6 layers, warm-up": {"depth": 6, "rate": 0.01, "warmup": 80},
    "SGD, 1 layer, rate 0.1": {"depth": 1, "rate": 0.1, "optimizer": "SGD"},
    "SGD, 1 layer, rate 1": {"depth": 1, "rate": 1.0, "optimizer": "SGD"},
}


def recorded() -> dict:
    """The committed results: "measured" as `measure` returns it, and how they came about ("made")."""
    return committed.read(PATH)


def one_run(setting: str, clip: float | None, seed: int, steps: int = STEPS) -> dict[str, object]:
    """Train one post-norm model.

    Args:
        setting: one of SETTINGS.
        clip: scale the gradient down to this norm where it is larger; None never does.
        seed: of the weights and the data.
        steps: of the optimizer.

    Returns:
        "losses": the mean of each EVERY steps, in nats a digit; "gradient_norms": the largest of each EVERY steps,
        before clipping; "final_loss": of the last 20 steps; "clipped": the share of steps whose gradient was.

    Raises:
        ValueError: for an unknown setting.
    """
    if setting not in SETTINGS:
        raise ValueError(f"setting must be one of {'; '.join(SETTINGS)}; got {setting!r}")
    run = train_on_shift(seed=seed, clip=clip, steps=steps, **SETTINGS[setting])
    losses, norms = torch.tensor(run["losses"]), torch.tensor(run["gradient_norms"])
    return {
        "losses": [committed.short(loss) for loss in losses.unfold(0, EVERY, EVERY).mean(dim=-1).tolist()],
        "gradient_norms": [committed.short(norm) for norm in norms.unfold(0, EVERY, EVERY).amax(dim=-1).tolist()],
        "final_loss": committed.short(losses[-20:].mean().item()),
        "clipped": 0.0 if clip is None else committed.short((norms > clip).float().mean().item()),
    }


def measure(workers: int = 2) -> list[dict]:
    """Every setting with every clip: a list of {"setting", "clip", "runs": one of `one_run` for each seed}."""
    cells = list(itertools.product(SETTINGS, CLIPS))
    with ProcessPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        running = {(cell, seed): pool.submit(one_run, *cell, seed) for cell in cells for seed in SEEDS}
        return [
            {"setting": setting, "clip": clip, "runs": [running[(setting, clip), seed].result() for seed in SEEDS]}
            for setting, clip in cells
        ]


if __name__ == "__main__":
    committed.measure_anew(
        PATH,
        measure,
        seeds=SEEDS,
        steps=STEPS,
        width=WIDTH,
        batch=BATCH,
    )
