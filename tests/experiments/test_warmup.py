import math

import pytest

from course_utils.experiments.shift_task import GUESSING
from course_utils.experiments.warmup import ARMS, DEPTHS, EVERY, LEARNT, RATES, SEEDS, STEPS, counted, one_run, recorded

CELLS = {(cell["arm"], cell["depth"], cell["rate"]): cell["runs"] for cell in recorded()["measured"]}


def test_every_arm_was_measured_at_every_depth_and_rate_with_every_seed():
    assert set(CELLS) == {(arm, depth, rate) for arm in ARMS for depth in DEPTHS for rate in RATES}
    for runs in CELLS.values():
        assert len(runs) == len(SEEDS) >= 3
        for run in runs:
            assert len(run["losses"]) == STEPS // EVERY
            assert all(math.isfinite(loss) for loss in run["losses"])
            assert run["losses"][0] == pytest.approx(GUESSING, abs=0.6)
            assert run["final_loss"] == pytest.approx(sum(run["losses"][-2:]) / 2, rel=1e-2, abs=1e-6)


def test_the_file_says_how_it_came_about():
    made = recorded()["made"]
    assert made["command"] == "python -m course_utils.experiments.warmup"
    assert made["seeds"] == list(SEEDS)
    assert {"torch", "hardware", "steps", "warmup", "width", "batch"} <= made.keys()


def test_warm_up_decides_for_six_layers_at_the_highest_rate_and_not_for_one():
    assert counted(CELLS["post-norm", 6, 0.01])["stuck"] == 1
    assert counted(CELLS["post-norm, warm-up", 6, 0.01])["learnt"] == 1
    for rate in (0.003, 0.01):
        for arm in ("post-norm", "post-norm, warm-up"):
            assert counted(CELLS[arm, 1, rate])["learnt"] == 1


def test_a_run_that_learnt_tells_tokens_apart_and_a_stuck_one_does_not():
    for run in CELLS["post-norm", 6, 0.01]:
        assert run["similarity"] > 0.99
        assert run["accuracy"] < 0.2
    for run in CELLS["post-norm, warm-up", 6, 0.01]:
        assert run["similarity"] < 0.5
        assert run["accuracy"] > 0.99


def test_a_run_made_anew_comes_out_like_the_recorded_one():
    (recorded_run, *_), anew = CELLS["post-norm", 1, 0.01], one_run("post-norm", 1, 0.01, seed=0)
    assert anew.keys() == recorded_run.keys()
    assert anew["losses"][:3] == pytest.approx(recorded_run["losses"][:3], rel=0.02)
    assert max(anew["final_loss"], recorded_run["final_loss"]) < 0.05


@pytest.mark.slow
def test_six_layers_are_stuck_without_warm_up_and_learn_with_it():
    assert one_run("post-norm", 6, 0.01, seed=7)["final_loss"] > 0.95 * GUESSING
    assert one_run("post-norm, warm-up", 6, 0.01, seed=7)["final_loss"] < 0.1


def test_runs_are_counted():
    runs = [{"final_loss": loss} for loss in (0.25, LEARNT - 0.01, 1.5, GUESSING)]
    assert counted(runs) == {
        "learnt": 0.5,
        "stuck": 0.25,
        "mean": pytest.approx((0.25 + LEARNT - 0.01 + 1.5 + GUESSING) / 4),
        "lowest": 0.25,
        "highest": GUESSING,
    }


def test_an_unknown_arm_is_named():
    with pytest.raises(ValueError, match="post-norm, RAdam; got 'postnorm'"):
        one_run("postnorm", 1, 0.01, 0)
