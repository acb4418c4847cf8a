"""Claim: a set model that is told positions, and always finds the odd one last, learns the place and not the image.

Trained on digits with the odd one always last, it is tested with the odd one at each place. It is refuted by a model
that finds the odd one as well elsewhere. Beside it: the same model without positions, and the same model with positions
that is trained with the odd one at any place.

`python -m course_utils.experiments.order_shortcut` measures all and writes the file beside this one.
"""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.anomaly import RECIPES, AnomalyPredictor, SetAnomalyDataset, anomaly_datasets
from course_utils.batches import train_loader
from course_utils.experiments import committed
from course_utils.experiments.gradient_steps import endless, train_for
from course_utils.feature_cache import cached_features
from course_utils.images import load_images
from course_utils.set_evaluation import SEEDS as SETS_SEEDS

PATH = Path(__file__).with_suffix(".json")
SET_SIZE = 10
STEPS = 1_200  # about what the quick recipe takes
FEW_STEPS = 100  # the shortcut needs no more
SEEDS = (0, 1, 2)
# Whether the model adds positional encodings, and whether the odd one is put at a random place in training.
ARMS = {
    "positions, odd one always last": (True, False),
    "positions, odd one anywhere": (True, True),
    "no positions, odd one always last": (False, False),
}


def order_shortcut(arm: str, seed: int, steps: int = STEPS) -> dict[str, object]:
    """Train a model on digits, and test it with the odd one at each place.

    Args:
        arm: one of ARMS.
        seed: of the initial weights, the training sets and the places.
        steps: of the optimizer, of 64 sets each.

    Returns:
        "accuracy_last": share of test sets whose odd one is found where it stands last; "accuracy_at": the same with
        it at each place [T]; "says_last_at": how often the model says "the last" then [T].

    Raises:
        ValueError: for another arm.
    """
    if arm not in ARMS:
        raise ValueError(f"arm must be one of {', '.join(ARMS)}, got {arm!r}")
    positions, anywhere = ARMS[arm]
    image_set = load_images("digits")
    features = cached_features(image_set, "pixels")
    datasets = anomaly_datasets(image_set, features, SET_SIZE)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AnomalyPredictor(input_dim=features.size(1), max_iters=1, **RECIPES["quick"].model)
        batches = endless(train_loader(datasets["train"], RECIPES["quick"].batch_size))

        def next_loss() -> Tensor:
            sets, _, odd = next(batches)
            if anywhere:
                odd = torch.randint(SET_SIZE, odd.shape)
                sets = with_odd_at(sets, odd)
            return F.cross_entropy(model(sets, add_positional_encoding=positions).squeeze(-1), odd)

        train_for(steps, model, next_loss, lr=RECIPES["quick"].model["lr"], warmup=50, clip=2.0)

    labels = torch.from_numpy(image_set.labels)[image_set.splits["test"]]
    test_sets = torch.cat(
        [
            SetAnomalyDataset(features, labels, SET_SIZE, train=False, seed=draw, rows=image_set.splits["test"])
            .__getitems__(range(len(labels)))
            .tensors[0]
            for draw in SETS_SEEDS
        ]
    )
    found, says_last = [], []
    with torch.no_grad():
        for place in range(SET_SIZE):
            moved = with_odd_at(test_sets, torch.full((len(test_sets),), place))
            chosen = torch.cat(
                [model(part, add_positional_encoding=positions).squeeze(-1).argmax(-1) for part in moved.split(500)]
            )
            found.append(round(float((chosen == place).double().mean()), 4))
            says_last.append(round(float((chosen == SET_SIZE - 1).double().mean()), 4))
    return {"accuracy_last": found[-1], "accuracy_at": found, "says_last_at": says_last}


def with_odd_at(sets: Tensor, place: Tensor) -> Tensor:
    """Sets [B, T, D] whose last image changes places with the one at `place` [B]."""
    rows = torch.arange(len(sets))
    order = torch.arange(sets.size(1)).repeat(len(sets), 1)
    order[:, -1] = place
    order[rows, place] = sets.size(1) - 1
    return sets[rows[:, None], order]


def measure() -> dict[str, object]:
    """Every arm with each seed, and the shortcut after FEW_STEPS too."""
    measured = {arm: {"steps": STEPS, "runs": [order_shortcut(arm, seed) for seed in SEEDS]} for arm in ARMS}
    first = next(iter(ARMS))
    measured["after few steps"] = {
        "steps": FEW_STEPS,
        "runs": [order_shortcut(first, seed, FEW_STEPS) for seed in SEEDS],
    }
    return measured


def recorded() -> dict:
    """The committed results: "measured" and how they came about ("made")."""
    return committed.read(PATH)


if __name__ == "__main__":
    committed.measure_anew(PATH, measure, seeds=SEEDS, sets_seeds=list(SETS_SEEDS))
