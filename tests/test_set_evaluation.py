"""The protocol of evaluation, and the experiments that go by it, on generated features."""

import pytest
import torch
from test_class_evidence import clusters

from course_utils.anomaly import AnomalyPredictor, with_evidence_computed
from course_utils.experiments.deep_sets import deep_sets
from course_utils.experiments.set_anomaly_baselines import over_set_sizes, rules_and_model
from course_utils.experiments.set_anomaly_examples import examples
from course_utils.experiments.set_anomaly_heads import heads
from course_utils.experiments.set_anomaly_unseen import seen_and_unseen
from course_utils.set_evaluation import SetAccuracy, chooser, set_accuracy

FEATURES, LABELS = clusters(classes=5, each=60)
TRAIN, TEST = torch.arange(300)[::2], torch.arange(300)[1::2]


@pytest.fixture(scope="module")
def model() -> AnomalyPredictor:
    torch.manual_seed(0)
    model = AnomalyPredictor(8, 16, 1, 2, 1, 1e-3, 0, 10, known_classes=5, input_dropout=0.1).eval()
    model.learn_classes(FEATURES[TRAIN], LABELS[TRAIN])
    torch.nn.init.normal_(model.output_net[-1].weight, std=0.1)
    return model


def test_each_image_is_the_odd_one_once_for_each_seed():
    asked = []

    def last(sets):
        asked.append(sets)
        return torch.full((len(sets),), sets.size(1) - 1)

    measured = set_accuracy(last, FEATURES, LABELS, TEST, set_size=6, seeds=(0, 1))
    assert (measured.right, measured.sets) == ((150, 150), 150)  # the odd one stands last
    for number in range(2):
        assert torch.equal(asked[number][:, -1], FEATURES[TEST])
    assert not torch.equal(asked[0], asked[1])
    assert set_accuracy(lambda sets: last(sets) - 1, FEATURES, LABELS, TEST, 6).accuracy == 0


def test_the_interval_is_of_the_images_and_does_not_shrink_with_more_seeds():
    one, three = SetAccuracy((9430,), 10_000), SetAccuracy((9430, 9420, 9440), 10_000)
    assert one.interval == three.interval
    low, high = one.interval
    assert (round(low, 4), round(high, 4)) == (0.9383, 0.9474)  # Wilson's, worked out by hand
    assert three.as_data()["of_each_seed"] == [0.943, 0.942, 0.944]


def test_evidence_computed_once_gives_the_same_choices(model):
    quick, evidence = with_evidence_computed(model, FEATURES[TEST])
    here = torch.arange(len(TEST))
    assert set_accuracy(chooser(quick), evidence, LABELS[TEST], here) == set_accuracy(
        chooser(model), FEATURES, LABELS, TEST
    )
    with pytest.raises(ValueError, match="known_classes=0"):
        with_evidence_computed(AnomalyPredictor(8, 16, 1, 2, 1, 1e-3, 0, 10), FEATURES)


def test_the_baselines_come_with_intervals(model):
    methods = rules_and_model(model, FEATURES, LABELS, TRAIN, TEST, set_size=5)
    assert methods["guessing"]["accuracy"] == 0.2
    for name, lowest in {"discriminant rule": 0.7, "class evidence and posterior rule": 0.7}.items():
        low, high = methods[name]["interval_95"]
        assert lowest < low <= methods[name]["accuracy"] <= high
    assert over_set_sizes(model, FEATURES, LABELS, TEST).keys() == {"5", "10", "15", "20"}


def test_deep_sets_learns(model):
    assert deep_sets(model, FEATURES, LABELS, TRAIN.repeat(10), TEST, epochs=30)["test"]["accuracy"] > 0.5


def test_held_out_classes_are_not_learnt(monkeypatch):
    learnt = []
    monkeypatch.setattr(
        AnomalyPredictor, "learn_classes", lambda self, features, labels: learnt.append((features, labels))
    )
    results = seen_and_unseen(FEATURES, LABELS, TRAIN, TEST, held_out=(1, 3))
    ((features, labels),) = learnt
    assert torch.equal(features, FEATURES[TRAIN][~torch.isin(LABELS[TRAIN], torch.tensor([1, 3]))])
    assert labels.unique().tolist() == [0, 1, 2]
    assert (results["seen"]["classes"], results["unseen"]["classes"]) == (3, 2)


def test_a_head_is_removed_where_it_says(model):
    measured = heads(model, FEATURES, LABELS, TEST, set_size=5)
    assert [(head["layer"], head["head"]) for head in measured["heads"]] == [(1, 1), (1, 2)]
    for head in measured["heads"]:  # the mean over all sets of what adds up to 1 in each row
        assert 0 < head["weight_of_others_on_odd"] < 1
    assert 0 < measured["without_any_head"] <= 1


def test_the_examples_count_every_mistake_by_its_two_classes(model):
    names = ["ant", "bee", "cat", "dog", "eel"]
    told = examples(model, FEATURES, LABELS, TEST, names, set_size=6)
    *others, odd = told["classes"]
    assert len(others) == 5 and set(others) == {others[0]} != {odd}
    attention = torch.tensor(told["attention"])  # one layer of two heads
    assert attention.shape == (1, 2, 6, 6)
    torch.testing.assert_close(attention.sum(dim=-1), torch.ones(1, 2, 6), atol=6e-3, rtol=0)  # of rounded weights
    right = set_accuracy(chooser(model), FEATURES, LABELS, TEST, set_size=6, seeds=(0,)).right[0]
    assert told["mistakes"] == len(TEST) - right
    assert (
        sum(count for _, _, count in told["confused"]) == told["mistakes"]
    )  # five classes make no more than ten pairs
    assert all(one < other for one, other, _ in told["confused"])
