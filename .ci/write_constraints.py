"""Write constraints.txt: the versions that are installed of the course's dependencies and of what they need.

    python .ci/write_constraints.py

Run it in the environment in which all tests have just passed.
"""

import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
HEAD = """\
# The versions that the tests last passed with. To install exactly these:
#
#     python -m pip install -c constraints.txt -e ".[test]"
#
# They limit what is installed and install nothing by themselves. Written by .ci/write_constraints.py.
# CUDA libraries are left out: they follow from the build of PyTorch.
"""
OF_ONE_PLATFORM = ("nvidia-", "cuda-", "triton")


def direct_dependencies() -> list[Requirement]:
    """What pyproject.toml names, extras included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    return [Requirement(line) for line in project["dependencies"] + extras]


def installed_versions(wanted: list[Requirement]) -> dict[str, str]:
    """Versions by name of some requirements and all that they need; of one pinned exactly, the pin will do."""
    versions: dict[str, str] = {}
    visited: set[tuple[str, frozenset[str]]] = set()
    while wanted:
        requirement = wanted.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if (name, extras) in visited or name.startswith(OF_ONE_PLATFORM):
            continue
        visited.add((name, extras))
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            if not str(requirement.specifier).startswith("=="):
                raise
            versions[name] = str(requirement.specifier).removeprefix("==")
            continue
        versions[name] = distribution.version.split("+")[0]  # "+cpu" names a build, not a version
        wanted += [needed for line in distribution.requires or [] if _applies(needed := Requirement(line), extras)]
    return versions


def _applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    return requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in {*extras, ""})


if __name__ == "__main__":
    found = installed_versions(direct_dependencies())
    lines = [f"{name}=={version}\n" for name, version in sorted(found.items())]
    (ROOT / "constraints.txt").write_text(HEAD + "".join(lines), encoding="utf-8")
