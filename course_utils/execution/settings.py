"""What a user sets for a batch: parameters, on the command line and in a file, and sweeps over several values."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from course_utils.execution.values import Text


class SettingError(ValueError):
    """Something that was set in a form which means nothing."""


@dataclass(frozen=True)
class Setting:
    """A value for a parameter.

    Attributes:
        name: of the parameter.
        value: a plain value, or `Text` from a command line.
        notebook: the one that it is meant for, without the ending; empty if it is meant for all.
    """

    name: str
    value: Any
    notebook: str = ""


@dataclass(frozen=True)
class Sweep:
    """Several values for a parameter, each of which is to be run.

    Attributes:
        name: of the parameter.
        values: as typed.
        notebook: the one that it is meant for, without the ending; empty if it is meant for all.
    """

    name: str
    values: tuple[Text, ...]
    notebook: str = ""


def typed_setting(name: str, text: str) -> Setting:
    """The setting of `-p NAME VALUE`, where NAME may be NOTEBOOK.NAME."""
    notebook, _, parameter = name.rpartition(".")
    return Setting(parameter, Text(text), notebook)


def settings_of_file(path: Path) -> list[Setting]:
    """The settings of a YAML file: NAME: VALUE, and under the name of a notebook those that are meant for it.

    A value that is itself a mapping is taken for a notebook's settings; `NOTEBOOK.NAME` as a key works as well.

    Raises:
        SettingError: if the file is no YAML, or no mapping of names.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingError(f"{path.name} is no YAML: {' '.join(str(error).split())}") from error
    settings = []
    for key, value in _names(path, content).items():
        notebook, _, name = key.rpartition(".")
        if isinstance(value, Mapping):
            settings += [Setting(inner, one, key) for inner, one in _names(path, value).items()]
        else:
            settings.append(Setting(name, value, notebook))
    return settings


def typed_sweep(text: str) -> Sweep:
    """The sweep of `--sweep NAME=V1,V2,...`, where NAME may be NOTEBOOK.NAME.

    Raises:
        SettingError: if there is no name or no value, or a value stands twice.
    """
    name, equals, listed = text.partition("=")
    values = [value.strip() for value in _split(listed)]
    notebook, _, parameter = name.strip().rpartition(".")
    if not equals or not parameter or not all(values):
        raise SettingError(f"--sweep takes NAME=V1,V2,..., got {text!r}")
    if len(set(values)) < len(values):
        raise SettingError(f"--sweep {text} has a value twice")
    return Sweep(parameter, tuple(map(Text, values)), notebook)


def combinations(sweeps: Sequence[Sweep]) -> Iterator[list[Setting]]:
    """Every choice of one value from each sweep, in order; one empty choice if there is no sweep."""
    for chosen in itertools.product(*(sweep.values for sweep in sweeps)):
        yield [Setting(sweep.name, value, sweep.notebook) for sweep, value in zip(sweeps, chosen, strict=True)]


def _names(path: Path, content: Any) -> Mapping[str, Any]:
    if content is None:
        return {}
    if not isinstance(content, Mapping) or not all(isinstance(key, str) for key in content):
        raise SettingError(f"{path.name} must hold lines NAME: VALUE")
    return content


def _split(text: str) -> list[str]:
    """Parts between the commas that stand outside of brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        depth += (character in "([{") - (character in ")]}") if not quote else 0
        if character == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += character
    return parts
