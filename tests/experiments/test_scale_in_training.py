"""Whether the scale matters in training: a quick arm anew, and the committed ones."""

import math

import pytest
import torch

from course_utils.experiments.scale_in_training import (
    BATCH,
    DIGITS,
    LENGTH,
    PLAIN,
    RATES,
    SCALED,
    SEEDS,
    STEPS,
    TOGETHER,
    WIDTHS,
    OneHead,
    best_rate,
    recorded,
    train,
)


def test_the_two_arms_differ_by_the_scale_alone():
    torch.manual_seed(0)
    scaled, plain = OneHead(16, scaled=True), OneHead(16, scaled=False)
    plain.load_state_dict(scaled.state_dict())
    digits = torch.randint(DIGITS, (BATCH, LENGTH))
    assert scaled(digits).shape == (BATCH, LENGTH, DIGITS)
    with torch.no_grad():
        assert not torch.allclose(scaled(digits), plain(digits))
        plain.projections[0].weight /= 4  # the root of 16; the bias is zero
        torch.testing.assert_close(scaled(digits), plain(digits))


def test_training_begins_near_guessing_and_learns_what_it_is_to():
    losses = train(16, scaled=True, rate=1e-2, seed=11, steps=150)
    assert len(losses) == 150 // TOGETHER
    assert losses[0] == pytest.approx(math.log(DIGITS), abs=0.3)
    assert losses[-1] < 0.1


def test_training_repeats_and_leaves_the_readers_randomness_alone():
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    assert train(16, False, 1e-3, seed=3, steps=10) == train(16, False, 1e-3, seed=3, steps=10)
    assert train(16, False, 1e-3, seed=3, steps=10) != train(16, False, 1e-3, seed=4, steps=10)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads


def test_best_rate_is_that_of_the_median_seed():
    assert best_rate({"1": [[9, 0.1], [9, 0.2], [9, 5]], "2": [[0, 0.3], [0, 0.3], [0, 0.3]]}) == "1"


def test_committed_curves_say_what_the_notebook_says():
    measured = recorded()["measured"]
    best = {}
    for width in WIDTHS:
        for name in (SCALED, PLAIN):
            by_rate = measured[str(width)][name]
            assert list(by_rate) == [f"{rate:g}" for rate in RATES]
            assert {len(losses) for curves in by_rate.values() for losses in curves} == {STEPS // TOGETHER}
            assert {len(curves) for curves in by_rate.values()} == {len(SEEDS)}
            best[width, name] = [losses[-1] for losses in by_rate[best_rate(by_rate)]]
    assert max(best[16, SCALED]) < 0.01
    assert max(best[16, PLAIN]) < 0.01  # narrow: the optimizer makes up for the scale
    assert max(best[256, SCALED]) < 0.01
    assert sorted(best[256, PLAIN])[1] > 0.05  # wide: it does not, at any rate
