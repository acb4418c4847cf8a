"""The notebooks as they are committed: in step with their sources, executed in order, and free of anybody's machine.

Each rule is a function that returns what breaks it, and is itself tested on a notebook that does.
"""

import ast
import io
import json
import re
import shutil
import tokenize
from collections.abc import Iterator
from pathlib import Path

import jupytext
import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_utils import diagrams
from course_utils.execution.source import KERNELSPEC, code_cells, place_of_cell
from course_utils.execution.sync import check

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
SOURCES = sorted(NOTEBOOKS.glob("[0-9]*.py"))
FIGURE = "application/vnd.course.figure+json"
SVG = "image/svg+xml"
DIAGRAMS = {draw().svg() for draw in diagrams.DIAGRAMS.values()}  # the same at each run
HEAD = """\
# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,jupyter,-all
#     notebook_metadata_filter: kernelspec,-jupytext.text_representation.jupytext_version
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---
"""
LARGEST_IMAGE = 300_000  # bytes

MACHINE_TEXT = {
    "a path": re.compile(r"(?<![\w.])/(?:work|root|home|Users|tmp|usr|opt|mnt|content|private|var)/|\b[A-Z]:\\"),
    "an address in memory": re.compile(r"\b0x[0-9a-fA-F]{6,}"),
    "a time": re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d"),
    "a device": re.compile(r"\bcuda\b|\bmps\b|\bNVIDIA\b|device\W+(?:type=)?\W*cpu\b", re.IGNORECASE),
    "a progress bar": re.compile(r"\d+%\||\dit/s|\ds/it"),
    "a warning": re.compile(r"\b\w*Warning:"),
}


# Rules.


def breaks_order(notebook: NotebookNode) -> list[str]:
    counts = [cell.execution_count for cell in code_cells(notebook)]
    return [] if counts == list(range(1, len(counts) + 1)) else [f"execution counts are {counts}"]


def breaks_success(notebook: NotebookNode) -> list[str]:
    found = []
    for place, output in outputs(notebook):
        if output.output_type == "error":
            found.append(f"{place} ends in {output.ename}")
        elif output.get("name") == "stderr":
            found.append(f"{place} writes to stderr: {output.text}")
    return found


def breaks_kernel(notebook: NotebookNode) -> list[str]:
    found = []
    if notebook.metadata.get("kernelspec") != KERNELSPEC:
        found.append(f"the kernel is {notebook.metadata.get('kernelspec')}")
    if notebook.metadata.get("language_info") != {"name": "python"}:
        found.append(f"the language is {notebook.metadata.get('language_info')}")
    return found


def breaks_plainness(notebook: NotebookNode) -> list[str]:
    """Widgets need their state, which is a machine's own; matplotlib's scalable figures differ between runs."""
    found = ["the metadata hold the state of widgets"] if "widgets" in notebook.metadata else []
    for place, output in outputs(notebook):
        for mime, data in output.get("data", {}).items():
            if "widget" in mime or (mime == SVG and data not in DIAGRAMS):
                found.append(f"{place} is {mime}")
    return found


def breaks_privacy(notebook: NotebookNode) -> list[str]:
    found = []
    for place, output in outputs(notebook):
        shown = {mime: data for mime, data in output.get("data", {}).items() if not mime.startswith("image/")}
        text = "\n".join(strings([output.get("text", ""), shown, output.get("metadata", {})]))
        for kind, pattern in MACHINE_TEXT.items():
            if match := pattern.search(text):
                line = next(line for line in text.splitlines() if match.group() in line)
                found.append(f"{place} shows {kind}: {line}")
    return found


def breaks_figures(notebook: NotebookNode) -> list[str]:
    found = []
    for place, output in outputs(notebook):
        for mime, data in output.get("data", {}).items():
            if not mime.startswith("image/"):
                continue
            if not output.metadata.get(mime, {}).get("alt", "").strip():
                found.append(f"{place}: the image has no alt text")
            if FIGURE not in output.data and mime != SVG:  # a diagram is compared as it is, letter by letter
                found.append(f"{place}: the image has no description that a test can compare")
            if len(data) * 3 / 4 > LARGEST_IMAGE:
                found.append(f"{place}: the image takes {len(data) * 3 // 4:,} bytes")
    return found


