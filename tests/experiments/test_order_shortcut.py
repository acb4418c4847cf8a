"""Moving the odd one, and what a model that was told positions has learnt."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_utils.experiments.order_shortcut import (
    ARMS,
    FEW_STEPS,
    SEEDS,
    SET_SIZE,
    order_shortcut,
    recorded,
    with_odd_at,
)

LEARNS_THE_PLACE = "positions, odd one always last"


@given(places=st.lists(st.integers(0, 4), min_size=1, max_size=6))
def test_the_odd_one_changes_places_with_one_other(places):
    sets = torch.arange(5.0 * len(places)).reshape(len(places), 5, 1)
    moved = with_odd_at(sets, torch.tensor(places))
    for one, other, place in zip(sets, moved, places, strict=True):
        assert other[place] == one[-1]
        assert sorted(other.flatten().tolist()) == one.flatten().tolist()
        assert int((one != other).sum()) == (0 if place == 4 else 2)


def test_few_steps_teach_the_place_and_not_the_image():
    result = order_shortcut(LEARNS_THE_PLACE, seed=7, steps=FEW_STEPS)
    assert result["accuracy_last"] == result["accuracy_at"][-1] >= 0.99
    assert max(result["accuracy_at"][:-1]) < 0.05
    assert min(result["says_last_at"]) > 0.95


def test_an_unknown_arm_is_named():
    with pytest.raises(ValueError, match=r"one of positions, odd one always last.*got 'sorted'"):
        order_shortcut("sorted", 0)


def test_the_committed_results_bear_the_claim_out():
    measured = recorded()["measured"]
    assert measured.keys() == {*ARMS, "after few steps"}
    for runs in measured.values():
        assert len(runs["runs"]) == len(SEEDS)
        assert all(len(run["accuracy_at"]) == SET_SIZE for run in runs["runs"])
    for name in (LEARNS_THE_PLACE, "after few steps"):
        for run in measured[name]["runs"]:
            assert run["accuracy_last"] > 0.99
            assert sum(run["accuracy_at"]) / SET_SIZE == pytest.approx(1 / SET_SIZE, abs=0.02)  # as good as guessing
    for run in measured["no positions, odd one always last"]["runs"]:  # equivariant: the place makes no difference
        assert max(run["accuracy_at"]) - min(run["accuracy_at"]) < 0.003
        assert run["accuracy_last"] > 0.97
    for run in measured["positions, odd one anywhere"]["runs"]:
        assert min(run["accuracy_at"]) > 0.97
