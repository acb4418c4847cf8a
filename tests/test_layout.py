"""The rules of the house: which module may import which, and what no file of the project holds."""

import ast
import functools
import importlib
import operator
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "course_utils"
FILES = sorted(PACKAGE.rglob("*.py"))

# An arrow a -> b: a may import b. Every module may also import those that stand for themselves.
ARROWS = {
    "encoder": {"attention", "positions"},
    "predictor": {"encoder", "positions", "schedule"},
    "heads": {"attention"},
    "causal_attention": {"attention", "heads", "key_value_cache"},
    "cross_attention": {"attention", "key_value_cache"},
    "decoder": {"encoder", "causal_attention", "cross_attention", "key_value_cache"},
    "seq2seq": {"decoder", "encoder", "learned_positions", "schedule"},
    "addition": {"seq2seq", "training"},
    "rotary": {"attention", "heads"},
    "efficient_attention": {"attention", "heads"},
    "training": {"checkpoints", "registry"},
    "reverse": {"predictor", "training"},
    "set_evaluation": {"anomaly"},
    "anomaly": {"predictor", "training", "feature_cache", "features", "images"},
    "feature_cache": {"features", "images", "tutorial_features"},
    "tutorial_features": {"cifar100"},
    "backbones": {"downloads"},
    "features": {"backbones", "images", "stacked"},
    "images": {"cifar100", "image_order", "stacked"},
    "cifar100": {"downloads", "image_order"},
    "plotting": {"figure_description"},
    "interactive": {"figure_description", "plotting"},
    "checkpoints": {"checkpoint_files", "registry"},
    "checkpoint_files": {"downloads", "registry"},
    "downloads": {"registry", "download_progress"},
    "upkeep": {"checkpoints", "checkpoint_files", "registry"},
}
LEAVES = {
    "batches",
    "class_evidence",
    "diagrams",
    "machine",
    "rules",
    "shared_batches",
    "paths",
    "progress",
    "quiet",
    "work_progress",
    "results",
    "atomic",
    "threads",
    "welcome",
}
NOT_FOR_TEACHING = {"execution", "checks", "cli", "upkeep"}
DATA = {"images", "cifar100", "stacked", "features", "feature_cache", "backbones", "batches"}
MODELS = {"encoder", "predictor", "training", "reverse", "anomaly", "checkpoints"}
ABOUT_PATHS = {"tests/notebooks/test_committed.py"}  # shows such paths to the code that refuses them


