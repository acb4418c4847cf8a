"""The committed model of set anomaly on CIFAR-100: that it loads, and what it scores where real features are there."""

import json
import os
from pathlib import Path

import pytest
import torch

from course_utils import checkpoints, registry
from course_utils.anomaly import AnomalyPredictor, recipes_for, with_evidence_computed
from course_utils.experiments.set_anomaly_cifar100 import recorded
from course_utils.set_evaluation import chooser, set_accuracy

ROOT = Path(__file__).resolve().parent.parent
NAME = "anomaly_cifar100_efficientnet_lite0"
ENTRY = registry.read()[NAME]


@pytest.fixture
def model() -> AnomalyPredictor:
    return checkpoints.load(AnomalyPredictor, NAME)


def test_the_file_is_small_and_the_registry_knows_it(model):
    assert ENTRY.size < 10_000_000
    assert dict(model.hparams) == dict(ENTRY.hyper_parameters)
    assert ENTRY.metrics["test_acc"] >= 0.943
    assert {"images_sha256", "features_sha256", "hours", "hardware"} <= ENTRY.made.keys()


@pytest.mark.parametrize("profile", ["quick", "full"])
def test_its_recipe_is_that_of_both_profiles(model, profile):
    recipe = recipes_for("cifar100", "efficientnet_lite0")[profile]
    assert recipe.model.items() <= dict(model.hparams).items()


def test_the_parts_are_those_that_the_predictor_documents(model):
    parts = {name.partition(".")[0] for name in model.state_dict()}
    assert parts == {"input_net", "transformer", "output_net", "class_evidence", "rule_weight"}
    sets = torch.rand(2, 7, 1280)
    order = torch.randperm(7)
    scores = model(sets, add_positional_encoding=False)
    torch.testing.assert_close(model(sets[:, order], add_positional_encoding=False), scores[:, order])


def test_its_recorded_accuracy_is_found_again_with_another_seed(model):
    features, labels, test = real_features()
    quick, evidence = with_evidence_computed(model, features[test])
    measured = set_accuracy(chooser(quick), evidence, labels[test], torch.arange(len(test)), seeds=[77])
    assert measured.accuracy >= 0.943
    assert measured.accuracy == pytest.approx(ENTRY.metrics["test_acc"], abs=0.006)


def test_the_recorded_experiments_are_of_this_model_and_the_page_shows_them():
    results = recorded()
    of_model = results["measured"]["methods"]["Transformer on class evidence"]
    assert of_model["sets"] == 10_000
    assert of_model["accuracy"] == pytest.approx(ENTRY.metrics["test_acc"], abs=0.006)
    assert results["made"]["images_sha256"] == ENTRY.made["images_sha256"]
    assert results["measured"].keys() == {"methods", "deep_sets", "set_sizes", "held_out", "heads", "examples"}
    assert json.loads(json.dumps(results)) == results


def test_the_reading_copy_is_up_to_date(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import set_anomaly_cifar100 as reading_copy

    committed = (ROOT / "docs" / "set_anomaly_cifar100.md").read_text(encoding="utf-8")
    assert committed == reading_copy.page(), "write it anew with: python docs/set_anomaly_cifar100.py"


def real_features() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Features of all images, their labels, and the rows of the test images, where they were extracted before."""
    pytest.importorskip("efficientnet_lite_pytorch", reason="the extra 'lite' is not installed")
    if not (os.environ.get("PATH_DATASETS") and os.environ.get("PATH_FEATURES")):
        pytest.skip("PATH_DATASETS and PATH_FEATURES do not say where CIFAR-100 and its features lie")
    from course_utils.feature_cache import FeatureCache
    from course_utils.features import Extractor
    from course_utils.images import load_images

    image_set = load_images("cifar100")
    cache = FeatureCache(image_set, Extractor("efficientnet_lite0"))
    if not cache.is_complete():
        pytest.skip("PATH_FEATURES has no features of EfficientNet-Lite0 at 224 pixels")
    return cache.open(), torch.from_numpy(image_set.labels), torch.from_numpy(image_set.splits["test"])