def breaks_labels(notebook: NotebookNode) -> list[str]:
    """Curves and bars say what they measure on y; one x axis may serve several panels, and those with titles one y."""
    found = []
    for place, output in outputs(notebook):
        figure = output.get("data", {}).get(FIGURE, {"axes": []})
        drawn = [axes for axes in figure["axes"] if "lines" in axes or "bars" in axes]
        shared = len(drawn) > 1 and all(axes.get("title") for axes in drawn)
        if drawn and not (any if shared else all)(axes.get("ylabel") for axes in drawn):
            found.append(f"{place}: the figure has an axis y without a label")
        if any("lines" in axes for axes in drawn) and not any(axes.get("xlabel") for axes in drawn):
            found.append(f"{place}: the figure has no label on x")
    return found


def breaks_parameters(notebook: NotebookNode) -> list[str]:
    tagged = ["parameters" in cell.metadata.get("tags", []) for cell in code_cells(notebook)]
    if tagged != [True] + [False] * (len(tagged) - 1):
        return [f"the tag `parameters` is on the code cells {[i + 1 for i, tag in enumerate(tagged) if tag]}, not on 1"]
    code = code_cells(notebook)[0].source
    commented = {t.start[0] for t in tokenize.generate_tokens(io.StringIO(code).readline) if t.type == tokenize.COMMENT}
    found = []
    for statement in ast.parse(code).body:
        line = ast.unparse(statement)
        if isinstance(statement, ast.ImportFrom) and statement.module == "typing":
            continue  # Optional, for papermill reads no other way of writing it
        if not isinstance(statement, ast.AnnAssign) or statement.value is None:
            found.append(f"no typed assignment: {line}")
        elif "|" in ast.unparse(statement.annotation) or "Literal" in ast.unparse(statement.annotation):
            found.append(f"papermill cannot read the type of: {line}")
        elif not is_plain(statement.value):
            found.append(f"derived, so it would stay as it is when its origin is set: {line}")
        elif statement.end_lineno not in commented:
            found.append(f"no comment: {line}")
    return found


def outputs(notebook: NotebookNode) -> Iterator[tuple[str, NotebookNode]]:
    """Each output, with the place of its cell in words."""
    for index, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", []):
            yield place_of_cell(notebook.cells, index), output


def cells_of(source: str) -> list[str]:
    """The lines of a source after its head, but for blank ones between cells: jupytext puts two after a function."""
    return re.sub(r"\n+# %%", "\n# %%", source.split("# ---\n", 2)[-1]).splitlines()


