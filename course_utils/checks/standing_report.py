"""Where a learner stands, as a table with bars, as JSON and as JUnit's XML."""

import json
import re
from collections.abc import Mapping
from xml.etree import ElementTree

from rich.console import Group
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table

from course_utils.checks.exercise import Task
from course_utils.checks.outcome import OPEN
from course_utils.checks.progress import DONE, TRIED, Standing

_COLOURS = {DONE: "[green]✓ done[/]", TRIED: "[yellow]✗ tried[/]", OPEN: "[dim]○ open[/]"}
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def table_of(tasks: Mapping[str, Task], standings: Mapping[str, Standing]) -> Group:
    """Tables for the terminal: a bar for each notebook, and a line for each exercise.

    Args:
        tasks: all exercises by name.
        standings: of those that were checked.
    """
    overview = Table("notebook", "", "done", "tried", "open", title="Progress")
    details = Table("notebook", "exercise", "level", "minutes", "state", "tries", "last diagnosis")
    for notebook, names in by_notebook(tasks).items():
        states = [standings.get(name, Standing()).state for name in names]
        bar = ProgressBar(total=len(names), completed=states.count(DONE), width=24)
        overview.add_row(notebook, bar, *(str(states.count(state)) for state in (DONE, TRIED, OPEN)))
        for name in names:
            task, standing = tasks[name], standings.get(name, Standing())
            diagnosis = standing.diagnosis if standing.state == TRIED else ""
            row = [notebook, escape(task.title), task.difficulty, str(task.minutes), _COLOURS[standing.state]]
            details.add_row(*row, str(standing.tries or ""), escape(diagnosis))
        details.add_section()
    return Group(overview, details)


def json_of(tasks: Mapping[str, Task], standings: Mapping[str, Standing]) -> str:
    """The same for programs: counts, and a list of exercises."""
    rows = []
    for name, task in tasks.items():
        standing = standings.get(name, Standing())
        rows.append(
            {
                "exercise": name,
                "title": task.title,
                "notebook": task.notebook,
                "difficulty": task.difficulty,
                "minutes": task.minutes,
                "state": standing.state,
                "tries": standing.tries,
                "diagnosis": standing.diagnosis,
                "last": standing.last or None,
            }
        )
    counts = {state: sum(row["state"] == state for row in rows) for state in (DONE, TRIED, OPEN)}
    return json.dumps({"schema": 1, **counts, "exercises": rows}, indent=2, ensure_ascii=False)


def junit_of(tasks: Mapping[str, Task], standings: Mapping[str, Standing]) -> bytes:
    """The same for CI systems: a suite for each notebook; a tried exercise is a failure, an open one is skipped."""
    suites = ElementTree.Element("testsuites")
    for notebook, names in by_notebook(tasks).items():
        states = [standings.get(name, Standing()).state for name in names]
        counts = {"tests": len(names), "failures": states.count(TRIED), "errors": 0, "skipped": states.count(OPEN)}
        texts = {key: str(value) for key, value in counts.items()}
        suite = ElementTree.SubElement(suites, "testsuite", {"name": notebook, **texts})
        for name, state in zip(names, states, strict=True):
            case = ElementTree.SubElement(suite, "testcase", {"classname": notebook, "name": name})
            if state == TRIED:
                text = _NOT_IN_XML.sub("?", standings[name].diagnosis)
                ElementTree.SubElement(case, "failure", {"message": text})
            elif state == OPEN:
                ElementTree.SubElement(case, "skipped")
    return ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)


def by_notebook(tasks: Mapping[str, Task]) -> dict[str, list[str]]:
    """Names of the exercises of each notebook, both in their order."""
    found: dict[str, list[str]] = {}
    for name, task in tasks.items():
        found.setdefault(task.notebook, []).append(name)
    return dict(sorted(found.items()))
