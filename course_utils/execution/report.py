"""The report of a batch, in files beside the executed copies; docs/batch.md describes them.

results.json is for programs, junit.xml for CI systems, index.html for people.
"""

import json
import platform
import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import course_utils
from course_utils.atomic import write_atomically
from course_utils.execution.batch import Batch
from course_utils.execution.outcome import FAILED, PASSED, Outcome
from course_utils.execution.page import page_of

RESULTS, JUNIT, PAGE = "results.json", "junit.xml", "index.html"
SCHEMA = 1  # of results.json; another number when a reader would have to change
_VERSIONS_OF = ("torch", "numpy", "papermill", "nbclient")
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_report(batch: Batch) -> None:
    """Write or renew the three files; while the batch runs only results.json, which then has no end."""
    if batch.ended is not None:
        write_atomically(batch.folder / JUNIT, junit_of(batch))
        write_atomically(batch.folder / PAGE, page_of(batch, _times(batch)).encode())
    text = json.dumps(results_of(batch), indent=2, default=str, ensure_ascii=False)
    write_atomically(batch.folder / RESULTS, f"{text}\n".encode())


def results_of(batch: Batch) -> dict[str, Any]:
    """The content of results.json."""
    return {
        "schema": SCHEMA,
        **_times(batch),
        "exit_code": None if batch.ended is None else batch.exit_code,
        "planned": len(batch.runs),
        "versions": _versions(),
        "runs": [_entry(outcome) for outcome in batch.outcomes],
    }


def junit_of(batch: Batch) -> bytes:
    """The content of junit.xml: a test case for each run, with its results as properties."""
    failed = sum(outcome.status == FAILED for outcome in batch.outcomes)
    skipped = sum(outcome.status not in (PASSED, FAILED) for outcome in batch.outcomes)
    counts = {"tests": len(batch.outcomes), "failures": failed, "errors": 0, "skipped": skipped}
    times = _times(batch)
    attributes = {**counts, "time": f"{times['seconds'] or 0:.3f}", "timestamp": times["started"]}
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", _texts({"name": "course run", **attributes}))
    for outcome in batch.outcomes:
        _add_case(suite, outcome)
    return ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)


def remove_earlier_report(folder: Path) -> None:
    """Remove the report of an earlier batch and the copies that it lists, so that two do not mix."""
    try:
        runs = json.loads((folder / RESULTS).read_text(encoding="utf-8"))["runs"]
        copies = [run["output"] for run in runs if run["output"]]
    except (OSError, ValueError, KeyError, TypeError):
        copies = []  # there is none, or it is no report: what is not known to be ours stays
    for name in [*copies, RESULTS, JUNIT, PAGE]:
        if Path(name).name == name:
            (folder / name).unlink(missing_ok=True)


def _entry(outcome: Outcome) -> dict[str, Any]:
    run, failure = outcome.run, outcome.failure
    return {
        "notebook": run.notebook.as_posix(),
        "title": run.title,
        "parameters": {**run.defaults, **run.parameters},
        "set": list(run.parameters),
        "swept": list(run.swept),
        "status": outcome.status,
        "seconds": round(outcome.seconds, 3),
        "peak_memory_bytes": outcome.peak_memory,
        "results": dict(outcome.results),
        "error": failure
        and {
            "kind": failure.kind,
            "message": _plain(failure.message),
            "cell": failure.cell,
            "heading": failure.heading,
        },
        "note": outcome.note,
        "worker": outcome.worker,
        "output": run.file_name if outcome.copy is not None else None,
    }


def _add_case(suite: ElementTree.Element, outcome: Outcome) -> None:
    attributes = {"classname": outcome.run.notebook.stem, "name": outcome.run.title, "time": f"{outcome.seconds:.3f}"}
    case = ElementTree.SubElement(suite, "testcase", _texts(attributes))
    if outcome.results:
        properties = ElementTree.SubElement(case, "properties")
        for name, value in outcome.results.items():
            ElementTree.SubElement(properties, "property", _texts({"name": name, "value": value}))
    if outcome.failure:
        tag = "failure" if outcome.status == FAILED else "skipped"
        text = {"message": str(outcome.failure).splitlines()[0], "type": outcome.failure.kind}
        ElementTree.SubElement(case, tag, _texts(text)).text = _plain(str(outcome.failure))


def _times(batch: Batch) -> dict[str, Any]:
    seconds = None if batch.ended is None else round((batch.ended - batch.started).total_seconds(), 3)
    return {
        "started": batch.started.isoformat(timespec="seconds"),
        "ended": batch.ended and batch.ended.isoformat(timespec="seconds"),
        "seconds": seconds,
    }


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "course": course_utils.__version__}
    for name in _VERSIONS_OF:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _texts(attributes: Mapping[str, Any]) -> dict[str, str]:
    return {name: _plain(str(value)) for name, value in attributes.items()}


def _plain(text: str) -> str:
    """A text without the characters that XML does not allow."""
    return _NOT_IN_XML.sub("", text)
