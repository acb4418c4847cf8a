"""What is checked before a kernel starts, and what a plan makes of settings and sweeps."""

import re
from pathlib import Path

import nbformat
import pytest
from small_notebooks import course, write

from course_utils.execution.parameters import declared_parameters, derived_parameters
from course_utils.execution.plan import PlanError, plan
from course_utils.execution.settings import (
    Setting,
    SettingError,
    Sweep,
    settings_of_file,
    typed_setting,
    typed_sweep,
)
from course_utils.execution.values import Text, ValueMisfitError, fitted

DECLARATIONS = """\
from typing import Literal, Optional

profile: str = "quick"  # one of: quick, full; full is the published recipe
max_epochs: Optional[int] = None  # None: as the profile says
rate: float = 1e-3  # of learning
depth: int | None = None
mode: Literal["a", "b"] = "a"
sizes: list[int] = [5, 10]
pairs: "dict[str, float]" = {}
shape: tuple[int, ...] = (1,)
flag: bool = False
bare = 3
path = open  # no plain value
"""


def declared(tmp_path: Path) -> dict:
    notebook = nbformat.read(write(tmp_path / "a.ipynb", parameters=DECLARATIONS), as_version=4)
    return declared_parameters(notebook)


def message(notebooks: list[Path], settings=(), sweeps=()) -> str:
    with pytest.raises(PlanError) as raised:
        plan(notebooks, settings, sweeps)
    return str(raised.value)


def test_parameters_are_declared_with_type_default_and_allowed_values(tmp_path):
    parameters = declared(tmp_path)
    assert parameters["profile"].allowed == ("quick", "full")
    assert parameters["depth"].annotation == "int | None"
    assert parameters["sizes"].default == [5, 10]
    assert not parameters["path"].plain


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("max_epochs", Text("7"), 7),
        ("max_epochs", Text("None"), None),
        ("max_epochs", Text("null"), None),
        ("rate", Text("1e-2"), 0.01),
        ("rate", Text("3"), 3.0),
        ("rate", "1e-2", 0.01),  # YAML reads it as a text
        ("depth", Text("4"), 4),
        ("depth", None, None),
        ("mode", Text("b"), "b"),
        ("profile", Text("full"), "full"),
        ("sizes", Text("[1, 2]"), [1, 2]),
        ("pairs", Text("{'a': 1}"), {"a": 1.0}),
        ("shape", [1, 2, 3], (1, 2, 3)),
        ("flag", Text("true"), True),
        ("flag", True, True),
        ("bare", Text("4"), 4),
        ("path", Text("anything"), "anything"),
    ],
)
def test_a_value_is_brought_to_its_type(tmp_path, name, given, value):
    found = fitted(given, declared(tmp_path)[name])
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("max_epochs", Text("seven"), r"wrong type; it is: Optional\[int\]"),
        ("max_epochs", Text("7.5"), "wrong type"),
        ("max_epochs", True, "wrong type"),
        ("rate", Text("fast"), "it is: float"),
        ("depth", "4", r"it is: int \| None"),
        ("mode", Text("c"), "one of: a, b"),
        ("profile", Text("ful"), "one of: quick, full"),
        ("profile", 3, "it is: str"),
        ("sizes", Text("[1, 'x']"), r"it is: list\[int\]"),
        ("sizes", Text("5"), "wrong type"),
        ("flag", Text("1"), "it is: bool"),
        ("bare", Text("x"), "it is: int"),
        ("shape", [1, "x"], "wrong type"),
    ],
)
def test_a_value_of_another_type_is_refused(tmp_path, name, given, says):
    with pytest.raises(ValueMisfitError, match=says):
        fitted(given, declared(tmp_path)[name])


