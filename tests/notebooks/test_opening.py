"""The cell after the parameters: the same in each notebook, and able to fetch the course where it is not installed."""

import ast
import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import jupytext
import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "notebooks").glob("[0-9]*.py"))
ADDRESS = "https://github.com/example/course"


def opening(path: Path):
    """The code cell after the parameters."""
    return [cell for cell in jupytext.read(path).cells if cell.cell_type == "code"][1]


def code(address: str) -> str:
    text, count = re.subn(r'repository = "[^"]*"', f'repository = "{address}"', opening(SOURCES[0]).source)
    assert count == 1
    return text


@pytest.fixture
def alone(monkeypatch):
    """A kernel that finds no course; what it would run, and its path."""
    real = importlib.util.find_spec
    ran: list[list[str]] = []
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "course_utils" else real(name))
    monkeypatch.setattr(subprocess, "run", lambda command, check: ran.append(command))
    monkeypatch.setattr(sys, "path", list(sys.path))
    return ran


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_each_notebook_begins_with_the_same_cell(path):
    cell = opening(path)
    assert cell.source == opening(SOURCES[0]).source
    assert cell.metadata["tags"] == ["nbval-ignore-output"]


def test_the_address_in_it_is_that_of_the_setting():
    setting = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["course"]["repository"]
    assert f'repository = "{setting}"' in opening(SOURCES[0]).source


def test_it_names_nothing_that_a_later_cell_could_miss():
    tree = ast.parse(opening(SOURCES[0]).source)
    assert {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names} == {
        "importlib.util",
        "subprocess",
        "sys",
    }


def test_where_the_course_is_installed_it_says_what_runs(capsys):
    exec(code(ADDRESS), {})
    assert re.match(r"Python 3\.\d+, PyTorch [\d.]+.*, on ", capsys.readouterr().out)


def test_without_an_address_it_says_what_to_do(alone):
    with pytest.raises(ModuleNotFoundError, match=r"run `pip install -e \.` in its folder, then restart the kernel"):
        exec(code(""), {})
    assert alone == []


def test_with_an_address_it_fetches_and_installs_the_course(alone, capsys):
    exec(code(ADDRESS), {})
    clone, install = alone
    assert clone == ["git", "clone", "--quiet", "--depth", "1", ADDRESS, "transformer-course"]
    assert install == [sys.executable, "-m", "pip", "install", "--quiet", "-e", "transformer-course"]
    assert sys.path[0] == "transformer-course"
    assert "PyTorch" in capsys.readouterr().out


@pytest.mark.slow
def test_the_installation_leaves_pytorch_as_it_is(tmp_path):
    """What pip would install here, where PyTorch is there already: the course and nothing else that is there."""
    folder = tmp_path / "transformer-course"
    clone = ["git", "clone", "--quiet", "--depth", "1", ROOT.as_uri(), str(folder)]
    if subprocess.run(clone, check=False, capture_output=True).returncode != 0:
        pytest.skip("not a git checkout")
    report = tmp_path / "report.json"
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--dry-run",
        "--report",
        str(report),
        "-e",
        str(folder),
    ]
    done = subprocess.run(install, check=False, capture_output=True, text=True, cwd=tmp_path)
    if done.returncode != 0:
        pytest.skip(f"pip cannot prepare an installation, perhaps without a network: {done.stderr[-200:]}")
    names = {one["metadata"]["name"] for one in json.loads(report.read_text(encoding="utf-8"))["install"]}
    assert names <= {"transformer-course"}
