import numpy as np
import pytest

from course_utils import plotting

X = np.arange(4)


def grid(panels: dict, columns: int = 2):
    return plotting.curve_grid(X, panels, columns=columns, xlabel="step", ylabel="loss", reference=(2.0, "guessing"))


def test_each_run_is_a_line_of_its_arms_colour_in_every_panel():
    panels = {"slow": {"plain": [X, X + 1], "other": [X + 2]}, "fast": {"other": [X + 3, X + 4]}}
    slow, fast = grid(panels).axes
    assert [list(line.get_ydata()) for line in slow.lines[1:]] == [list(X), list(X + 1), list(X + 2)]
    assert [list(line.get_ydata()) for line in fast.lines[1:]] == [list(X + 3), list(X + 4)]
    assert slow.lines[3].get_color() == fast.lines[1].get_color() != slow.lines[1].get_color()
    assert slow.lines[3].get_linestyle() == fast.lines[1].get_linestyle() != slow.lines[1].get_linestyle()
    assert slow.get_ylim() == fast.get_ylim()
    assert [axes.get_title() for axes in (slow, fast)] == ["slow", "fast"]
    assert (slow.get_ylabel(), fast.get_ylabel()) == ("loss", "")


def test_the_legend_names_each_arm_once_and_the_reference_last():
    figure = grid({"slow": {"plain": [X]}, "fast": {"plain": [X], "other": [X]}})
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["plain", "other", "guessing"]


@pytest.mark.parametrize(("count", "columns"), [(3, 2), (0, 1), (2, 0)])
def test_panels_that_do_not_fill_their_rows_are_refused(count, columns):
    with pytest.raises(ValueError, match=f"{count} panels do not fill rows of {columns}"):
        grid({str(number): {"plain": [X]} for number in range(count)}, columns)


def test_more_arms_than_line_styles_are_refused():
    with pytest.raises(ValueError, match="a; b; c; d; e"):
        grid({"all": {arm: [X] for arm in "abcde"}}, columns=1)
