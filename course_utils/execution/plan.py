"""Plan a batch: which notebooks run with which parameters. Everything that can be known to be wrong is found here."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpecManager

from course_utils.execution.bounds import ExpectedError, expected_beside
from course_utils.execution.parameters import Parameter, declared_parameters, derived_parameters, parameter_cells
from course_utils.execution.settings import Setting, Sweep, combinations
from course_utils.execution.source import KERNELSPEC, SourceError, read_source
from course_utils.execution.values import ValueMisfitError, allowed_values, fitted

_LONGEST_NAME = 120  # characters of a file's name; some systems allow 255 bytes


class PlanError(ValueError):
    """A batch that must not start; the message has a line for each problem."""


@dataclass(frozen=True)
class Run:
    """One notebook to be executed once.

    Attributes:
        notebook: path of the source, .ipynb or .py.
        title: its name, with the swept values.
        content: the notebook as the text of an .ipynb file, so that it can travel to another machine.
        kernel: the name of the kernel that runs it.
        file_name: of the executed copy.
        parameters: the values that were set, the swept ones included.
        swept: the values that a sweep set.
        defaults: the plain values that the notebook itself has.
    """

    notebook: Path
    title: str
    content: str
    kernel: str
    file_name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    swept: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)

    @property
    def profile(self) -> str:
        """The profile that it runs under; "quick" for a notebook that has none."""
        return str({"profile": "quick", **self.defaults, **self.parameters}["profile"])


@dataclass(frozen=True)
class _Chosen:
    path: Path
    content: nbformat.NotebookNode
    parameters: Mapping[str, Parameter]

    @property
    def kernel(self) -> str:
        return self.content.metadata.get("kernelspec", KERNELSPEC).get("name", KERNELSPEC["name"])


def plan(notebooks: Sequence[Path], settings: Sequence[Setting] = (), sweeps: Sequence[Sweep] = ()) -> list[Run]:
    """The runs of a batch: each notebook once for every choice of the swept values that are meant for it.

    A setting is meant for the notebook that it names, or else for all: then each has to know it.

    Args:
        notebooks: .ipynb files, or .py files in the percent format.
        settings: a later one of the same parameter counts.
        sweeps: their product is run.

    Raises:
        PlanError: if a notebook cannot be read, its kernel is not installed, its parameters cell is missing where it
            is needed or holds a derived value; if a parameter is unknown, or its value not allowed; or if
            expected.toml beside a notebook has a mistake.
    """
    problems: list[str] = []
    chosen = [one for path in notebooks if (one := _read(path, problems))]
    stems = [path.stem for path in notebooks]
    problems += [
        f"two notebooks have the same name, {stem}, and so would their executed copies; run one at a time"
        for stem in sorted({stem for stem in stems if stems.count(stem) > 1})
    ]
    problems += _of_unknown_notebooks([*settings, *sweeps], stems)
    problems += _set_and_swept(settings, sweeps)
    runs: list[Run] = []
    for one in chosen:
        problems += _of_notebook(one)
        problems += _of_unknown_parameters(one, [*settings, *sweeps], chosen)
        own_sweeps = [sweep for sweep in sweeps if _is_meant_for(sweep, one)]
        for choice in combinations(own_sweeps):
            runs.append(_run(one, [*settings, *choice], {setting.name for setting in choice}, problems))
    if problems:
        raise PlanError("\n".join(dict.fromkeys(problems)))
    return _with_names_of_their_own(runs)


def _read(path: Path, problems: list[str]) -> _Chosen | None:
    if path.suffix not in (".ipynb", ".py"):
        problems.append(f"{path.name} is no notebook; give an .ipynb file, or a .py file in the percent format")
        return None
    try:
        content = read_source(path) if path.suffix == ".py" else nbformat.read(path, as_version=4)
    except (SourceError, ValueError, AttributeError, OSError, nbformat.ValidationError) as error:
        problems.append(f"{path.name} cannot be read: {_first_line(error)}")
        return None
    try:
        return _Chosen(path, content, declared_parameters(content))
    except SyntaxError as error:
        problems.append(f"{path.name}: the cell tagged parameters is no plain Python: {error.msg}, line {error.lineno}")
        return None


def _of_notebook(one: _Chosen) -> list[str]:
    """What is wrong with a notebook, whatever was set."""
    name, problems = one.path.name, []
    if len(parameter_cells(one.content)) > 1:
        problems.append(f"{name} has more than one cell tagged parameters; the second would undo what is set")
    problems += [
        f"{name}: {derived} is derived from {source} in the cell tagged parameters, and would keep its default; "
        "compute it in a later cell"
        for derived, source in derived_parameters(one.content).items()
    ]
    installed = KernelSpecManager().find_kernel_specs()
    if one.kernel not in installed:
        names = ", ".join(sorted(installed))
        problems.append(
            f"{name} needs the kernel {one.kernel!r}, which is not installed; there are: {names}"
            + _nearest(one.kernel, installed)
        )
    try:
        expected_beside(one.path)
    except ExpectedError as error:
        problems.append(str(error))
    return problems


def _of_unknown_notebooks(set_by_user: Iterable[Setting | Sweep], stems: Sequence[str]) -> list[str]:
    return [
        f"{one.name} is set for the notebook {one.notebook!r}, which is not in this run; there are: {', '.join(stems)}"
        + _nearest(one.notebook, stems)
        for one in set_by_user
        if one.notebook and one.notebook not in stems
    ]


def _of_unknown_parameters(
    one: _Chosen, set_by_user: Iterable[Setting | Sweep], chosen: Sequence[_Chosen]
) -> list[str]:
    unknown = [item for item in set_by_user if _is_meant_for(item, one) and item.name not in one.parameters]
    if unknown and not parameter_cells(one.content):
        names = ", ".join(repr(item.name) for item in unknown)
        return [f"{one.path.name} has no parameter {names}: it has no cell tagged parameters"]
    problems = []
    for item in unknown:
        text = f"{one.path.name} has no parameter {item.name!r}; it has: {', '.join(one.parameters) or 'none'}"
        knowing = [other.path.stem for other in chosen if item.name in other.parameters]
        if knowing:
            text += f"; to set it only where it is known, write {knowing[0]}.{item.name}"
        problems.append(text + _nearest(item.name, one.parameters))
    return problems


def _set_and_swept(settings: Sequence[Setting], sweeps: Sequence[Sweep]) -> list[str]:
    swept = [sweep.name for sweep in sweeps]
    both = {setting.name for setting in settings} & set(swept)
    twice = {name for name in swept if swept.count(name) > 1}
    return [f"{name} is both set and swept" for name in sorted(both)] + [
        f"{name} is swept twice" for name in sorted(twice)
    ]


def _run(one: _Chosen, settings: Iterable[Setting], swept: set[str], problems: list[str]) -> Run:
    values = {}
    for setting in settings:
        if not _is_meant_for(setting, one) or setting.name not in one.parameters:
            continue
        parameter = one.parameters[setting.name]
        try:
            values[setting.name] = fitted(setting.value, parameter)
        except ValueMisfitError as error:
            near = _nearest(str(setting.value), allowed_values(parameter))
            problems.append(f"{one.path.name}: {setting.name} = {setting.value!r} {error}{near}")
    chosen = {name: value for name, value in values.items() if name in swept}
    shown = ", ".join(f"{name}={value}" for name, value in chosen.items())
    return Run(
        notebook=one.path,
        title=f"{one.path.stem} [{shown}]" if chosen else one.path.stem,
        content=nbformat.writes(one.content, version=nbformat.NO_CONVERT),
        kernel=one.kernel,
        file_name=_file_name(one.path.stem, chosen),
        parameters=values,
        swept=chosen,
        defaults={name: parameter.default for name, parameter in one.parameters.items() if parameter.plain},
    )


def _with_names_of_their_own(runs: Sequence[Run]) -> list[Run]:
    """The runs, with a number in the file's name where two values look alike in it."""
    taken: set[str] = set()
    named = []
    for run in runs:
        stem, name, number = run.file_name.removesuffix(".ipynb"), run.file_name, 2
        while name.lower() in taken:  # some file systems take capitals for small letters
            name, number = f"{stem}__{number}.ipynb", number + 1
        taken.add(name.lower())
        named.append(replace(run, file_name=name))
    return named


def _file_name(stem: str, swept: Mapping[str, Any]) -> str:
    parts = [re.sub(r"[^\w.+-]+", "_", f"{name}-{value}") for name, value in swept.items()]
    return "__".join([stem, *parts])[:_LONGEST_NAME] + ".ipynb"


def _is_meant_for(item: Setting | Sweep, one: _Chosen) -> bool:
    return item.notebook in ("", one.path.stem)


def _nearest(name: str, known: Iterable[str]) -> str:
    by_lower = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f"; did you mean {by_lower[found[0]]!r}?" if found else ""


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
