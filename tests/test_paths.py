from pathlib import Path

import pytest

from course_utils import paths

REPOSITORY = Path(__file__).resolve().parent.parent
FOLDERS = [(paths.dataset_dir, "PATH_DATASETS", "data"), (paths.checkpoint_dir, "PATH_CHECKPOINT", "saved_models")]
each_folder = pytest.mark.parametrize(("folder", "variable", "default"), FOLDERS)


@pytest.fixture(params=["the root", "notebooks/", "elsewhere"])
def working_directory(request, tmp_path, monkeypatch) -> Path:
    directory = {"the root": REPOSITORY, "notebooks/": REPOSITORY / "notebooks", "elsewhere": tmp_path}[request.param]
    monkeypatch.chdir(directory)
    return directory


@pytest.fixture
def installed(tmp_path, monkeypatch) -> Path:
    """The package as if it were installed from a wheel, and a working directory."""
    site_packages, directory = tmp_path / "site-packages", tmp_path / "here"
    site_packages.mkdir()
    directory.mkdir()
    monkeypatch.setattr(paths, "_PACKAGE_PARENT", site_packages)
    monkeypatch.chdir(directory)
    return directory


@each_folder
@pytest.mark.parametrize("value", [None, ""])
def test_in_a_checkout_the_defaults_lie_in_the_repository_wherever_one_works(
    working_directory, monkeypatch, folder, variable, default, value
):
    monkeypatch.delenv(variable, raising=False)
    if value is not None:
        monkeypatch.setenv(variable, value)
    assert folder() == REPOSITORY / default
    assert paths.runs_dir() == REPOSITORY / "runs"


@each_folder
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("elsewhere/models", REPOSITORY / "elsewhere" / "models"),
        ("../beside", REPOSITORY.parent / "beside"),
        (str(Path.cwd().root) + "top", Path(Path.cwd().root) / "top"),
        ("~/mine", Path.home() / "mine"),
    ],
)
def test_a_folder_given_in_the_environment_is_anchored_at_the_repository_too(
    working_directory, monkeypatch, folder, variable, default, value, expected
):
    monkeypatch.setenv(variable, value)
    assert folder() == expected.resolve()


@each_folder
def test_outside_a_checkout_everything_lies_under_the_working_directory(
    installed, monkeypatch, folder, variable, default
):
    monkeypatch.delenv(variable, raising=False)
    assert folder() == installed / default
    assert paths.runs_dir() == installed / "runs"
    monkeypatch.setenv(variable, "mine")
    assert folder() == installed / "mine"


def test_asking_for_a_folder_does_not_make_it(installed):
    for folder, *_ in FOLDERS:
        folder()
    assert list(installed.iterdir()) == []
