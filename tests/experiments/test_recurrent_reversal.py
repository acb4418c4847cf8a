"""What the networks can see, that they are of equal size, and that the committed results are those of the code."""

import json

import pytest
import torch

from course_utils.experiments.recurrent_reversal import (
    COPYING,
    MANY_STEPS,
    NETWORKS,
    SEEDS,
    STEPS,
    LSTMEncodeDecode,
    LSTMPerPosition,
    ceiling_of_one_direction,
    parameters_of,
    recorded,
    reversal,
)

EQUAL = [name for name in NETWORKS if "seven" not in name]


def test_the_ceiling_of_one_direction():
    ceiling = ceiling_of_one_direction(16, 10)
    assert ceiling == [0.1] * 8 + [1.0] * 8
    assert sum(ceiling) / 16 == pytest.approx(0.55)
    assert ceiling_of_one_direction(5, 2) == [0.5, 0.5, 1.0, 1.0, 1.0]  # the middle one is its own answer


def test_equal_means_equal_to_five_percent_and_seven_means_seven():
    of_attention = parameters_of("attention")
    assert of_attention == 10_346
    for name in EQUAL:
        assert parameters_of(name) == pytest.approx(of_attention, rel=0.05), name
    assert parameters_of("BiLSTM, seven times the size") == pytest.approx(7 * of_attention, rel=0.02)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_one_direction_sees_nothing_of_what_comes_after(bidirectional):
    torch.manual_seed(0)
    network = LSTMPerPosition(8, bidirectional)
    sequences = torch.randint(10, (4, 6))
    changed = sequences.clone()
    changed[:, 4:] = (changed[:, 4:] + 1) % 10
    before, after = network(sequences, sequences), network(changed, changed)
    assert torch.equal(before[:, :4], after[:, :4]) is (not bidirectional)
    assert not torch.equal(before[:, 4:], after[:, 4:])


def test_what_is_written_alone_is_what_is_written_under_its_own_guidance():
    torch.manual_seed(0)
    network = LSTMEncodeDecode(16)
    torch.nn.init.normal_(network.output.weight, std=2.0)
    sequences = torch.randint(10, (8, 6))
    written = network.predict(sequences)
    assert torch.equal(network(sequences, written).argmax(dim=-1), written)
    assert len(written.unique()) > 1


def test_a_run_repeats_and_another_seed_differs():
    once, again, other = (reversal("BiLSTM", seed, 1e-2, steps=5, evaluations=[2, 5]) for seed in (0, 0, 1))
    assert once == again
    assert once != other
    assert once["curve"][-1] == once["accuracy"] == pytest.approx(sum(once["per_position"]) / 16, abs=1e-4)


def test_an_unknown_network_is_named():
    with pytest.raises(ValueError, match=r"one of attention, BiLSTM.*got 'GRU'"):
        reversal("GRU", 0, 1e-2)


def test_the_committed_results_bear_the_claim_out():
    results = recorded()
    assert json.loads(json.dumps(results)) == results
    measured = results["measured"]
    assert measured.keys() == {*NETWORKS, COPYING}
    for name, of_network in measured.items():
        assert of_network["parameters"] == parameters_of(name)
        for steps in (STEPS,) if name == "attention" else (STEPS, MANY_STEPS):
            runs = of_network[str(steps)]
            assert len(runs["accuracy"]) == len(SEEDS)
            assert runs["accuracy_by_rate"][f"{runs['rate']:g}"] == max(runs["accuracy_by_rate"].values())
            for curve, accuracy in zip(runs["curves"], runs["accuracy"], strict=True):
                assert curve[-1] == accuracy
    assert min(measured["attention"][str(STEPS)]["accuracy"]) > 0.99
    for name in set(NETWORKS) - {"attention"}:
        assert max(measured[name][str(STEPS)]["accuracy"]) < 0.9, name
    for steps in (STEPS, MANY_STEPS):  # no more than it can, but for the luck of guessing
        for run in measured["one-directional LSTM"][str(steps)]["per_position"]:
            assert max(run[:8]) < 0.13


def test_the_smallest_arm_is_measured_again():
    committed = recorded()["measured"]["BiLSTM"][str(STEPS)]
    again = reversal("BiLSTM", SEEDS[0], committed["rate"])
    assert again["accuracy"] == pytest.approx(committed["accuracy"][0], abs=0.05)  # rounding grows over 300 steps
