"""Drawing a batch of sets, against copying as many bytes from as many random rows."""

import itertools

import torch

from benchmarks.measure import Row, compare
from course_utils.anomaly import RECIPES, AnomalyPredictor, SetAnomalyDataset

CLASSES, IMAGES, SETS, SET_SIZE, WIDTH = 100, 450, 64, 10, 512


def rows(size: str, threads: int) -> list[Row]:
    """Time of a batch of 64 sets of 10 from 450 images a class."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(CLASSES * IMAGES, WIDTH, generator=generator)
    data = SetAnomalyDataset(features, torch.arange(CLASSES).repeat_interleave(IMAGES), SET_SIZE, train=True)
    odd = itertools.cycle(torch.randperm(len(data), generator=generator)[: SETS * 300].view(-1, SETS).tolist())
    # Other rows each time: rows that were just read come from the processor's cache.
    chosen = itertools.cycle(torch.randint(len(features), (300, SETS * SET_SIZE), generator=generator))
    return [
        compare(
            lambda: data.__getitems__(next(odd)),
            lambda: features.index_select(0, next(chosen)),
            what="set sampler",
            against="index_select of as many rows",
            size=f"{SETS} sets of {SET_SIZE}, D = {WIDTH}",
            threads=threads,
            at_most=4,
            pairs=11 if size == "full" else 3,
        )
    ]


def share(size: str, threads: int) -> list[Row]:
    """A training step of the published model of set anomaly, against drawing its batch."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(CLASSES * IMAGES, WIDTH, generator=generator)
    data = SetAnomalyDataset(features, torch.arange(CLASSES).repeat_interleave(IMAGES), SET_SIZE, train=True)
    odd = itertools.cycle(torch.randperm(len(data), generator=generator)[: SETS * 300].view(-1, SETS).tolist())
    model = AnomalyPredictor(input_dim=WIDTH, max_iters=1, **RECIPES["full"].model)
    optimizer = model.configure_optimizers()["optimizer"]

    def step() -> None:
        loss = model.training_step(data.__getitems__(next(odd)).tensors, 0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return [
        compare(
            step,
            lambda: data.__getitems__(next(odd)),
            what="training step of set anomaly, published model",
            against="drawing its batch",
            size=f"{SETS} sets of {SET_SIZE}, D = {WIDTH}",
            threads=threads,
            at_most=None,
            pairs=11 if size == "full" else 2,
        )
    ]