@pytest.mark.parametrize(
    ("typed", "nearest"), [("max_epoch", "max_epochs"), ("Profile", "profile"), ("MODE", "mode"), ("sizez", "sizes")]
)
def test_a_misspelt_name_is_answered_with_the_nearest(tmp_path, typed, nearest):
    text = message([write(tmp_path / "a.ipynb", parameters=DECLARATIONS)], [typed_setting(typed, "1")])
    assert text.count("\n") == 0
    assert f"a.ipynb has no parameter '{typed}'; it has: profile, max_epochs, rate" in text
    assert text.endswith(f"did you mean {nearest!r}?")


def test_a_misspelt_value_is_answered_with_the_allowed_ones(tmp_path):
    text = message([write(tmp_path / "a.ipynb", parameters=DECLARATIONS)], [typed_setting("profile", "ful")])
    assert text == "a.ipynb: profile = 'ful' is not allowed; it is one of: quick, full; did you mean 'full'?"


def test_a_name_that_only_some_notebooks_know_is_meant_for_them_only_if_it_says_so(tmp_path):
    notebooks = [write(tmp_path / "a.ipynb"), write(tmp_path / "b.ipynb", parameters="m: int = 1")]
    assert "b.ipynb has no parameter 'n'; it has: m; to set it only where it is known, write a.n" in message(
        notebooks, [typed_setting("n", "2")]
    )
    first, second = plan(notebooks, [typed_setting("a.n", "2")])
    assert (first.parameters, second.parameters) == ({"n": 2}, {})
    assert "'c', which is not in this run" in message(notebooks, [typed_setting("c.n", "2")])


def test_a_later_setting_of_a_name_counts(tmp_path):
    (run,) = plan([write(tmp_path / "a.ipynb")], [Setting("n", 2), Setting("n", 3)])
    assert run.parameters == {"n": 3}


def test_all_problems_are_told_at_once_a_line_each(tmp_path):
    text = message([write(tmp_path / "a.ipynb")], [typed_setting("m", "2"), typed_setting("n", "x")])
    assert len(text.splitlines()) == 2


@pytest.mark.parametrize("derived", ["m = n * 10", "m: str = f'{n}'", "n += 1", "m = [n]"])
def test_a_value_derived_from_another_is_refused(tmp_path, derived):
    notebook = write(tmp_path / "a.ipynb", parameters=f"n: int = 1\n{derived}")
    assert set(derived_parameters(nbformat.read(notebook, as_version=4)).values()) == {"n"}
    assert "is derived from n" in message([notebook])


def test_what_is_wrong_with_a_notebook_is_found(tmp_path):
    assert "no cell tagged parameters" in message(
        [write(tmp_path / "a.ipynb", "n = 1", parameters=None)], [typed_setting("n", "2")]
    )
    assert "did you mean 'python3'?" in message([write(tmp_path / "b.ipynb", kernel="python")])
    (tmp_path / "c.ipynb").write_text("no JSON")
    assert "c.ipynb cannot be read" in message([tmp_path / "c.ipynb"])
    assert "d.ipynb: the cell tagged parameters is no plain Python" in message(
        [write(tmp_path / "d.ipynb", parameters="n = ")]
    )
    assert "no notebook" in message([tmp_path / "e.txt"])
    twice = write(tmp_path / "f.ipynb", "n = 2")
    content = nbformat.read(twice, as_version=4)
    content.cells[2].metadata["tags"] = ["parameters"]
    nbformat.write(content, twice)
    assert "more than one cell tagged parameters" in message([twice])


def test_a_sweep_is_the_product_of_its_values(tmp_path):
    notebook = write(tmp_path / "a.ipynb", parameters="n: int = 1\nname: str = 'x'\nm: int = 0")
    sweeps = [typed_sweep("n=1,2"), typed_sweep("name=a,b,c/d")]
    runs = plan([notebook], [typed_setting("m", "5")], sweeps)
    assert [(run.parameters["n"], run.parameters["name"]) for run in runs] == [
        (n, name) for n in (1, 2) for name in ("a", "b", "c/d")
    ]
    assert all(run.parameters["m"] == 5 and set(run.swept) == {"n", "name"} for run in runs)
    assert runs[0].title == "a [n=1, name=a]"
    names = [run.file_name for run in runs]
    assert len(set(names)) == 6
    assert names[2] == "a__n-1__name-c_d.ipynb"


