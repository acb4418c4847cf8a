"""What is expected of the notebooks' numbers: ranges of recorded results, and how near other numbers must be.

Both stand in notebooks/expected.toml, whose head explains its form.
"""

import math
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE_NAME = "expected.toml"
TRAINED = "trained"  # the tag of a cell whose numbers come from training in the notebook
_TOLERANCES = "nbval"  # the table that is no notebook's


class ExpectedError(ValueError):
    """The file of expected numbers says something that makes no sense."""


@dataclass(frozen=True)
class Range:
    """The values that a result may have, both ends included."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Tolerance:
    """How far a number may be from the committed one: atol + rtol times its size."""

    rtol: float = 5e-5
    atol: float = 1e-6

    def allows(self, value: float, expected: float) -> bool:
        """Whether a number is as near as it must be; nan and infinities only equal themselves."""
        if math.isfinite(value) and math.isfinite(expected):
            return abs(value - expected) <= self.atol + self.rtol * abs(expected)
        return value == expected or (math.isnan(value) and math.isnan(expected))


@dataclass(frozen=True)
class Expected:
    """What is expected of the notebooks of one folder.

    Attributes:
        ranges: by notebook (without the ending), profile and name of the result.
        tolerance: where a notebook states none of its own.
        tolerances: by notebook.
        trained: of cells with the tag `trained`, where another processor's rounding has grown for many steps.
    """

    ranges: Mapping[str, Mapping[str, Mapping[str, Range]]] = field(default_factory=dict)
    tolerance: Tolerance = Tolerance()
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict)
    trained: Tolerance = Tolerance()

    def of(self, notebook: str, profile: str) -> Mapping[str, Range]:
        """The ranges of a notebook's results under a profile."""
        return self.ranges.get(notebook, {}).get(profile, {})

    def tolerance_of(self, notebook: str, tags: Collection[str] = ()) -> Tolerance:
        """The tolerance of the other numbers in a cell of a notebook."""
        tolerance = self.tolerances.get(notebook, self.tolerance)
        if TRAINED not in tags:
            return tolerance
        return Tolerance(max(tolerance.rtol, self.trained.rtol), max(tolerance.atol, self.trained.atol))


def expected_beside(notebook: Path) -> Expected:
    """What the file expected.toml in a notebook's folder says; nothing is expected where there is none.

    Raises:
        ExpectedError: naming the file, the entry and what it should be.
    """
    path = notebook.parent / FILE_NAME
    return load_expected(path) if path.is_file() else Expected()


def load_expected(path: Path) -> Expected:
    """Read a file of expected numbers.

    Raises:
        ExpectedError: naming the file, the entry and what it should be.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ExpectedError(f"{path.name}: {error}") from error
    stated = tables.pop(_TOLERANCES, {})
    _require_table(path, _TOLERANCES, stated)
    own = {name: value for name, value in stated.items() if isinstance(value, dict)}
    trained = own.pop(TRAINED, {})
    general = _tolerance(path, _TOLERANCES, {k: v for k, v in stated.items() if not isinstance(v, dict)}, Tolerance())
    return Expected(
        ranges={notebook: _profiles(path, notebook, table) for notebook, table in tables.items()},
        tolerance=general,
        tolerances={name: _tolerance(path, f"{_TOLERANCES}.{name}", own[name], general) for name in own},
        trained=_tolerance(path, f"{_TOLERANCES}.{TRAINED}", trained, general),
    )


def violations(results: Mapping[str, float], ranges: Mapping[str, Range]) -> list[str]:
    """Each result that is outside its range, and each range whose result was not recorded, in words."""
    outside = [
        f"{name} = {value:.6g} is outside its range, {ranges[name]}"
        for name, value in results.items()
        if name in ranges and value not in ranges[name]
    ]
    absent = [f"{name} was not recorded; its range is {ranges[name]}" for name in ranges if name not in results]
    return outside + absent


def _profiles(path: Path, notebook: str, table: Any) -> dict[str, dict[str, Range]]:
    _require_table(path, notebook, table)
    profiles = {}
    for profile, results in table.items():
        _require_table(path, f"{notebook}.{profile}", results)
        profiles[profile] = {name: _range(path, f"{notebook}.{profile}.{name}", ends) for name, ends in results.items()}
    return profiles


def _range(path: Path, entry: str, ends: Any) -> Range:
    if not isinstance(ends, list) or len(ends) != 2 or not all(_is_number(end) for end in ends):
        raise ExpectedError(f"{path.name}: {entry} must be a range such as [0.98, 1.0], got {ends!r}")
    if not ends[0] <= ends[1]:
        raise ExpectedError(f"{path.name}: {entry} must be [lowest, highest], got {ends!r}")
    return Range(*ends)


def _tolerance(path: Path, entry: str, stated: Mapping[str, Any], otherwise: Tolerance) -> Tolerance:
    values = {"rtol": otherwise.rtol, "atol": otherwise.atol, **stated}
    for name, value in values.items():
        if name not in ("rtol", "atol") or not _is_number(value) or not 0 <= value < math.inf:
            raise ExpectedError(
                f"{path.name}: [{entry}] holds rtol and atol, numbers of at least 0; got {name} = {value}"
            )
    return Tolerance(**values)


def _require_table(path: Path, entry: str, value: Any) -> None:
    if not isinstance(value, dict):
        raise ExpectedError(
            f"{path.name}: {entry} must be a table; the form is [NOTEBOOK.PROFILE] and below it RESULT = [low, high]"
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
