"""All measurements of set anomaly on digits that need several trained models, in one file of results.

Claims: attention beats simple baselines on the same features; the model works for sets of other sizes than it was
trained on, and for classes that it never saw; its heads look at different things. Every network takes as many steps,
on sets that are drawn alike. The Transformer has the rate of its recipe, DeepSets the best of a grid around it, chosen
on the validation images.

`python -m course_utils.experiments.set_anomaly_digits` measures and writes; `recorded` reads.
"""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.anomaly import RECIPES, AnomalyPredictor, SetAnomalyDataset
from course_utils.batches import train_loader
from course_utils.experiments import committed
from course_utils.experiments.deep_sets import DeepSets
from course_utils.experiments.gradient_steps import endless, train_for
from course_utils.experiments.set_anomaly_heads import head_distances, heads
from course_utils.feature_cache import cached_features
from course_utils.images import load_images
from course_utils.rules import cosine_rule
from course_utils.set_evaluation import SEEDS as SETS_SEEDS
from course_utils.set_evaluation import Chooser, SetAccuracy, chooser, set_accuracy

PATH = Path(__file__).with_suffix(".json")
NETWORKS = ("Transformer", "DeepSets")
STEPS = 1_200  # what the quick recipe takes
RATES = (1e-3, 2e-3, 5e-3, 1e-2)
SEEDS = (0, 1, 2)
TUNING_SEED = 100
SET_SIZES = (5, 7, 10, 15, 20)
HELD_OUT = ((0, 1, 2), (3, 4, 5), (6, 7, 8))  # classes, one choice each
DEEP_SETS_WIDTH = 129  # as many parameters as the Transformer, to a hundredth of a percent


