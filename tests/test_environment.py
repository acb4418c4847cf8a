"""The ways to install the course agree: pip by pyproject.toml, conda by environment.yml, and the tested versions."""

import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import course_utils

ROOT = Path(__file__).resolve().parents[1]
CONDA_NAMES = {"torch": "pytorch", "jupyter-client": "jupyter_client"}  # where conda-forge calls a package otherwise
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IN_CONDA = ("cifar", "cluster", "maintain", "test")  # `lite` and `site` are installed with pip


def requirements(*extras: str) -> dict[str, Requirement]:
    lines = PROJECT["dependencies"] + [line for extra in extras for line in PROJECT["optional-dependencies"][extra]]
    return {canonicalize_name(parsed.name): parsed for parsed in map(Requirement, lines)}


def environment() -> dict:
    return yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))


def constraints() -> dict[str, Version]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"==[\w.]+", str(pin.specifier)) for pin in pins)
    return {canonicalize_name(pin.name): Version(str(pin.specifier).removeprefix("==")) for pin in pins}


def test_conda_installs_what_pip_does():
    wanted = {
        CONDA_NAMES.get(name, name) + str(requirement.specifier)
        for name, requirement in requirements(*IN_CONDA).items()
    }
    stated = {entry for entry in environment()["dependencies"] if isinstance(entry, str)}
    assert stated - {"pip"} == wanted | {f"python{PROJECT['requires-python']}"}


def test_conda_environment_is_of_no_one_machine():
    assert set(environment()) == {"name", "channels", "dependencies"}  # no prefix, no platforms
    entries = [entry for entry in environment()["dependencies"] if isinstance(entry, str)]
    assert not [entry for entry in entries if re.search(r"cuda|cudatoolkit|nvidia|mkl", entry)]
    assert not [entry for entry in entries if re.search(r"[^<>=]=[^=]", entry)], "a build string or a conda pin"


def test_constraints_name_every_direct_dependency_within_its_bounds():
    pins = constraints()
    for name, requirement in requirements(*PROJECT["optional-dependencies"]).items():
        assert name in pins, f"constraints.txt lacks {name}; run `python .ci/write_constraints.py`"
        assert requirement.specifier.contains(pins[name]), f"{name} {pins[name]} is outside {requirement.specifier}"


def test_constraints_are_of_no_one_machine():
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert not re.search(r"nvidia|triton|file:|@ |\+cpu|\+cu\d", text)
    names = re.findall(r"^([\w.-]+)==", text, flags=re.MULTILINE)
    assert names == sorted(names)
    assert len(names) == len(set(names))


def test_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == course_utils.__version__
    assert citation["license"] == PROJECT["license"]
    assert {"message", "title", "authors"} <= citation.keys()


def test_changelog_has_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(course_utils.__version__)}\b", changelog, flags=re.MULTILINE)


def test_pre_commit_calls_the_projects_own_tools():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [repository["repo"] for repository in hooks["repos"]] == ["local"]
    entries = {hook["id"]: hook["entry"] for hook in hooks["repos"][0]["hooks"]}
    assert entries == {
        "ruff-check": "ruff check --force-exclude",
        "ruff-format": "ruff format --check --force-exclude",
        "course-sync": "course sync --check",
    }


def test_issue_forms_are_complete():
    folder = ROOT / ".github" / "ISSUE_TEMPLATE"
    forms = sorted(path for path in folder.glob("*.yml") if path.name != "config.yml")
    assert [form.stem for form in forms] == ["notebook_fails", "suggestion", "wrong_or_unclear"]
    for form in forms:
        content = yaml.safe_load(form.read_text(encoding="utf-8"))
        assert {"name", "description", "body"} <= content.keys(), form.name
        fields = [field for field in content["body"] if field["type"] != "markdown"]
        assert len({field["id"] for field in fields}) == len(fields), form.name
        assert all(field["attributes"]["label"] for field in fields), form.name
