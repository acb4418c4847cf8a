"""The comparison behind `pytest --nbval`: noise passes, and whatever else changes is found."""

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from course_utils.execution.bounds import Range, Tolerance
from course_utils.execution.comparison import differences, same_text

ROOT = Path(__file__).resolve().parents[2]
TOLERANCE = Tolerance(rtol=5e-5, atol=1e-6)
FIGURE = "application/vnd.course.figure+json"
RESULT = "application/vnd.course.result+json"


# Texts.


@pytest.mark.parametrize(
    ("text", "committed"),
    [
        ("accuracy 0.98765", "accuracy 0.98764"),
        ("tensor([ 0.5000, 1.2500])", "tensor([0.5000, 1.2500])"),
        ("tensor([-0.0000, 1.2500])", "tensor([ 0.0000, 1.2500])"),
        ("error 3e-7", "error 1.2e-08"),
        ("1.00000001", "1.0"),
        ("-2.0000001e-3 m", "-2e-3 m"),
        ("nan and inf", "nan and inf"),
        ("conv2d, torch 2.6.1", "conv2d, torch 2.6.1"),
    ],
)
def test_noise_passes(text, committed):
    assert same_text(text, committed, TOLERANCE)


@pytest.mark.parametrize(
    ("text", "committed"),
    [
        ("accuracy 0.9866", "accuracy 0.9865"),  # the fourth digit
        ("accuracy 0.9865", "precision 0.9865"),
        ("accuracy nan", "accuracy 0.9865"),
        ("accuracy 0.9865", "accuracy nan"),
        ("accuracy inf", "accuracy 0.9865"),
        ("accuracy -0.9865", "accuracy 0.9865"),
        ("1000000 steps", "1000001 steps"),  # whole numbers are counts
        ("200000.", "200001."),
        ("[1.0, 2.0]", "[1.0, 2.0, 3.0]"),
        ("[1.0, 2.0]", "[1.0 2.0]"),
        ("1.0\n2.0", "1.0 2.0"),
        ("conv2d", "conv3d"),
        ("torch 2.6.1", "torch 2.6.2"),
        ("", "1.0"),
        ("twowords", "two words"),
    ],
)
def test_change_is_found(text, committed):
    assert not same_text(text, committed, TOLERANCE)


def test_a_wider_tolerance_passes_more():
    assert not same_text("0.99", "1.00", Tolerance(rtol=1e-3))
    assert same_text("0.99", "1.00", Tolerance(rtol=2e-2))


# Outputs.


def shown(data: dict, **metadata) -> dict:
    return {"output_type": "display_data", "data": data, "metadata": metadata}


def compare(now: list, before: list, ranges: dict | None = None) -> list[str]:
    return differences(now, before, TOLERANCE, ranges or {})


def figure(**changes) -> dict:
    axes = {
        "title": "Loss",
        "xlabel": "step",
        "ylabel": "loss [nats]",
        "xlim": [0.0, 10.0],
        "lines": [{"shape": [10, 2], "min": 0.0, "max": 1000.0, "mean": 410.25, "ramps": [1e-9, 0.2]}],
    }
    return shown({FIGURE: {"title": "", "axes": [{**axes, **changes}]}, "image/png": "QUJD", "text/plain": "A curve."})


def result(value: float, name: str = "test_acc") -> dict:
    return shown({RESULT: {"name": name, "value": value}, "text/plain": f"{name} = {value:.6g}"})


def test_equal_outputs_have_no_difference():
    assert compare([figure(), result(0.5)], [figure(), result(0.5)]) == []


def test_missing_and_extra_outputs_are_found():
    assert compare([result(0.5)], [result(0.5), figure()]) == ["1 outputs instead of 2"]
    assert compare([result(0.5), figure()], [result(0.5)]) == ["2 outputs instead of 1"]
    stream = {"output_type": "stream", "name": "stdout", "text": "done\n"}
    assert compare([], [stream]) == ["stdout: '' instead of 'done\\n'"]
    warning = {"output_type": "stream", "name": "stderr", "text": "careful\n"}
    assert compare([stream, warning], [stream]) == ["stderr: 'careful\\n' instead of ''"]


