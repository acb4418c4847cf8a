"""Results that are kept beside their experiment."""

import pytest

from course_utils.experiments import committed


def test_what_is_measured_anew_is_read_again_with_how_it_came_about(tmp_path, capsys):
    path = tmp_path / "claim.json"
    committed.measure_anew(path, lambda: [{"loss": 0.5}], seeds=(1, 2), steps=7)
    kept = committed.read(path)
    assert kept["measured"] == [{"loss": 0.5}]
    made = kept["made"]
    assert (made["command"], made["seeds"], made["steps"], made["minutes"]) == (
        "python -m course_utils.experiments.claim",
        [1, 2],
        7,
        0.0,
    )
    assert capsys.readouterr().out == "claim.json\n"


@pytest.mark.parametrize(("number", "kept"), [(0.123456, 0.1235), (12345.6, 12350.0), (0.0, 0.0)])
def test_four_digits_are_kept(number, kept):
    assert committed.short(number) == kept