def strings(value: object) -> Iterator[str]:
    """Each text in plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)


def is_plain(value: ast.expr) -> bool:
    try:
        ast.literal_eval(value)
    except ValueError:
        return False
    return True


RULES = [
    breaks_order,
    breaks_success,
    breaks_kernel,
    breaks_plainness,
    breaks_privacy,
    breaks_figures,
    breaks_labels,
    breaks_parameters,
]


# The notebooks of the course.


def test_each_notebook_has_a_source_and_each_source_a_notebook():
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == {path.stem for path in NOTEBOOKS.glob("*.py")}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_notebook_is_in_step_with_its_source(source):
    problem = check(source)
    assert not problem, problem


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_source_begins_with_the_head_that_jupytext_writes(source):
    """Else the first to save the notebook in Jupyter would change the head of the source."""
    assert source.read_text(encoding="utf-8").startswith(HEAD), f"the head of {source.name} must be\n{HEAD}"


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_notebook_leads_back_to_its_source(source):
    """So that jupytext, where it is used in Jupyter, changes the source only where the notebook was changed."""
    notebook = jupytext.read(source.with_suffix(".ipynb"))
    back = jupytext.writes(notebook, fmt="py:percent")
    assert cells_of(back) == cells_of(source.read_text(encoding="utf-8"))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_notebook_keeps_the_rules(source, rule):
    assert rule(nbformat.read(source.with_suffix(".ipynb"), as_version=4)) == []


# The rules themselves.


def good() -> NotebookNode:
    """A notebook that keeps every rule."""
    figure = new_output(
        "display_data",
        {
            "image/png": "QUJD",
            "text/plain": "A curve.",
            FIGURE: {"axes": [{"xlabel": "step", "ylabel": "loss", "lines": []}]},
        },
        metadata={"image/png": {"alt": "A curve."}},
    )
    parameters = "from typing import Optional\n\nn: int = 3  # a number\nepochs: Optional[int] = None  # of training"
    cells = [
        new_markdown_cell("# Small"),
        new_code_cell(parameters, execution_count=1, metadata={"tags": ["parameters"]}),
        new_code_cell("print(n)", execution_count=2, outputs=[new_output("stream", name="stdout", text="3\n")]),
        new_code_cell("draw()", execution_count=3, outputs=[figure]),
    ]
    return new_notebook(cells=cells, metadata={"kernelspec": dict(KERNELSPEC), "language_info": {"name": "python"}})


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_good_notebook_keeps_the_rules(rule):
    assert rule(good()) == []


def test_execution_out_of_order_is_found():
    notebook = good()
    notebook.cells[2].execution_count = 7
    assert breaks_order(notebook) == ["execution counts are [1, 7, 3]"]
    notebook.cells[2].execution_count = None
    assert breaks_order(notebook) == ["execution counts are [1, None, 3]"]


def test_errors_and_stderr_are_found():
    notebook = good()
    notebook.cells[2].outputs = [
        new_output("error", ename="ValueError", evalue="no", traceback=[]),
        new_output("stream", name="stderr", text="careful"),
    ]
    assert breaks_success(notebook) == [
        "cell 3 (Small) ends in ValueError",
        "cell 3 (Small) writes to stderr: careful",
    ]


def test_foreign_kernel_and_version_are_found():
    notebook = good()
    notebook.metadata.kernelspec["name"] = "alices-env"
    notebook.metadata.language_info["version"] = "3.11.7"
    assert len(breaks_kernel(notebook)) == 2
    assert "alices-env" in breaks_kernel(notebook)[0]


def test_widgets_and_scalable_figures_are_found():
    notebook = good()
    notebook.metadata.widgets = {}
    mime = "application/vnd.jupyter.widget-view+json"
    notebook.cells[2].outputs = [
        new_output("display_data", {mime: {}}),
        new_output("display_data", {"image/svg+xml": ""}),
    ]
    assert breaks_plainness(notebook) == [
        "the metadata hold the state of widgets",
        f"cell 3 (Small) is {mime}",
        "cell 3 (Small) is image/svg+xml",
    ]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("saved in /root/course/runs", "a path"),
        ("saved in /home/alice/course", "a path"),
        ("/Users/alice/course", "a path"),
        (r"C:\Users\alice", "a path"),
        ("<Figure at 0x7f3a2c0b1d90>", "an address in memory"),
        ("2026-11-30T14:05:11", "a time"),
        ("device: cuda:0", "a device"),
        ("device(type='cpu')", "a device"),
        ("Device: mps", "a device"),
        ("device = cpu", "a device"),
        (" 45%|####      | 9/20", "a progress bar"),
        ("[00:01<00:00, 12.3it/s]", "a progress bar"),
        ("UserWarning: careful", "a warning"),
    ],
)
def test_machine_dependent_text_is_found(text, kind):
    notebook = good()
    notebook.cells[2].outputs[0].text = f"first line\n{text}\n"
    assert breaks_privacy(notebook) == [f"cell 3 (Small) shows {kind}: {text}"]
    notebook.cells[2].outputs = [new_output("execute_result", {"application/x+json": {"a": [text]}}, execution_count=2)]
    assert breaks_privacy(notebook) == [f"cell 3 (Small) shows {kind}: {text}"]


@pytest.mark.parametrize(
    "text", ["n / 2 and and/or", "a 3x4 matrix", "the CPU draws", "3-4 epochs", "saved_models/a.ckpt"]
)
def test_ordinary_text_is_left_alone(text):
    notebook = good()
    notebook.cells[2].outputs[0].text = text
    assert breaks_privacy(notebook) == []


def test_figures_without_words_or_too_large_are_found():
    notebook = good()
    figure = notebook.cells[3].outputs[0]
    figure.metadata["image/png"]["alt"] = " "
    del figure.data[FIGURE]
    figure.data["image/png"] = "A" * 400_004
    assert breaks_figures(notebook) == [
        "cell 4 (Small): the image has no alt text",
        "cell 4 (Small): the image has no description that a test can compare",
        "cell 4 (Small): the image takes 300,003 bytes",
    ]


def test_figures_that_lost_a_label_are_found():
    notebook = good()
    axes = notebook.cells[3].outputs[0].data[FIGURE]["axes"][0]
    del axes["xlabel"]
    assert breaks_labels(notebook) == ["cell 4 (Small): the figure has no label on x"]
    del axes["ylabel"]
    assert breaks_labels(notebook) == [
        "cell 4 (Small): the figure has an axis y without a label",
        "cell 4 (Small): the figure has no label on x",
    ]


def test_tag_of_the_parameters_must_be_on_the_first_code_cell():
    notebook = good()
    notebook.cells[1].metadata = {}
    assert breaks_parameters(notebook) == ["the tag `parameters` is on the code cells [], not on 1"]
    notebook.cells[2].metadata["tags"] = ["parameters"]
    assert breaks_parameters(notebook) == ["the tag `parameters` is on the code cells [2], not on 1"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            "m: int = n * 10  # ten times n",
            "derived, so it would stay as it is when its origin is set: m: int = n * 10",
        ),
        ("m = 3  # a number", "no typed assignment: m = 3"),
        ("m: int  # a number", "no typed assignment: m: int"),
        ("m: int = 3", "no comment: m: int = 3"),
        ("m: int | None = None  # a number", "papermill cannot read the type of: m: int | None = None"),
        ("import torch", "no typed assignment: import torch"),
    ],
)
def test_parameters_must_be_plain_typed_and_commented(line, problem):
    notebook = good()
    notebook.cells[1].source += f"\n{line}"
    assert breaks_parameters(notebook) == [problem]


# Sabotage of a committed notebook: what somebody does to a copy, and what the check then says.


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the first notebook and its source."""
    for suffix in (".py", ".ipynb"):
        shutil.copy(SOURCES[0].with_suffix(suffix), tmp_path)
    assert check(tmp_path / SOURCES[0].name) == ""
    return tmp_path / SOURCES[0].with_suffix(".ipynb").name


