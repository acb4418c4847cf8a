import pytest

from course_utils.efficient_attention import linear_attention
from course_utils.experiments.cache_speed import cache_speed
from course_utils.experiments.efficient_accuracy import (
    KINDS,
    SEEDS,
    TASKS,
    accuracy_of,
    recorded,
    window_ceiling,
)
from course_utils.experiments.efficient_cost import ATTENTION, efficient_cost
from course_utils.experiments.power_law import exponent


def test_memory_grows_with_the_square_of_the_length_for_full_attention_only():
    lengths = [256, 512, 1024]
    cost = efficient_cost(lengths, repeats=1)
    assert cost.keys() == ATTENTION.keys()
    assert all(min(each["seconds"]) > 0 for each in cost.values())
    growth = {name: exponent(lengths, each["bytes"]) for name, each in cost.items()}
    assert growth["full"] == pytest.approx(2, abs=0.1)
    assert growth["linear"] == pytest.approx(1, abs=0.1)
    assert growth["window"] == pytest.approx(1, abs=0.1)
    assert cost["full"]["bytes"][-1] > 8 * 1024**2  # two maps of 1024 x 1024 float32
    assert linear_attention is ATTENTION["linear"]


def test_the_cache_holds_keys_and_values_and_changes_no_logit():
    results = cache_speed([4, 9], width=16, layers=3, repeats=1)
    assert results["bytes"] == [2 * 3 * length * 16 * 4 for length in (4, 9)]  # two, layers, T, D, bytes of a float32
    assert max(results["difference"]) < 1e-5
    assert min(results["with"] + results["without"]) > 0


def test_the_ceiling_of_the_window_counts_the_answers_within_reach():
    # Reversing 16 digits: only places 7 and 8 have their answer at most 2 away. Before: all but the first place have.
    assert window_ceiling("reverse") == pytest.approx(2 / 16 + 14 / 16 * 0.1)
    assert window_ceiling("digit before") == pytest.approx(15 / 16 + 1 / 16 * 0.1)


def test_kinds_and_tasks_that_are_not_there_are_refused():
    for kind, task in [("sparse", "reverse"), ("full", "sort")]:
        with pytest.raises(ValueError, match=f"got '{kind}' and '{task}'"):
            accuracy_of(kind, task, seed=0)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_trains(kind):
    assert 0 <= accuracy_of(kind, "reverse", seed=0, steps=2) < 0.3


def test_the_committed_result_holds_each_task_kind_and_seed():
    measured = recorded()["measured"]
    assert {task: {kind: len(runs) for kind, runs in kinds.items()} for task, kinds in measured.items()} == {
        task: dict.fromkeys(KINDS, len(SEEDS)) for task in TASKS
    }
    assert min(measured["reverse"]["full"]) > 0.99
    assert max(measured["reverse"]["window"]) < window_ceiling("reverse") + 0.02