def room(path: Path) -> str:
    """The module of a file, or the folder that it lies in: attention, experiments, ..."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_modules(path: Path) -> set[str]:
    """Full names of what a file imports anywhere in it, `from a import b` as a.b; none is relative."""
    names = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def imported_rooms(path: Path) -> set[str]:
    """The modules of the course that a file imports, its own room left out."""
    of_the_course = {name.split(".")[1] for name in imported_modules(path) if name.startswith("course_utils.")}
    return of_the_course - {room(path), "quiet"}  # that one only says what is not to be said


def named(paths: list[Path]) -> dict:
    return {"argvalues": paths, "ids": [str(path.relative_to(PACKAGE)) for path in paths]}


TEACHING = [path for path in FILES if room(path) not in NOT_FOR_TEACHING]
MODULES = [path for path in TEACHING if room(path) not in {"experiments", "__init__"}]


@pytest.mark.parametrize("path", **named(MODULES))
def test_a_module_imports_only_along_the_arrows(path):
    allowed = ARROWS.get(room(path), set()) | LEAVES
    assert imported_rooms(path) <= allowed, f"{room(path)} may import {sorted(allowed)}"


@pytest.mark.parametrize("path", **named([path for path in FILES if room(path) in LEAVES]))
def test_a_module_that_stands_for_itself_imports_no_other(path):
    assert imported_rooms(path) == set()


@pytest.mark.parametrize("path", **named(TEACHING))
def test_no_teaching_module_imports_the_tools(path):
    assert not imported_rooms(path) & NOT_FOR_TEACHING


@pytest.mark.parametrize("path", **named([path for path in FILES if room(path) in {"plotting", "interactive"}]))
def test_a_figure_knows_no_models_and_data_sets(path):
    assert not imported_rooms(path) & (MODELS | DATA)


def test_no_arrows_run_in_a_circle():
    def reached(module: str, passed: tuple[str, ...] = ()) -> None:
        assert module not in passed, " -> ".join((*passed, module))
        for target in ARROWS.get(module, ()):
            reached(target, (*passed, module))

    for module in ARROWS:
        reached(module)


def test_every_arrow_is_of_modules_that_exist():
    drawn = set(ARROWS) | set().union(*ARROWS.values()) | LEAVES
    assert drawn <= {room(path) for path in FILES}


LOUD = ("pytorch_lightning", "matplotlib")  # they say something when they are imported


@pytest.mark.parametrize(
    "path",
    **named([path for path in FILES if room(path) not in {"execution", "interactive", "plotting", "experiments"}]),
)
def test_libraries_are_kept_quiet_before_they_are_imported(path):
    imported = imported_modules(path)
    if any(name.startswith(LOUD) for name in imported):
        assert "course_utils.quiet" in imported


def test_importing_the_package_imports_neither_torch_nor_matplotlib_nor_lightning():
    program = (
        "import sys, course_utils; print([name for name in "
        "('torch', 'matplotlib', 'pytorch_lightning', 'numpy', 'sklearn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_module_is_loaded_when_it_is_asked_for_and_an_unknown_one_named():
    program = "import sys, course_utils; course_utils.schedule.CosineWarmupScheduler; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "True\n"
    course_utils = importlib.import_module("course_utils")
    assert {"attention", "reverse"} <= set(dir(course_utils))
    with pytest.raises(AttributeError, match=r"no attribute 'atention'; its modules are.*'attention'"):
        course_utils.atention  # noqa: B018


def test_no_file_is_a_drawer_for_everything():
    assert not {path.stem for path in FILES} & {"utils", "helpers", "base", "common", "misc"}


@pytest.mark.parametrize("path", **named(FILES))
def test_assert_is_for_tests(path):
    lines = [node.lineno for node in ast.walk(parsed(path)) if isinstance(node, ast.Assert)]
    assert lines == []


def without_docstring(tree: ast.Module) -> list[str]:
    """Names of the public functions, classes and methods of a module that have no docstring; and the module itself."""
    missing = [] if ast.get_docstring(tree) else ["the module"]
    inside = [(tree, "")]
    while inside:
        parent, prefix = inside.pop()
        for node in parent.body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or node.name.startswith("_"):
                continue
            if not ast.get_docstring(node):
                missing.append(prefix + node.name)
            if isinstance(node, ast.ClassDef):
                inside.append((node, f"{prefix}{node.name}."))
    return missing


@pytest.mark.parametrize("path", **named(FILES))
def test_every_public_function_and_class_has_a_docstring(path):
    assert without_docstring(parsed(path)) == []


def text_files() -> dict[str, str]:
    """The text of each file that belongs to the project."""
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, check=True, cwd=ROOT).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    texts = {}
    for name in filter(None, listed.decode().split("\0")):
        try:
            texts[name] = (ROOT / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue  # binary, or removed and not committed yet
    return texts


def test_no_file_holds_a_path_of_somebodys_machine():
    somebodys = re.compile(r"(?<![\w.~/:-])/(?:" + "|".join(("work", "root", "home", "Users")) + r")/[\w.-]")
    found = {name: somebodys.findall(text) for name, text in text_files().items() if name not in ABOUT_PATHS}
    assert {name: paths for name, paths in found.items() if paths} == {}


def test_no_data_set_and_no_features_are_committed():
    try:
        listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    data = re.compile(r"\.(npy|npz|tar|gz|pth|pt|mat|bin|chunks)$|^data/")
    assert [name for name in listed.splitlines() if data.search(name)] == []


def test_the_switches_of_torch_that_a_file_sets_exist():
    switch = re.compile(r"^\s*(torch\.backends(?:\.\w+)+)\s*=[^=]", re.MULTILINE)  # determinism, precision, ...
    for name, text in text_files().items():
        if not name.endswith(".py"):
            continue
        for dotted in switch.findall(text):
            parent, _, attribute = dotted.removeprefix("torch.").rpartition(".")
            holder = operator.attrgetter(parent)(torch)
            assert hasattr(holder, attribute), f"{name} sets {dotted}, which does nothing"