def digits() -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Features [N, D] of all digits, their labels [N], and the rows of each split."""
    image_set = load_images("digits")
    splits = {split: torch.from_numpy(rows) for split, rows in image_set.splits.items()}
    return cached_features(image_set, "pixels"), torch.from_numpy(image_set.labels), splits


def trained(
    name: str, features: Tensor, labels: Tensor, rows: Tensor, *, lr: float, seed: int, steps: int = STEPS
) -> nn.Module:
    """A network trained to find the odd one, in evaluation mode.

    Args:
        name: one of NETWORKS.
        features: of all images, [N, D].
        labels: of all images, [N].
        rows: images to train on.
        lr: highest learning rate.
        seed: of the initial weights, the sets and the dropout.
        steps: of the optimizer.

    Raises:
        ValueError: for another name.
    """
    if name not in NETWORKS:
        raise ValueError(f"name must be one of {', '.join(NETWORKS)}, got {name!r}")
    recipe = RECIPES["quick"]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if name == "Transformer":
            network: nn.Module = AnomalyPredictor(input_dim=features.size(1), max_iters=1, **recipe.model)
        else:
            network = DeepSets(
                features.size(1), DEEP_SETS_WIDTH, recipe.model["input_dropout"], recipe.model["dropout"]
            )
        sets_of_rows = SetAnomalyDataset(features, labels[rows], train=True, rows=rows)
        batches = endless(train_loader(sets_of_rows, recipe.batch_size))
        scores = _scores(network)

        def next_loss() -> Tensor:
            sets, _, odd = next(batches)
            return F.cross_entropy(scores(sets), odd)

        train_for(steps, network, next_loss, lr=lr, warmup=recipe.model["warmup"], clip=recipe.gradient_clip_val)
    return network


def choose(network: nn.Module) -> Chooser:
    """The choice of either network: the image with the highest score."""
    return chooser(network) if isinstance(network, AnomalyPredictor) else lambda sets: network(sets).argmax(dim=-1)


def over_set_sizes(choosers: Sequence[Chooser], sizes: Sequence[int] = SET_SIZES) -> dict[str, list[float]]:
    """For each set size, the accuracy of each chooser on the test images."""
    features, labels, splits = digits()
    return {
        str(size): [round(set_accuracy(each, features, labels, splits["test"], size).accuracy, 4) for each in choosers]
        for size in sizes
    }


def unseen_classes(held_out: Sequence[int], network: nn.Module, everything: nn.Module) -> dict[str, object]:
    """A Transformer trained without some classes, on sets of these classes alone.

    Args:
        held_out: class numbers.
        network: trained on the `rows_without` them.
        everything: a Transformer trained on all classes, for comparison on the same sets.

    Returns:
        "held_out": the classes; the accuracies, as `SetAccuracy.as_data`, of the Transformer that did not see them
        ("Transformer"), of the one that did ("Transformer that saw them") and of the "cosine rule" from the mean of
        the training images of the other classes, on test sets of the held-out classes; "on classes seen": the first
        one's on test sets of the other classes.
    """
    features, labels, splits = digits()
    mean = features[rows_without(held_out, "train")].mean(dim=0)
    others = rows_without(held_out, "test")
    rows = splits["test"][~torch.isin(splits["test"], others)]
    return {
        "held_out": list(held_out),
        "Transformer": set_accuracy(choose(network), features, labels, rows).as_data(),
        "Transformer that saw them": set_accuracy(choose(everything), features, labels, rows).as_data(),
        "cosine rule": set_accuracy(lambda sets: cosine_rule(sets, mean), features, labels, rows).as_data(),
        "on classes seen": set_accuracy(choose(network), features, labels, others).as_data(),
    }


def rows_without(held_out: Sequence[int], split: str) -> Tensor:
    """The rows of a split whose images are of none of the classes."""
    _, labels, splits = digits()
    return splits[split][~torch.isin(labels[splits[split]], torch.tensor(held_out))]


def over_runs(accuracies: Sequence[SetAccuracy]) -> dict[str, object]:
    """The accuracies of several trained networks as one: their mean, its 95 % interval, and each.

    The interval is that of the images: which of them are hard is the same for each network.
    """
    together = SetAccuracy(tuple(count for accuracy in accuracies for count in accuracy.right), accuracies[0].sets)
    return {
        "accuracy": round(together.accuracy, 5),
        "interval_95": [round(bound, 5) for bound in together.interval],
        "of_each_run": [round(accuracy.accuracy, 5) for accuracy in accuracies],
        "sets": together.sets,
    }


def measure() -> dict[str, object]:
    """Everything anew, two networks trained at a time: some minutes."""
    features, labels, splits = digits()
    train, test, mean = splits["train"], splits["test"], features[splits["train"]].mean(dim=0)

    def rule(sets: Tensor) -> Tensor:
        return cosine_rule(sets, mean)

    def accuracies_of(runs: Sequence[nn.Module], rows: Tensor) -> list[SetAccuracy]:
        return [set_accuracy(choose(run), features, labels, rows) for run in runs]

    with ProcessPoolExecutor(max_workers=2) as pool:

        def begin(name: str, rows: Tensor, lr: float, seed: int):
            return pool.submit(trained, name, features, labels, rows, lr=lr, seed=seed)

        recipe_rate = float(RECIPES["quick"].model["lr"])
        transformers = [begin("Transformer", train, recipe_rate, seed) for seed in SEEDS]
        by_rate = {rate: begin("DeepSets", train, rate, TUNING_SEED) for rate in RATES}
        without = [begin("Transformer", rows_without(kept, "train"), recipe_rate, SEEDS[0]) for kept in HELD_OUT]
        grid = {rate: accuracies_of([run.result()], splits["val"])[0].accuracy for rate, run in by_rate.items()}
        rate = max(grid, key=grid.get)
        deep_sets = [begin("DeepSets", train, rate, seed) for seed in SEEDS]
        networks = {
            "Transformer": [run.result() for run in transformers],
            "DeepSets": [run.result() for run in deep_sets],
        }
        held_out = [run.result() for run in without]
    facts = {
        "Transformer": {"rate": recipe_rate},
        "DeepSets": {"rate": rate, "validation_accuracy_by_rate": {f"{r:g}": round(a, 4) for r, a in grid.items()}},
    }
    methods: dict[str, dict] = {
        "guessing": {"accuracy": 0.1},
        "cosine rule": over_runs([set_accuracy(rule, features, labels, test)]),
    }
    for name in ("DeepSets", "Transformer"):
        runs = networks[name]
        parameters = sum(parameter.numel() for parameter in runs[0].parameters())
        methods[name] = {"parameters": parameters, **facts[name], **over_runs(accuracies_of(runs, test))}
    return {
        "methods": methods,
        "set_sizes": {
            "cosine rule": over_set_sizes([rule]),
            **{name: over_set_sizes([choose(run) for run in runs]) for name, runs in networks.items()},
        },
        "unseen": [
            unseen_classes(classes, network, networks["Transformer"][0])
            for classes, network in zip(HELD_OUT, held_out, strict=True)
        ],
        "heads": [
            heads(run, features, labels, test) | {"distances": head_distances(run, features, labels, test)}
            for run in networks["Transformer"]
        ],
    }


def recorded() -> dict:
    """The committed results: "measured" and how they came about ("made")."""
    return committed.read(PATH)


def _scores(network: nn.Module):
    """How to get scores [B, T] of sets [B, T, D] from either network."""
    if isinstance(network, AnomalyPredictor):
        return lambda sets: network(sets, add_positional_encoding=False).squeeze(-1)
    return network


if __name__ == "__main__":
    committed.measure_anew(
        PATH,
        measure,
        seeds=SEEDS,
        sets_seeds=list(SETS_SEEDS),
        steps=STEPS,
        rates=list(RATES),
    )
