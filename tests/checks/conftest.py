"""What the tests of the checks share: no outcome of theirs gets into somebody's progress."""

from pathlib import Path

import pytest

from course_utils.checks import progress


@pytest.fixture(autouse=True)
def progress_file(tmp_path, monkeypatch) -> Path:
    """A progress file of the test's own."""
    file = tmp_path / "state" / "progress.jsonl"
    monkeypatch.setenv("PATH_PROGRESS", str(file))
    monkeypatch.setattr(progress, "_kept", True)
    monkeypatch.setattr(progress, "_listeners", [])
    return file
