"""All measurements of set anomaly on CIFAR-100 in one file of results, so that a reader need not repeat them.

`python -m course_utils.experiments.set_anomaly_cifar100` measures and writes; `recorded` reads.
"""

import time
from importlib.metadata import version
from pathlib import Path

import torch

from course_utils import checkpoints
from course_utils.anomaly import AnomalyPredictor, checkpoint_name
from course_utils.experiments import committed
from course_utils.experiments.deep_sets import deep_sets
from course_utils.experiments.set_anomaly_baselines import over_set_sizes, rules_and_model
from course_utils.experiments.set_anomaly_examples import examples
from course_utils.experiments.set_anomaly_heads import heads
from course_utils.experiments.set_anomaly_unseen import HELD_OUT, seen_and_unseen
from course_utils.feature_cache import cached_features
from course_utils.images import fingerprint, load_images
from course_utils.set_evaluation import SEEDS

PATH = Path(__file__).with_suffix(".json")
BACKBONE = "efficientnet_lite0"


def recorded() -> dict:
    """The committed results: "measured" and how they came about ("made")."""
    return committed.read(PATH)


def measure() -> dict:
    """Everything anew, with the committed model on the real images: some minutes.

    Raises:
        ImagesMissingError: if CIFAR-100 is not there and cannot be downloaded.
        CheckpointMissingError: if the model is not there.
    """
    image_set = load_images("cifar100")
    features = cached_features(image_set, BACKBONE)
    labels = torch.from_numpy(image_set.labels)
    train, test = (torch.from_numpy(image_set.splits[split]) for split in ("train", "test"))
    model = checkpoints.load(AnomalyPredictor, checkpoint_name("cifar100", BACKBONE))
    return {
        "methods": rules_and_model(model, features, labels, train, test),
        "deep_sets": deep_sets(model, features, labels, train, test),
        "set_sizes": over_set_sizes(model, features, labels, test),
        "held_out": seen_and_unseen(features, labels, train, test),
        "heads": heads(model, features, labels, test),
        "examples": examples(model, features, labels, test, image_set.class_names),
    }


if __name__ == "__main__":
    begun, image_set = time.monotonic(), load_images("cifar100")
    committed.write(
        PATH,
        measure(),
        seconds=time.monotonic() - begun,
        seeds=SEEDS,
        held_out_classes=[image_set.class_names[number] for number in HELD_OUT],
        images_sha256=fingerprint(image_set.images),
        sklearn=version("scikit-learn"),
    )
    print(PATH.name)
