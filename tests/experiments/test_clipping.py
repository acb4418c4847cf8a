import pytest

from course_utils.experiments.clipping import CLIPS, EVERY, SEEDS, SETTINGS, STEPS, one_run, recorded
from course_utils.experiments.shift_task import GUESSING

CELLS = {(cell["setting"], cell["clip"]): cell["runs"] for cell in recorded()["measured"]}


def final_losses(setting: str, clip: float | None) -> list[float]:
    return [run["final_loss"] for run in CELLS[setting, clip]]


def test_every_setting_was_measured_with_every_clip_and_seed():
    assert set(CELLS) == {(setting, clip) for setting in SETTINGS for clip in CLIPS}
    for (_, clip), runs in CELLS.items():
        assert len(runs) == len(SEEDS) >= 3
        for run in runs:
            assert len(run["losses"]) == len(run["gradient_norms"]) == STEPS // EVERY
            assert 0 <= run["clipped"] <= 1
            assert (run["clipped"] > 0) == (clip is not None and max(run["gradient_norms"]) > clip)


def test_clipping_does_not_save_adam():
    for clip in CLIPS:
        assert min(final_losses("Adam, 6 layers", clip)) > 0.9 * GUESSING
        assert max(final_losses("Adam, 6 layers, warm-up", clip)) < 0.1


def test_clipping_saves_sgd_at_a_high_rate_and_slows_it_at_a_moderate_one():
    assert min(final_losses("SGD, 1 layer, rate 1", None)) > 0.95 * GUESSING
    assert max(final_losses("SGD, 1 layer, rate 1", 0.1)) < 0.1
    assert max(final_losses("SGD, 1 layer, rate 0.1", None)) < 0.1
    assert min(final_losses("SGD, 1 layer, rate 0.1", 0.1)) > 1


def test_a_run_made_anew_comes_out_like_the_recorded_one():
    (recorded_run, *_), anew = CELLS["SGD, 1 layer, rate 1", 0.1], one_run("SGD, 1 layer, rate 1", 0.1, seed=0)
    assert anew["losses"][:3] == pytest.approx(recorded_run["losses"][:3], rel=0.05)
    assert max(anew["final_loss"], recorded_run["final_loss"]) < 0.1


def test_an_unknown_setting_is_named():
    with pytest.raises(ValueError, match="SGD, 1 layer, rate 1; got 'SGD'"):
        one_run("SGD", None, 0)
