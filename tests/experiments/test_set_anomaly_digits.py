"""Set anomaly on digits: networks of equal size, distances of heads, and the committed results."""

import json

import pytest
import torch

from course_utils.anomaly import AnomalyPredictor
from course_utils.experiments.deep_sets import DeepSets
from course_utils.experiments.set_anomaly_digits import (
    HELD_OUT,
    NETWORKS,
    SEEDS,
    SET_SIZES,
    choose,
    digits,
    over_runs,
    recorded,
    rows_without,
    trained,
    unseen_classes,
)
from course_utils.experiments.set_anomaly_heads import head_distances, heads
from course_utils.set_evaluation import SetAccuracy, set_accuracy


@pytest.fixture(scope="module")
def briefly_trained():
    features, labels, splits = digits()
    return trained("Transformer", features, labels, splits["train"], lr=2e-3, seed=0, steps=30)


def test_both_networks_are_of_one_size_and_repeat():
    features, labels, splits = digits()
    size = {}
    for name in NETWORKS:
        one, same, other = (
            trained(name, features, labels, splits["train"], lr=1e-3, seed=seed, steps=2) for seed in (0, 0, 1)
        )
        first, again, different = (torch.cat([p.flatten() for p in each.parameters()]) for each in (one, same, other))
        assert torch.equal(first, again)
        assert not torch.equal(first, different)
        size[name] = len(first)
    assert size["DeepSets"] == pytest.approx(size["Transformer"], rel=1e-3)
    with pytest.raises(ValueError, match="one of Transformer, DeepSets, got 'LSTM'"):
        trained("LSTM", features, labels, splits["train"], lr=1e-3, seed=0)


def test_deep_sets_takes_sets_of_any_size_and_order():
    torch.manual_seed(0)
    network = DeepSets(8, 16).eval()
    sets = torch.randn(3, 7, 8)
    order = torch.randperm(7)
    torch.testing.assert_close(network(sets[:, order]), network(sets)[:, order])
    # Of two images, the mean alone tells them apart from nothing else: swapping both features swaps both scores.
    assert network(sets[:, :2]).shape == (3, 2)
    assert sum(parameter.numel() for parameter in network.parameters()) == 4 * 16**2 + (8 + 5) * 16 + 1


def test_runs_together_have_the_interval_of_one_runs_images():
    one, two = SetAccuracy((90, 92, 94), 100), SetAccuracy((96, 98, 100), 100)
    both = over_runs([one, two])
    assert both["accuracy"] == 0.95
    assert both["of_each_run"] == [0.92, 0.98]
    assert both["interval_95"] == [round(bound, 5) for bound in SetAccuracy((95,), 100).interval]


def test_distances_of_heads(briefly_trained):
    features, labels, splits = digits()
    measured = head_distances(briefly_trained, features, labels, splits["val"], set_size=6)
    assert measured["heads"] == [f"{layer}.{head}" for layer in (1, 2) for head in (1, 2, 3, 4)]
    between = torch.tensor(measured["between"])
    assert torch.equal(between, between.T)
    assert between.diagonal().abs().max() == 0
    assert 0 < between[~torch.eye(8, dtype=bool)].min() <= between.max() <= 1
    assert all(0 < distance < 1 for distance in measured["other_set"])


def test_heads_that_are_alike_are_no_distance_apart():
    features, labels, splits = digits()
    torch.manual_seed(0)
    model = AnomalyPredictor(64, 16, 1, 2, 1, 1e-3, 0, 10).eval()
    projection = model.transformer.layers[0].self_attn.qkv_proj
    with torch.no_grad():
        projection.weight[24:] = projection.weight[:24]  # the rows of a head stand together
        projection.bias[24:] = projection.bias[:24]
    alike = head_distances(model, features, labels, splits["val"], set_size=6)
    assert alike["between"][0][1] == pytest.approx(0, abs=1e-4)
    with torch.no_grad():
        projection.weight[24:40] = 0  # no queries, no keys: even weights
        projection.bias[24:40] = 0
        projection.weight[:16] *= 30  # sharp ones, which look at a few images
    apart = head_distances(model, features, labels, splits["val"], set_size=6)
    assert apart["between"][0][1] > 0.3
    assert apart["other_set"][1] == pytest.approx(0, abs=1e-4)  # even weights are even on every set


def test_heads_of_a_model_that_knows_no_classes(briefly_trained):
    features, labels, splits = digits()
    measured = heads(briefly_trained, features, labels, splits["val"], set_size=6)
    assert len(measured["heads"]) == 8
    whole = set_accuracy(choose(briefly_trained), features, labels, splits["val"], 6, seeds=(0,)).accuracy
    assert measured["accuracy"] == pytest.approx(whole, abs=1e-5)
    assert {head["accuracy_without"] for head in measured["heads"]} != {measured["accuracy"]}


def test_held_out_classes_are_not_trained_on_and_alone_tested_on(briefly_trained):
    _, labels, splits = digits()
    kept = rows_without((1, 5, 9), "train")
    assert labels[kept].unique().tolist() == [0, 2, 3, 4, 6, 7, 8]
    assert len(kept) == int((~torch.isin(labels[splits["train"]], torch.tensor([1, 5, 9]))).sum())
    result = unseen_classes((1, 5, 9), briefly_trained, briefly_trained)
    assert result["Transformer"] == result["Transformer that saw them"]
    held_out = int(torch.isin(labels[splits["test"]], torch.tensor([1, 5, 9])).sum())
    assert (result["Transformer"]["sets"], result["on classes seen"]["sets"]) == (held_out, 359 - held_out)


def test_the_committed_results_bear_the_claims_out():
    results = recorded()
    assert json.loads(json.dumps(results)) == results
    measured = results["measured"]
    methods = measured["methods"]
    assert len(methods["Transformer"]["of_each_run"]) == len(methods["DeepSets"]["of_each_run"]) == len(SEEDS)
    assert methods["cosine rule"]["interval_95"][1] < methods["Transformer"]["interval_95"][0]
    assert measured["set_sizes"]["Transformer"].keys() == {str(size) for size in SET_SIZES}
    assert min(measured["set_sizes"]["Transformer"]["10"]) > 0.97
    assert [choice["held_out"] for choice in measured["unseen"]] == [list(classes) for classes in HELD_OUT]
    for of_model in measured["heads"]:
        assert len(of_model["heads"]) == 8
        assert of_model["without_any_head"] < of_model["accuracy"]
