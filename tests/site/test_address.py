"""Where the course is published: one setting, and everything that follows from it with and without an address."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs" / "site"))

from address import checked, file_url, launchers, repository  # noqa: E402 (found through the line above)
from set_address import set_address  # noqa: E402
from sources import gather  # noqa: E402

GITHUB = "https://github.com/example/course"
NOTEBOOK = "notebooks/01_attention.ipynb"


def test_without_an_address_nothing_is_offered():
    assert launchers("", NOTEBOOK) == []
    assert file_url("", "LICENSE") == ""


def test_each_service_is_led_to_the_notebook():
    assert {one.name: one.url for one in launchers(GITHUB, NOTEBOOK)} == {
        "Colab": f"https://colab.research.google.com/github/example/course/blob/main/{NOTEBOOK}",
        "Binder": f"https://mybinder.org/v2/gh/example/course/main?labpath={NOTEBOOK}",
        "Codespaces": "https://codespaces.new/example/course",
    }
    (binder,) = launchers("https://gitlab.com/group/course", NOTEBOOK)
    assert binder.url == f"https://mybinder.org/v2/gl/group%2Fcourse/main?labpath={NOTEBOOK}"
    assert launchers("https://git.example.org/course", NOTEBOOK) == []


@pytest.mark.parametrize("address", [GITHUB, f"{GITHUB}/", f"{GITHUB}.git", f" {GITHUB} "])
def test_an_address_has_one_form(address):
    assert checked(address) == GITHUB


@pytest.mark.parametrize("address", ["github.com/example/course", "http://github.com/a/b", "https://github.com", "x y"])
def test_something_else_is_refused_with_what_was_expected(address):
    with pytest.raises(ValueError, match=r"must be like https://github.com/OWNER/NAME, or empty; got"):
        checked(address)


@pytest.mark.parametrize("address", ["", GITHUB], ids=["unpublished", "published"])
def test_pages_offer_to_run_in_the_browser_only_where_that_leads_somewhere(tmp_path, address):
    gather(tmp_path, address)
    notebooks = sorted((tmp_path / "notebooks").glob("*.ipynb"))
    assert notebooks
    for path in notebooks:
        first = nbformat.read(path, as_version=4).cells[0].source
        assert "{download}`" in first
        assert ("[Colab](https://colab.research.google.com/" in first) == bool(address)
    text = (tmp_path / "run_it.md").read_text(encoding="utf-8")
    assert text.count("mybinder.org") == (len(notebooks) if address else 0)
    assert ("## In the browser" in text) == bool(address)
    everything = "\n".join(path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.md"))
    assert ("github.com/example/course" in everything) == bool(address)
    assert not re.search(r"\]\(\)|\]\(/blob", everything)


def test_one_command_sets_the_address_everywhere_and_takes_it_back(tmp_path):
    (tmp_path / "notebooks").mkdir()
    for path in [ROOT / "pyproject.toml", *(ROOT / "notebooks").glob("[0-9]*.py")]:
        (tmp_path / path.relative_to(ROOT)).write_bytes(path.read_bytes())
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    set_address("", tmp_path)
    assert len(set_address(f"{GITHUB}/", tmp_path)) == len(before)
    assert repository(tmp_path / "pyproject.toml") == GITHUB
    for path in (tmp_path / "notebooks").iterdir():
        assert f'repository = "{GITHUB}"' in path.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="must be like"):
        set_address("nowhere", tmp_path)
    set_address(repository(ROOT / "pyproject.toml"), tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before


def test_a_notebook_without_the_line_is_named_and_nothing_is_written(tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.course]\nrepository = ""\n')
    (tmp_path / "notebooks" / "01_bare.py").write_text("# %%\n")
    with pytest.raises(ValueError, match=r"01_bare\.py must have one line `repository = \.\.\.`, and has 0"):
        set_address(GITHUB, tmp_path)
    assert repository(tmp_path / "pyproject.toml") == ""


def test_the_dev_container_installs_the_course():
    text = (ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8")
    container = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    version = re.fullmatch(r"python:(3\.\d+)-\w+", container["image"])[1]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert tuple(map(int, version.split("."))) >= (3, 11)
    extras = re.search(r"-e '\.\[([\w,]+)\]'", container["postCreateCommand"])[1].split(",")
    assert set(extras) <= set(project["optional-dependencies"])
    assert all((ROOT / path).is_file() for path in container["customizations"]["codespaces"]["openFiles"])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no executable files and no bash")
def test_binder_installs_the_course_for_the_cpu():
    environment = yaml.safe_load((ROOT / ".binder" / "environment.yml").read_text(encoding="utf-8"))
    assert set(environment) == {"name", "channels", "dependencies"}
    script = ROOT / ".binder" / "postBuild"
    assert os.access(script, os.X_OK)
    assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0
    text = script.read_text(encoding="utf-8")
    assert text.startswith("#!/bin/bash\nset -euo pipefail\n")
    assert "--torch-backend=cpu" in text
