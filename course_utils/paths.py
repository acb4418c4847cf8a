"""Where data, checkpoints and runs lie: the same folders whatever the working directory is.

In a checkout of the course every path is anchored at the repository; elsewhere (a wheel, Colab) at the working
directory.
"""

import os
from pathlib import Path

_PACKAGE_PARENT = Path(__file__).resolve().parent.parent


def anchor() -> Path:
    """The repository in a checkout, else the working directory."""
    in_checkout = (_PACKAGE_PARENT / "pyproject.toml").is_file() and (_PACKAGE_PARENT / "notebooks").is_dir()
    return _PACKAGE_PARENT if in_checkout else Path.cwd()


def dataset_dir() -> Path:
    """Folder of the data sets: the environment variable PATH_DATASETS, by default data/."""
    return _folder("PATH_DATASETS", "data")


def checkpoint_dir() -> Path:
    """Folder of the checkpoints: the environment variable PATH_CHECKPOINT, by default saved_models/."""
    return _folder("PATH_CHECKPOINT", "saved_models")


def feature_dir() -> Path:
    """Folder of extracted features: the environment variable PATH_FEATURES, by default data/features/.

    It does not follow PATH_DATASETS, which may be a folder that cannot be written to.
    """
    return _folder("PATH_FEATURES", "data/features")


def runs_dir() -> Path:
    """Folder for what a run leaves behind (logs, executed notebooks): runs/."""
    return anchor() / "runs"


def _folder(variable: str, default: str) -> Path:
    chosen = os.environ.get(variable) or default  # set but empty means unset, as is usual in shells
    return (anchor() / Path(chosen).expanduser()).resolve()