def test_values_that_look_alike_have_files_of_their_own(tmp_path):
    runs = plan([write(tmp_path / "a.ipynb", parameters="s: str = ''")], [], [typed_sweep("s=x/y,x:y")])
    assert [run.file_name for run in runs] == ["a__s-x_y.ipynb", "a__s-x_y__2.ipynb"]


@pytest.mark.parametrize("text", ["n", "n=", "=1", "n=1,,2", "n=1,1"])
def test_a_sweep_that_means_nothing_is_refused(text):
    with pytest.raises(SettingError, match="--sweep"):
        typed_sweep(text)


def test_a_comma_inside_brackets_or_quotes_is_no_separator():
    assert typed_sweep("a.sizes=[1, 2],[3],'x,y'") == Sweep("sizes", ("[1, 2]", "[3]", "'x,y'"), "a")


def test_what_is_set_cannot_be_swept_too(tmp_path):
    assert "n is both set and swept" in message(
        [write(tmp_path / "a.ipynb")], [typed_setting("n", "1")], [typed_sweep("n=1,2")]
    )


def test_a_file_of_settings(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text("n: 2\na.rate: 1e-3\nb:\n  name: x\n")
    assert settings_of_file(path) == [Setting("n", 2), Setting("rate", "1e-3", "a"), Setting("name", "x", "b")]


@pytest.mark.parametrize("text", ["- 1", "3", "{", "1: 2"])
def test_a_file_of_something_else_is_refused(tmp_path, text):
    (tmp_path / "params.yaml").write_text(text)
    with pytest.raises(SettingError, match=r"params\.yaml"):
        settings_of_file(tmp_path / "params.yaml")


def test_a_py_file_is_a_notebook_too(tmp_path):
    path = tmp_path / "a.py"
    path.write_text('# %% tags=["parameters"]\nn: int = 1\n\n# %%\nprint(n)\n')
    (run,) = plan([path], [typed_setting("n", "3")])
    assert (run.file_name, run.parameters, run.kernel) == ("a.ipynb", {"n": 3}, "python3")


# The command.


@pytest.fixture
def no_kernel(monkeypatch):
    monkeypatch.setattr("papermill.execute_notebook", lambda *args, **kwargs: pytest.fail("a kernel was started"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["-p", "m", "2"], "has no parameter 'm'; it has: n"),
        (["-p", "N", "2"], "did you mean 'n'?"),
        (["-p", "n", "two"], "wrong type"),
        (["--sweep", "n=1,x"], "n = 'x' has the wrong type; it is: int"),
        (["--sweep", "k=1,2"], "no parameter 'k'"),
        (["--sweep", "n"], "--sweep takes NAME=V1,V2"),
        (["--jobs", "0"], "--jobs"),
        (["--timeout", "0"], "--timeout"),
    ],
)
def test_wrong_usage_ends_with_exit_code_2_before_a_kernel_starts(tmp_path, no_kernel, options, says):
    result = course("run", write(tmp_path / "a.ipynb"), "--output", tmp_path / "out", *options)
    assert result.exit_code == 2
    assert says in result.output
    assert not (tmp_path / "out").exists()


def test_a_misspelt_name_in_a_file_is_refused(tmp_path, no_kernel):
    (tmp_path / "p.yaml").write_text("m: 2\n")
    result = course("run", write(tmp_path / "a.ipynb"), "-f", tmp_path / "p.yaml")
    assert result.exit_code == 2
    assert "no parameter 'm'" in result.output


def test_a_folder_that_cannot_be_written_is_refused(tmp_path, no_kernel):
    (tmp_path / "file").write_text("")
    result = course("run", write(tmp_path / "a.ipynb"), "--output", tmp_path / "file" / "out")
    assert result.exit_code == 2
    assert re.search(r"out cannot be written to: Not a directory", result.output)
