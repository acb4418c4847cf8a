"""The notebook beside a source: executed when it must be, left alone when it may be, and never half-written."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner

from course_utils.cli import main
from course_utils.execution.dependencies import dependency_digests
from course_utils.execution.source import SourceError, read_source
from course_utils.execution.sync import SyncError, check, sync

SOURCE = """\
# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A small notebook
# Some text.

# %% tags=["parameters"]
n: int = 3  # a number

# %%
from pathlib import Path

runs = Path("runs.txt")
runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
print("n is", n)

# %%
n + 0.5
"""
PACKAGE = {
    "__init__.py": '"""A package."""\n',
    "attention.py": (
        '"""Attention."""\n\nfrom course_utils import masks\n\n\ndef attend(x):\n    return masks.masked(x)\n'
    ),
    "masks.py": "def masked(x):\n    return x\n",
    "unrelated.py": "VALUE = 1\n",
}


@pytest.fixture(scope="module")
def synced(tmp_path_factory) -> Path:
    """A folder with a source that has been synced once; its file runs.txt grows with each execution."""
    path = tmp_path_factory.mktemp("synced") / "small.py"
    path.write_text(SOURCE)
    sync(path)
    assert executions(path) == 1
    return path.parent


@pytest.fixture
def source(synced: Path, tmp_path: Path) -> Path:
    """A source in step with its notebook."""
    for path in synced.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path / "small.py"


def executions(source: Path) -> int:
    return len((source.parent / "runs.txt").read_text())


def target(source: Path) -> Path:
    return source.with_suffix(".ipynb")


def read(source: Path) -> nbformat.NotebookNode:
    return nbformat.read(target(source), as_version=4)


def replace(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "library" / "course_utils"
    folder.mkdir(parents=True)
    for name, code in PACKAGE.items():
        (folder / name).write_text(code)
    return folder


def test_notebook_holds_cells_and_outputs(source):
    notebook = read(source)
    assert [cell.cell_type for cell in notebook.cells] == ["markdown", "code", "code", "code"]
    assert notebook.cells[1].metadata == {"tags": ["parameters"]}
    assert notebook.cells[2].outputs == [{"name": "stdout", "output_type": "stream", "text": "n is 3\n"}]
    assert notebook.cells[3].outputs[0]["data"] == {"text/plain": "3.5"}
    assert [cell.execution_count for cell in notebook.cells[1:]] == [1, 2, 3]


def test_notebook_keeps_nothing_of_the_machine(source):
    notebook = read(source)
    assert notebook.metadata.kernelspec == {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    }
    assert notebook.metadata.language_info == {"name": "python"}
    assert set(notebook.metadata) == {"course", "jupytext", "kernelspec", "language_info"}
    assert all("execution" not in cell.metadata for cell in notebook.cells)
    text = target(source).read_text()
    assert text.endswith("}\n") and '\n "cells": [' in text


def test_second_sync_changes_nothing(source):
    before = target(source).read_bytes()
    assert sync(source) == "up to date"
    assert target(source).read_bytes() == before
    assert executions(source) == 1


def test_two_people_get_the_same_file(source, tmp_path):
    other = tmp_path / "elsewhere" / "small.py"
    other.parent.mkdir()
    other.write_text(SOURCE)
    sync(other)
    assert target(other).read_bytes() == target(source).read_bytes()


def test_touched_files_are_left_alone(source):
    os.utime(source)
    os.utime(target(source), (1, 1))
    assert check(source) == ""
    assert sync(source) == "up to date"
    assert executions(source) == 1


def test_changed_code_is_executed(source):
    replace(source, "n + 0.5", "n + 0.25")
    assert "cell 4 (A small notebook) differs from the source; run `make sync`" in check(source)
    assert sync(source).startswith("executed in")
    assert executions(source) == 2
    assert read(source).cells[3].outputs[0]["data"] == {"text/plain": "3.25"}
    assert check(source) == ""


def test_changed_text_keeps_the_outputs(source):
    outputs = [cell.outputs for cell in read(source).cells[1:]]
    replace(source, "Some text.", "Other text.")
    assert check(source) == "small.ipynb: cell 1 (A small notebook) differs from the source; run `make sync`"
    assert sync(source).startswith("rewritten with its outputs kept")
    assert executions(source) == 1
    assert [cell.outputs for cell in read(source).cells[1:]] == outputs
    assert read(source).cells[0].source.endswith("Other text.")
    assert check(source) == ""


def test_changed_tag_is_executed(source):
    replace(source, 'tags=["parameters"]', 'tags=["parameters", "hide-input"]')
    assert "cell 2 (A small notebook)" in check(source)
    sync(source)
    assert executions(source) == 2
    assert read(source).cells[1].metadata.tags == ["parameters", "hide-input"]


def test_new_and_removed_cells_are_found(source):
    original = source.read_text()
    source.write_text(original + "\n# %%\nn * 2\n")
    assert "cell 5 (A small notebook) of the source is missing" in check(source)
    source.write_text(original.replace("\n# %%\nn + 0.5\n", ""))
    assert "cell 4 (A small notebook) of the notebook is not in the source" in check(source)
    sync(source)
    assert len(read(source).cells) == 3


# What somebody might do to the notebook itself: the file's text before and after, and what the check says.
SABOTAGE = {
    "output": ('"n is 3\\n"', '"n is 4\\n"', "the output of cell 3"),
    "result": ('"3.5"', '"3.4999"', "the output of cell 4"),
    "execution count": ('"execution_count": 2,', '"execution_count": 7,', "the output of cell 3"),
    "code": ('"n + 0.5"', '"n + 0.75"', "cell 4 (A small notebook) differs from the source"),
    "text": ('"Some text."', '"Some test."', "cell 1 (A small notebook) differs from the source"),
    "tag": ('"parameters"', '"params"', "cell 2 (A small notebook) has other tags"),
    "kernel": ('"name": "python3"', '"name": "alices-env"', "its metadata 'kernelspec' differ"),
    "layout": ('\n "cells"', '\n    "cells"', "its file is laid out in another way"),
}


@pytest.mark.parametrize("kind", SABOTAGE)
def test_edited_notebook_is_caught_and_mended(source, kind):
    before, after, message = SABOTAGE[kind]
    good = target(source).read_bytes()
    replace(target(source), before, after)
    problem = check(source)
    assert problem.startswith("small.ipynb: ")
    assert message in problem
    assert problem.endswith("run `make sync`")
    sync(source)
    assert target(source).read_bytes() == good


def test_removed_output_is_caught(source):
    notebook = read(source)
    notebook.cells[3].outputs = []
    nbformat.write(notebook, target(source))
    assert "the output of cell 4" in check(source)


def test_broken_notebook_is_made_anew(source):
    good = target(source).read_bytes()
    target(source).write_text("<<<<<<< HEAD\n" + target(source).read_text())
    assert "is no notebook" in check(source)
    sync(source)
    assert target(source).read_bytes() == good


def test_notebook_of_other_origin_is_executed(source):
    notebook = json.loads(target(source).read_text())
    del notebook["metadata"]["course"]
    target(source).write_text(json.dumps(notebook))
    sync(source)
    assert executions(source) == 2


def test_check_writes_nothing(source):
    replace(source, "n + 0.5", "n + 0.25")
    before = target(source).read_bytes()
    check(source)
    assert target(source).read_bytes() == before
    assert executions(source) == 1


def test_failing_cell_leaves_the_old_file(source):
    before = target(source).read_bytes()
    replace(source, "n + 0.5", "n / 0")
    with pytest.raises(SyncError, match=r"small\.py, cell 4 \(A small notebook\): ZeroDivisionError: division by zero"):
        sync(source)
    assert target(source).read_bytes() == before
    assert sorted(path.name for path in source.parent.iterdir()) == ["runs.txt", "small.ipynb", "small.py"]


def test_dead_kernel_leaves_the_old_file(source):
    before = target(source).read_bytes()
    replace(source, "n + 0.5", "import os; os._exit(1)")
    with pytest.raises(SyncError, match=r"small\.py, cell .*DeadKernelError"):
        sync(source)
    assert target(source).read_bytes() == before


def test_interrupted_write_leaves_the_old_file(source, monkeypatch):
    before = target(source).read_bytes()
    replace(source, "Some text.", "Other text.")

    def refuse(self, other):
        raise PermissionError(f"cannot write {other}")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(PermissionError):
        sync(source)
    assert target(source).read_bytes() == before
    assert sorted(path.name for path in source.parent.iterdir()) == ["runs.txt", "small.ipynb", "small.py"]


def test_kernel_named_after_a_person_is_refused(tmp_path):
    path = tmp_path / "small.py"
    path.write_text(SOURCE.replace("name: python3", "name: alices-env"))
    with pytest.raises(SourceError, match=r"small\.py names the kernel 'alices-env'.*must say python3"):
        read_source(path)
    assert "alices-env" in check(path)


def test_source_with_a_typing_error_is_named(tmp_path):
    path = tmp_path / "small.py"
    path.write_text(SOURCE.replace("n + 0.5", "n +"))
    with pytest.raises(SyncError, match=r"small\.py: .*line 24"):
        sync(path)


def test_pieces_of_one_stream_are_joined_and_the_order_kept(tmp_path):
    path = tmp_path / "small.py"
    path.write_text(
        "# %%\nimport time\nfrom IPython.display import display\n\nfor i in range(3):\n"
        "    print(i, flush=True)\n    time.sleep(0.05)\ndisplay(7)\nprint('end')\n"
    )
    sync(path)
    outputs = read(path).cells[0].outputs
    assert [output.output_type for output in outputs] == ["stream", "display_data", "stream"]
    assert [outputs[0].text, outputs[2].text] == ["0\n1\n2\n", "end\n"]


def test_cell_ids_follow_from_content_and_occurrence(tmp_path):
    path = tmp_path / "small.py"
    path.write_text("# %%\nn = 1\n\n# %%\nn = 1\n\n# %%\nn = 2\n")
    ids = [cell.id for cell in read_source(path).cells]
    assert len(set(ids)) == 3
    path.write_text("# %%\nn = 0\n\n# %%\nn = 1\n\n# %%\nn = 1\n")
    assert [cell.id for cell in read_source(path).cells][1:] == ids[:2]


# The library behind a notebook.


@pytest.mark.parametrize(
    "statement",
    [
        "from course_utils import attention",
        "from course_utils.attention import attend",
        "import course_utils.attention as a",
        "import course_utils\ncourse_utils.attention.attend(1)",
    ],
)
def test_imports_are_followed(package, statement):
    assert list(dependency_digests(statement, package)) == [
        "course_utils/__init__.py",
        "course_utils/attention.py",
        "course_utils/masks.py",
    ]


def test_relative_imports_are_followed(package):
    (package / "attention.py").write_text("from . import masks\nfrom .unrelated import VALUE\n")
    assert set(dependency_digests("from course_utils import attention", package)) == {
        f"course_utils/{name}" for name in ("__init__.py", "attention.py", "masks.py", "unrelated.py")
    }


def test_comments_docstrings_and_layout_do_not_count(package):
    before = dependency_digests("from course_utils import attention", package)
    (package / "attention.py").write_text(
        '"""Attention, explained."""\n\nfrom course_utils import masks  # masks\n\n\ndef attend(\n    x,\n):\n'
        '    """Attend."""\n    return masks.masked(x)\n'
    )
    assert dependency_digests("from course_utils import attention", package) == before


def test_changed_value_counts(package):
    before = dependency_digests("from course_utils import unrelated", package)
    (package / "unrelated.py").write_text("VALUE = 2\n")
    after = dependency_digests("from course_utils import unrelated", package)
    assert {path for path in after if after[path] != before[path]} == {"course_utils/unrelated.py"}


def test_named_data_files_and_saved_models_count(package):
    (package / "registry.toml").write_text("[reverse]\n")
    (package / "other.toml").write_text("")
    models = package.parent / "saved_models"
    models.mkdir()
    (models / "reverse.ckpt").write_bytes(b"weights")
    (models / "anomaly.ckpt").write_bytes(b"weights")
    (package / "masks.py").write_text('NAME = "reverse"\nREGISTRY = "registry.toml"\n')
    assert set(dependency_digests("from course_utils import attention", package)) == {
        "course_utils/__init__.py",
        "course_utils/attention.py",
        "course_utils/masks.py",
        "course_utils/registry.toml",
        "saved_models/reverse.ckpt",
    }


def test_changed_library_is_executed(tmp_path, package):
    path = tmp_path / "small.py"
    path.write_text(SOURCE.replace("n + 0.5", "import course_utils.attention"))
    sync(path, package=package)
    (package / "unrelated.py").write_text("VALUE = 2\n")
    (package / "masks.py").write_text("def masked(x):  # a comment\n    return x\n")
    assert sync(path, package=package) == "up to date"
    (package / "masks.py").write_text("def masked(x):\n    return -x\n")
    assert check(path, package) == (
        "small.ipynb: course_utils/masks.py changed after the outputs were made; run `make sync`"
    )
    sync(path, package=package)
    assert executions(path) == 2
    assert check(path, package) == ""


# The command.


def test_command_checks_and_mends(source):
    result = CliRunner().invoke(main, ["sync", str(source)])
    assert (result.exit_code, "[1/1] small: up to date" in result.output) == (0, True)
    replace(source, "Some text.", "Other text.")
    result = CliRunner().invoke(main, ["sync", "--check", str(source)])
    assert (result.exit_code, result.output) == (
        1,
        "small.ipynb: cell 1 (A small notebook) differs from the source; run `make sync`\n",
    )
    assert CliRunner().invoke(main, ["sync", str(source)]).exit_code == 0
    assert CliRunner().invoke(main, ["sync", "--check", str(source)]).output == ""


def test_command_reports_failures_and_goes_on(source, tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("# %%\n1 / 0\n")
    result = CliRunner().invoke(main, ["sync", str(bad), str(source)])
    assert result.exit_code == 1
    assert "[1/2] bad: FAILED: bad.py, cell 1: ZeroDivisionError: division by zero" in result.output
    assert "[2/2] small: up to date" in result.output


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no signal to one process")
def test_interrupted_command_ends_its_kernel_and_leaves_no_file(tmp_path):
    path = tmp_path / "slow.py"
    path.write_text(
        "# %%\nimport os, time\nfrom pathlib import Path\n\n"
        "Path('pid.part').write_text(str(os.getpid()))\nPath('pid.part').rename('pid')\ntime.sleep(300)\n"
    )
    command = [sys.executable, "-c", "from course_utils.cli import main; main()", "sync", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    pid = tmp_path / "pid"
    wait_until(pid.exists)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Aborted!" in output
    assert "Traceback" not in output.replace("Exception in message handler:\nTraceback", "")  # the dying kernel's
    kernel = int(pid.read_text())
    wait_until(lambda: not is_running(kernel))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["pid", "slow.py"]


def wait_until(condition, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_command_refuses_a_derived_file(source):
    result = CliRunner().invoke(main, ["sync", str(target(source))])
    assert result.exit_code == 2
    assert "give the .py file" in result.output