def edit(path: Path, change) -> str:
    """Change the notebook's cells, and check it."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    change(notebook)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
    return check(path.with_suffix(".py"))


def cells_showing(notebook: dict, mime: str) -> list[dict]:
    return [
        output for cell in notebook["cells"] for output in cell.get("outputs", []) if mime in output.get("data", {})
    ]


def test_edited_cell_is_caught(copy):
    def change(notebook):
        code = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
        code["source"] = ["seed: int = 7  # mine"]

    assert re.fullmatch(r"\S+\.ipynb: cell \d+ \(.*\) differs from the source; run `make sync`", edit(copy, change))


def test_swapped_label_is_caught(copy):
    def change(notebook):
        axes = cells_showing(notebook, FIGURE)[0]["data"][FIGURE]["axes"][0]
        axes["xlabel"], axes["ylabel"] = axes.get("ylabel", "left"), axes.get("xlabel", "right")

    assert re.search(r"the output of cell \d+ \(.*\) is not the one that was made", edit(copy, change))


def test_number_changed_in_the_fourth_digit_is_caught(copy):
    def change(notebook):
        result = cells_showing(notebook, "application/vnd.course.result+json")[0]
        result["data"]["application/vnd.course.result+json"]["value"] *= 1.0005

    assert re.search(r"the output of cell \d+ \(.*\) is not the one that was made", edit(copy, change))


def test_removed_outputs_are_caught(copy):
    def change(notebook):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell["outputs"] = []

    assert re.search(r"the output of cell \d+ \(.*\) is not the one that was made", edit(copy, change))


def test_stripped_tag_is_caught(copy):
    def change(notebook):
        for cell in notebook["cells"]:
            cell["metadata"].pop("tags", None)

    assert re.search(r"cell \d+ \(.*\) has other tags", edit(copy, change))


def test_kernel_named_after_a_person_is_caught(copy):
    def change(notebook):
        notebook["metadata"]["kernelspec"]["name"] = "alices-env"

    assert "its metadata 'kernelspec' differ from what the source gives" in edit(copy, change)


def test_edited_source_is_caught(copy):
    source = copy.with_suffix(".py")
    source.write_text(source.read_text(encoding="utf-8").replace("# # ", "# # About ", 1), encoding="utf-8")
    assert re.search(r"cell 1 \(.*\) differs from the source; run `make sync`", check(source))