def test_picture_bytes_are_ignored():
    other = figure()
    other["data"]["image/png"] = "WFla"
    assert compare([figure()], [other]) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ylabel": "loss [bits]"}, "output 1, figure.axes[0].ylabel: 'loss [nats]' instead of 'loss [bits]'"),
        ({"xlabel": "loss", "ylabel": "step"}, "output 1, figure.axes[0].xlabel: 'step' instead of 'loss'"),
        ({"ylabel": ""}, "output 1, figure.axes[0].ylabel: 'loss [nats]' instead of ''"),
        ({"xlim": [0.0, 20.0]}, "output 1, figure.axes[0].xlim[1]: 10.0 instead of 20.0"),
        ({"xlim": [0.0]}, "output 1, figure.axes[0].xlim has 2 entries instead of 1"),
        ({"lines": []}, "output 1, figure.axes[0].lines has 1 entries instead of 0"),
        ({"grid": True}, "output 1, figure.axes[0] has "),
    ],
)
def test_changed_figure_is_found(change, message):
    found = compare([figure()], [figure(**change)])
    assert found[0].startswith(message)


def test_arrays_are_compared_by_their_size():
    line = {"shape": [10, 2], "min": 0.0, "max": 1000.0, "mean": 410.25}
    before = figure(lines=[{**line, "ramps": [1e-9, 0.2]}])
    assert compare([figure(lines=[{**line, "ramps": [5e-4, 0.2]}])], [before]) == []  # rounding of 1000
    assert compare([figure(lines=[{**line, "ramps": [0.9, 0.2]}])], [before]) == [
        "output 1, figure.axes[0].lines[0].ramps[0]: 0.9 instead of 1e-09"
    ]
    assert compare([figure(lines=[{**line, "shape": [10, 3], "ramps": [1e-9, 0.2]}])], [before]) == [
        "output 1, figure.axes[0].lines[0].shape[1]: 3 instead of 2"
    ]


def test_alt_text_is_compared():
    data = {"text/plain": "A curve."}
    now, before = shown(data, **{"image/png": {"alt": "A line."}}), shown(data, **{"image/png": {"alt": "A curve."}})
    assert compare([now], [before]) == ["output 1, metadata.image/png.alt: 'A line.' instead of 'A curve.'"]


def test_html_is_compared_unless_the_description_of_a_figure_stands_beside_it():
    def piece(html: str, largest: float) -> dict:
        return shown({"text/html": html, FIGURE: {"axes": [], "piece": {"weights": {"max": largest, "mean": 0.25}}}})

    assert compare([piece("<b>0.500001</b>", 0.500001)], [piece("<b>other bytes</b>", 0.5)]) == []
    assert compare([piece("<b>same</b>", 0.51)], [piece("<b>same</b>", 0.5)]) == [
        "output 1, figure.piece.weights.max: 0.51 instead of 0.5"
    ]
    assert compare([shown({"text/html": "<b>one</b>"})], [shown({"text/html": "<b>two</b>"})]) == [
        "output 1, text/html: '<b>one</b>' instead of '<b>two</b>'"
    ]


def test_result_without_a_range_is_compared():
    assert compare([result(0.50001)], [result(0.5)]) == []
    assert compare([result(0.501)], [result(0.5)]) == [
        "output 1, result.value: 0.501 instead of 0.5",
        "output 1, text/plain: 'test_acc = 0.501' instead of 'test_acc = 0.5'",
    ]


def test_result_with_a_range_is_held_to_it():
    ranges = {"test_acc": Range(0.9, 1.0)}
    assert compare([result(0.95)], [result(0.99)], ranges) == []
    assert compare([result(0.85)], [result(0.99)], ranges) == ["test_acc = 0.85 is outside its range, 0.9 to 1"]
    assert compare([result(0.95, "val_acc")], [result(0.99)], ranges) != []


def test_type_of_output_is_compared():
    now = {"output_type": "execute_result", "data": {"text/plain": "1"}, "metadata": {}, "execution_count": 3}
    assert compare([now], [shown({"text/plain": "1"})]) == [
        "output 1 is of type execute_result instead of display_data"
    ]
    html = shown({"text/plain": "1", "text/html": "<b>1</b>"})
    assert compare([html], [shown({"text/plain": "1"})]) == [
        "output 1 is given as ['text/html', 'text/plain'] instead of ['text/plain']"
    ]


# nbval itself, on notebooks of one cell: its code, its committed output, and whether it is to pass.

