"""The warm-up schedule in JavaScript and in the plain figure is the course's scheduler."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from piece_pages import run_javascript

from course_utils.figure_description import MIME_TYPE
from course_utils.interactive import warmup_schedule
from course_utils.interactive.schedule import factors
from course_utils.schedule import CosineWarmupScheduler

SETTINGS = [(0, 100), (10, 100), (1, 1), (50, 2000), (300, 200), (100, 100), (7, 13)]


def scheduler(warmup: int, max_iters: int) -> CosineWarmupScheduler:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    return CosineWarmupScheduler(optimizer, warmup, max_iters)


def expected(warmup: int, max_iters: int, steps: range) -> list[float]:
    schedule = scheduler(warmup, max_iters)
    return [schedule.get_lr_factor(step) for step in steps]


def test_javascript_computes_the_schedulers_factor():
    steps = range(0, 2200, 3)
    computed = run_javascript(
        ["schedule_factor.js"],
        "settings.map(([warmup, horizon]) => steps.map((step) => scheduleFactor(step, warmup, horizon)))",
        settings=SETTINGS,
        steps=list(steps),
    )
    np.testing.assert_allclose(computed, [expected(*setting, steps) for setting in SETTINGS], atol=1e-12)


def test_javascript_finds_the_largest_factor():
    peaks = run_javascript(
        ["schedule_factor.js"], "settings.map(([warmup, horizon]) => schedulePeak(warmup, horizon))", settings=SETTINGS
    )
    for (warmup, horizon), peak in zip(SETTINGS, peaks, strict=True):
        curve = expected(warmup, horizon, range(horizon + 1))
        assert peak["factor"] == pytest.approx(max(curve), abs=1e-12)
        assert curve[peak["step"]] == pytest.approx(max(curve), abs=1e-12)


@given(st.integers(0, 400), st.integers(1, 400))
def test_the_plain_figure_shows_the_schedulers_factor(warmup, max_iters):
    steps = range(450)
    np.testing.assert_allclose(
        factors(np.array(steps), warmup, max_iters), expected(warmup, max_iters, steps), atol=1e-12
    )


def test_curves_are_described_and_the_piece_is_small():
    piece = warmup_schedule(warmup=50, max_iters=300, lr=5e-3, longest=400)
    described = piece.bundle()[MIME_TYPE]["piece"]
    assert described["kind"] == "warmupSchedule"
    assert described["without"]["max"] == 5e-3
    assert described["with warm-up"]["max"] == pytest.approx(5e-3 * max(expected(50, 300, range(300))), rel=1e-5)
    assert len(piece.html.encode()) <= 50_000


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"warmup": -1}, "warmup=-1"),
        ({"warmup": 3000}, "from 0 to longest=2000"),
        ({"max_iters": 0}, "max_iters=0"),
        ({"lr": 1.0}, "lr must be from 1e-05 to 0.1, got 1.0"),
    ],
)
def test_a_number_outside_of_its_slider_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        warmup_schedule(**settings)
