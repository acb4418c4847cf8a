"""What a notebook says of the machine it runs on, and the remedies it names."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from course_utils import welcome
from course_utils.welcome import device_name, remedies

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def cpu(monkeypatch):
    """A machine without a GPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setattr(welcome.shutil, "which", lambda name: None)


def versions(monkeypatch, **changed: str | None) -> None:
    """Let packages have other versions; None for one that is not installed."""
    real = importlib.metadata.version
    names = {name.replace("_", "-"): version for name, version in changed.items()}

    def version(package: str) -> str:
        if names.get(package, "") is None:
            raise importlib.metadata.PackageNotFoundError(package)
        return names.get(package) or real(package)

    monkeypatch.setattr(importlib.metadata, "version", version)


def test_one_line_where_all_is_well(cpu, capsys):
    welcome.welcome()
    line = capsys.readouterr().out
    torch_version = re.escape(importlib.metadata.version("torch"))
    assert re.fullmatch(rf"Python 3\.\d+, PyTorch {torch_version}, Lightning [\d.]+, on the CPU\.\n", line)


def test_the_needed_packages_are_those_of_the_project(monkeypatch):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"], "pytest>=8.2; extra == 'test'"]
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: lines if name == project["name"] else None)
    assert [f"{name}>={least}" for name, least in welcome._needed().items()] == project["dependencies"]


def test_a_missing_package_comes_with_its_remedy(cpu, monkeypatch, capsys):
    versions(monkeypatch, pytorch_lightning=None)
    assert remedies() == [
        "pytorch-lightning is missing; install it with `pip install pytorch-lightning` and restart the kernel."
    ]
    welcome.welcome()
    assert "no Lightning" in capsys.readouterr().out


def test_an_old_package_comes_with_its_remedy(cpu, monkeypatch):
    versions(monkeypatch, torch="2.5.1+cu121")
    (line,) = remedies()
    assert line.startswith("torch is 2.5.1+cu121 and the course needs 2.6 or newer; run `pip install --upgrade torch`")


def test_without_pytorch_the_rest_is_still_said(cpu, monkeypatch, capsys):
    versions(monkeypatch, torch=None)
    welcome.welcome()
    first, *others = capsys.readouterr().out.splitlines()
    assert "no PyTorch" in first
    assert others == ["torch is missing; install it with `pip install torch` and restart the kernel."]


def test_each_device_has_its_words(cpu, monkeypatch):
    assert device_name() == "the CPU"
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert device_name() == "the GPU of an Apple chip (MPS), which has no float64"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "A card")
    assert device_name() == "a GPU with CUDA: A card"


def test_a_gpu_that_pytorch_does_not_see_is_named(cpu, monkeypatch):
    monkeypatch.setattr(welcome.shutil, "which", lambda name: f"/usr/bin/{name}")
    (line,) = remedies()
    assert "does not see" in line
    assert "https://pytorch.org/get-started/locally/" in line
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert remedies() == []


def test_a_folder_on_the_path_without_an_installation_is_no_error(cpu, monkeypatch):
    monkeypatch.setattr(welcome, "_COURSE", "no-such-package")
    assert remedies() == []


numbers = st.lists(st.integers(0, 99), min_size=1, max_size=4)


@given(numbers, numbers)
def test_versions_are_compared_as_numbers(one, other):
    texts = [".".join(map(str, version)) for version in (one, other)]
    first, second = (welcome._numbers(f"{text}+cpu") for text in texts)
    if len(one) == len(other):
        assert (first < second) == (Version(texts[0]) < Version(texts[1]))
    assert first == tuple(one)