CASES = {
    "same": ("print('loss', 0.25)", "loss 0.25\n", True),
    "noise": ("print('loss', 0.1 + 0.2)", "loss 0.3\n", True),
    "number": ("print('loss', 0.2501)", "loss 0.2502\n", False),
    "word": ("print('cost', 0.25)", "loss 0.25\n", False),
    "nan": ("print('loss', float('nan'))", "loss 0.25\n", False),
    "missing": ("pass", "loss 0.25\n", False),
    "extra": ("print('loss', 0.25)", "", False),
    "stderr": ("import sys\nprint('careful', file=sys.stderr)\nprint('loss')", "loss\n", False),
    "error": ("1 / 0", "", False),
    "tolerant": ("print('loss', 0.25)", "loss 0.251\n", True),  # expected.toml allows this notebook more
    "ignored": ("# NBVAL_IGNORE_OUTPUT\nprint('loss', 0.25)", "another machine\n", True),
}
RECORD = "from course_utils.results import record\nrecord('test_acc', 0.95)"
EXPECTED = """
[nbval]
rtol = 5e-5
[nbval.trained]
rtol = 5e-2
[nbval.tolerant]
rtol = 1e-2
[result_within.quick]
test_acc = [0.9, 1.0]
[result_outside.quick]
test_acc = [0.96, 1.0]
[result_of_profile.full]
test_acc = [0.9, 1.0]
"""


def write_notebook(path: Path, code: str, outputs: list, tags: tuple = ()) -> None:
    metadata = {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}}
    cell = new_code_cell(code, execution_count=1, outputs=outputs, metadata={"tags": list(tags)})
    nbformat.write(new_notebook(cells=[cell], metadata=metadata), path)


def run_nbval(folder: Path, *arguments: str, attempts: int = 3) -> dict[str, bool]:
    """Run pytest --nbval; whether each notebook passed.

    A kernel whose port another program takes while it starts is an <error>, which says nothing about the comparison:
    all are run again.
    """
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "--nbval", f"--junitxml={report}", "-q", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    run = subprocess.run(command, env=environment, cwd=folder.parent, capture_output=True, text=True, timeout=300)
    assert run.returncode in (0, 1), run.stdout + run.stderr
    cases = list(ElementTree.parse(report).iter("testcase"))
    if any(case.find("error") is not None for case in cases):
        assert attempts > 1, run.stdout + run.stderr
        return run_nbval(folder, *arguments, attempts=attempts - 1)
    return {_stem(case.get("classname")): case.find("failure") is None for case in cases}


def _stem(classname: str) -> str:
    """Of a notebook, from its dotted path."""
    return classname.removesuffix(".ipynb").rsplit(".", 1)[-1]


@pytest.fixture(scope="module", params=["one process", pytest.param("xdist", marks=pytest.mark.slow)])
def passed(request, tmp_path_factory) -> dict[str, bool]:
    folder = tmp_path_factory.mktemp("nbval") / "notebooks"
    folder.mkdir()
    shutil.copy(ROOT / "conftest.py", folder)
    (folder / "expected.toml").write_text(EXPECTED)
    for name, (code, text, _) in CASES.items():
        write_notebook(folder / f"{name}.ipynb", code, [new_output("stream", name="stdout", text=text)] if text else [])
    for name in ("result_within", "result_outside", "result_of_profile"):
        write_notebook(folder / f"{name}.ipynb", RECORD, [new_output("display_data", result(0.99)["data"])])
    outputs = [new_output("stream", name="stdout", text="loss 0.26\n")]
    for name, tags in {"trained": ("trained",), "untagged": ()}.items():
        write_notebook(folder / f"{name}.ipynb", "print('loss', 0.25)", outputs, tags)
    workers = ["-n", "4", "--dist", "loadfile"] if request.param == "xdist" else []
    return run_nbval(folder, *workers, str(folder))


def test_nbval_passes_noise_and_finds_changes(passed):
    assert {name: passed[name] for name in CASES} == {name: case[2] for name, case in CASES.items()}


def test_nbval_holds_results_to_their_ranges(passed):
    assert passed["result_within"]
    assert not passed["result_outside"]
    assert not passed["result_of_profile"]  # no range under "quick": 0.95 is not the committed 0.99


def test_nbval_allows_more_where_a_model_was_trained(passed):
    assert passed["trained"]
    assert not passed["untagged"]
