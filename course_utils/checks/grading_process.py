"""The process that runs the answers of one student's notebook: `python -m course_utils.checks.grading_process`.

It writes a line of JSON for whatever happens, at once, so that nothing is lost where an answer ends the process.
"""

import argparse
import contextlib
import json
import linecache
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

import course_utils.checks
from course_utils.checks import progress
from course_utils.checks.answer_cells import Cell, UnreadableError, cells_of, needed
from course_utils.checks.call import shown_name
from course_utils.checks.outcome import FAILED, OPEN, Outcome
from course_utils.checks.patience import OutOfTimeError, call_within
from course_utils.checks.quiet import quiet

BEGIN, OUTCOME, UNREADABLE, END = "begin", "outcome", "unreadable", "end"
_LONGEST = 200


def main() -> None:
    """Run one notebook's answers, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebook", type=Path)
    parser.add_argument("report", type=Path)
    parser.add_argument("--cell-seconds", type=float, default=60.0)
    parser.add_argument("--memory", type=int, default=0, help="bytes that it may take in addition to what it has")
    parser.add_argument("--skip", type=int, action="append", default=[], help="a cell that is not to be run")
    options = parser.parse_args()
    with options.report.open("a", encoding="utf-8") as stream:

        def say(kind: str, **content: Any) -> None:
            stream.write(json.dumps({"kind": kind, **content}) + "\n")
            stream.flush()

        try:
            cells = cells_of(options.notebook)
        except UnreadableError as error:
            say(UNREADABLE, reason=str(error))
            return
        tasks = course_utils.checks.tasks()
        _limit_memory(options.memory)
        run(cells, set(options.skip), options.cell_seconds, tasks, say)
        say(END)


def run(cells: list[Cell], skip: set[int], seconds: float, tasks: dict, say: Callable[..., None]) -> None:
    """Run the cells that matter, and say what came of each check.

    Args:
        cells: of the notebook.
        skip: numbers of cells that ended the process before.
        seconds: for one cell.
        tasks: the exercises by name.
        say: called with a kind and its content.
    """
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    vars(module).update(display=_nothing, get_ipython=lambda: _NoShell())
    judged: dict[str, Outcome] = {}
    progress.listen(lambda outcome: judged.update({outcome.exercise: outcome}))
    problems = {cell.number: cell.problem for cell in cells if cell.problem}
    for cell in needed(cells):
        if cell.number in skip:
            continue
        known = [name for name in cell.exercises if name in tasks]
        say(BEGIN, cell=cell.number, exercises=known)
        if known:
            _put_checks_back(module, tasks)
        judged.clear()
        error = _error_of(cell, vars(module), seconds)
        if error:
            problems[cell.number] = error[1]
        for name in known:
            if name in judged:
                say(OUTCOME, exercise=name, state=judged[name].state, diagnosis=judged[name].diagnosis)
            else:
                state, diagnosis = _why_not_judged(error, cell, cells, problems)
                say(OUTCOME, exercise=name, state=state, diagnosis=diagnosis)


def _error_of(cell: Cell, variables: dict[str, Any], seconds: float) -> tuple[BaseException, str] | None:
    """Run a cell; what it raised, and the same in words."""
    file = f"<cell {cell.number}>"
    linecache.cache[file] = (len(cell.code), None, cell.code.splitlines(keepends=True), file)
    try:
        code = compile(cell.tree, file, "exec")
        with quiet():
            call_within(seconds, lambda: exec(code, variables))
    except OutOfTimeError as error:
        return error, f"not done after {seconds:g} s"
    except BaseException as error:  # the student's, SystemExit included
        with contextlib.suppress(BaseException):
            return error, f"{shown_name(type(error))}: {error}"[:_LONGEST]
        return error, shown_name(type(error))
    return None


def _why_not_judged(
    error: tuple[BaseException, str] | None, check: Cell, cells: list[Cell], problems: dict[int, str]
) -> tuple[str, str]:
    """State and diagnosis of an exercise whose check was not reached."""
    if error is None:
        return OPEN, "its check was not called"
    if isinstance(error[0], NameError) and (name := error[0].name):
        for cell in reversed(cells[: check.number - 1]):
            if cell.number in problems and name in cell.code:
                return FAILED, f"its cell fails: {problems[cell.number]}"
        return OPEN, f"no answer: {name} is not defined"
    return FAILED, f"its check's cell fails: {error[1]}"


def _put_checks_back(module: types.ModuleType, tasks: dict) -> None:
    """The checks are the course's, whatever the notebook has put in their place."""
    for name in tasks:
        vars(course_utils.checks).pop(name, None)
    vars(module)["checks"] = course_utils.checks


def _limit_memory(extra: int) -> None:
    """Let allocations beyond a limit fail, where the system can do that; elsewhere the parent ends the process."""
    if not extra:
        return
    try:
        import resource

        limit = psutil.Process().memory_info().vms + extra
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    except (ImportError, OSError, ValueError):
        return


def _nothing(*arguments: object, **keywords: object) -> None:
    """Stand for what shows something in a notebook."""


class _NoShell:
    """Stand for IPython: magics and shell commands of a student's notebook do nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return _nothing


if __name__ == "__main__":
    main()
