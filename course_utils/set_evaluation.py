"""How well a rule or a model finds the odd ones: each image of a split once as the odd one, on sets that seeds fix."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from scipy.stats import binomtest
from torch import Tensor

from course_utils.anomaly import AnomalyPredictor, SetAnomalyDataset
from course_utils.batches import eval_loader

SEEDS = (0, 1, 2)  # of the evaluation sets
Chooser = Callable[[Tensor], Tensor]  # sets [B, T, D] -> positions of the odd ones [B]


@dataclass(frozen=True)
class SetAccuracy:
    """Shares of sets whose odd one is found.

    Attributes:
        right: number of sets whose odd one is found, for each seed.
        sets: number of sets of each seed.
    """

    right: tuple[int, ...]
    sets: int

    @property
    def accuracy(self) -> float:
        """The mean over the seeds."""
        return sum(self.right) / (self.sets * len(self.right))

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the mean, by Wilson's method, as if there were the sets of one seed only.

        Each image is the odd one once for each seed; more seeds draw other companions, and no more images.
        """
        found = round(self.accuracy * self.sets)
        interval = binomtest(found, self.sets).proportion_ci(method="wilson")
        return float(interval.low), float(interval.high)

    def as_data(self) -> dict:
        """Plain data: the accuracy, its interval, and the accuracy of each seed."""
        return {
            "accuracy": round(self.accuracy, 5),
            "interval_95": [round(bound, 5) for bound in self.interval],
            "of_each_seed": [round(count / self.sets, 5) for count in self.right],
            "sets": self.sets,
        }


def set_accuracy(
    choose: Chooser,
    features: Tensor,
    labels: Tensor,
    rows: Tensor,
    set_size: int = 10,
    seeds: Sequence[int] = SEEDS,
) -> SetAccuracy:
    """The accuracy of a rule or model on the images of a split.

    Args:
        choose: tells the positions of the odd ones [B] of sets [B, T, D].
        features: of all images, [N, D].
        labels: of all images, [N].
        rows: which images the sets are made of, [M]: each is the odd one of one set for each seed.
        set_size: images T in a set.
        seeds: of the sets' companions.

    Raises:
        ValueError: as `SetAnomalyDataset`.
    """
    right = []
    for seed in seeds:
        sets_of_split = SetAnomalyDataset(features, labels[rows], set_size, train=False, seed=seed, rows=rows)
        batches = eval_loader(sets_of_split, batch_size=500)
        with torch.no_grad():
            right.append(sum(int((choose(sets) == positions).sum()) for sets, _, positions in batches))
    return SetAccuracy(tuple(right), len(rows))


def chooser(model: AnomalyPredictor) -> Chooser:
    """The choice of a model: the image with the highest score."""
    return lambda sets: model(sets, add_positional_encoding=False).squeeze(-1).argmax(dim=-1)
