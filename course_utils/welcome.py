"""What runs here: the versions, the device, and a remedy for what is missing. A notebook says it before it begins."""

import importlib.metadata
import re
import shutil
import sys
from collections.abc import Iterator

_COURSE = "transformer-course"
_SHOWN = {"torch": "PyTorch", "pytorch-lightning": "Lightning"}
_SEPARATORS = re.compile(r"[-_.]+")


def welcome() -> None:
    """Print the versions and the device, and a line for each thing that is missing, with its remedy."""
    for line in [_versions(), *remedies()]:
        print(line)


def remedies() -> list[str]:
    """What is missing or too old here, each with what to do; empty if all is well.

    Returns:
        A sentence for each package that the course needs and does not find in a version that it knows, and one for a
        GPU that PyTorch does not see.
    """
    return [*_packages(), *_unused_gpu()]


def device_name() -> str:
    """What PyTorch computes on here, in words."""
    import torch

    if torch.cuda.is_available():
        return f"a GPU with CUDA: {torch.cuda.get_device_name()}"
    if torch.backends.mps.is_available():
        return "the GPU of an Apple chip (MPS), which has no float64"
    return "the CPU"


def _versions() -> str:
    python = "{}.{}".format(*sys.version_info[:2])
    found = [f"Python {python}"]
    for package, name in _SHOWN.items():
        version = _installed(package)
        found.append(f"{name} {version}" if version else f"no {name}")
    where = f", on {device_name()}" if _installed("torch") else ""
    return ", ".join(found) + where + "."


def _packages() -> Iterator[str]:
    for package, least in _needed().items():
        version = _installed(package)
        if not version:
            yield f"{package} is missing; install it with `pip install {package}` and restart the kernel."
        elif least and _numbers(version) < _numbers(least):
            yield (
                f"{package} is {version} and the course needs {least} or newer; "
                f"run `pip install --upgrade {package}` and restart the kernel."
            )


def _unused_gpu() -> Iterator[str]:
    if not (_installed("torch") and shutil.which("nvidia-smi")):
        return
    import torch

    if not torch.cuda.is_available():
        yield (
            f"This machine has a GPU of NVIDIA that PyTorch {torch.__version__} does not see; the notebooks run on the "
            "CPU. A build of PyTorch for it is found at https://pytorch.org/get-started/locally/."
        )


def _needed() -> dict[str, str]:
    """The packages that the course declares, each with the oldest version that will do."""
    try:
        lines = importlib.metadata.requires(_COURSE) or []
    except importlib.metadata.PackageNotFoundError:  # the folder was put on the path and nothing installed
        lines = []
    needed = {}
    for line in lines:
        requirement, _, condition = line.partition(";")
        if "extra" in condition:
            continue
        match = re.match(r"\s*([A-Za-z0-9._-]+)\s*(?:>=\s*([\w.]+))?", requirement)
        needed[_SEPARATORS.sub("-", match[1])] = match[2] or ""
    return needed


def _installed(package: str) -> str:
    """The version of a package, or nothing."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, to be compared: (2, 14, 1) for 2.14.1+cpu."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()
