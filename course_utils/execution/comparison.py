"""Compare the outputs of a cell with the committed ones: numbers with a tolerance, everything else strictly."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from course_utils.execution.bounds import Range, Tolerance
from course_utils.figure_description import MIME_TYPE as FIGURE
from course_utils.results import MIME_TYPE as RESULT

# A number, but for digits within a name or a version (conv2d, 1.2.3): those are words.
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_WHOLE = re.compile(r"[-+]?\d+\.?")
# A picture's bytes differ between machines; the figure's description beside it says what it shows.
_IGNORED_MIMES = frozenset({"image/png"})
_IGNORED_WITH_DESCRIPTION = frozenset({"text/html"})  # an interactive piece: its values stand in the description too
_IGNORED_FIELDS = frozenset({"data", "metadata", "output_type", "execution_count", "traceback", "name", "transient"})


def differences(
    outputs: Sequence[Mapping[str, Any]],
    committed: Sequence[Mapping[str, Any]],
    tolerance: Tolerance,
    ranges: Mapping[str, Range],
) -> list[str]:
    """What differs between two lists of outputs, in words.

    Args:
        outputs: as they came now.
        committed: as they stand in the notebook.
        tolerance: how near numbers must be.
        ranges: of recorded results; one that has a range is held to it and not to the committed value.

    Returns:
        One line a difference; empty if the outputs are the same.
    """
    found = []
    for stream in ("stdout", "stderr"):
        now, before = _stream(outputs, stream), _stream(committed, stream)
        found += _compare(now, before, tolerance, stream)
    now, before = _shown(outputs), _shown(committed)
    if len(now) != len(before):
        found.append(f"{len(now)} outputs instead of {len(before)}")
    for number, (output, reference) in enumerate(zip(now, before, strict=False), start=1):
        found += _compare_outputs(output, reference, tolerance, ranges, f"output {number}")
    return found


def _compare_outputs(
    output: Mapping, reference: Mapping, tolerance: Tolerance, ranges: Mapping, place: str
) -> list[str]:
    if output["output_type"] != reference["output_type"]:
        return [f"{place} is of type {output['output_type']} instead of {reference['output_type']}"]
    data, before = dict(output.get("data", {})), dict(reference.get("data", {}))
    if data.keys() != before.keys():
        return [f"{place} is given as {sorted(data)} instead of {sorted(before)}"]
    name = data.get(RESULT, {}).get("name")
    if name in ranges and name == before[RESULT].get("name"):
        value = data[RESULT]["value"]
        return [] if value in ranges[name] else [f"{name} = {value:.6g} is outside its range, {ranges[name]}"]
    found = []
    ignored = _IGNORED_MIMES | _IGNORED_WITH_DESCRIPTION if FIGURE in data else _IGNORED_MIMES
    for mime in sorted(data.keys() - ignored):
        found += _compare(data[mime], before[mime], tolerance, f"{place}, {_MIME_IN_WORDS.get(mime, mime)}")
    found += _compare(output.get("metadata", {}), reference.get("metadata", {}), tolerance, f"{place}, metadata")
    for field in sorted((output.keys() | reference.keys()) - _IGNORED_FIELDS):  # of an error: its name and value
        found += _compare(output.get(field), reference.get(field), tolerance, f"{place}, {field}")
    return found


_MIME_IN_WORDS = {FIGURE: "figure", RESULT: "result"}


def _compare(value: Any, reference: Any, tolerance: Tolerance, place: str) -> list[str]:
    """Compare two plain values of any depth."""
    if isinstance(value, str) and isinstance(reference, str):
        return [] if same_text(value, reference, tolerance) else [_changed(place, value, reference)]
    if isinstance(value, Mapping) and isinstance(reference, Mapping):
        if value.keys() != reference.keys():
            return [f"{place} has {sorted(value)} instead of {sorted(reference)}"]
        tolerance = _scaled(tolerance, reference)
        return [line for key in value for line in _compare(value[key], reference[key], tolerance, f"{place}.{key}")]
    if isinstance(value, list) and isinstance(reference, list):
        if len(value) != len(reference):
            return [f"{place} has {len(value)} entries instead of {len(reference)}"]
        pairs = enumerate(zip(value, reference, strict=True))
        return [line for index, pair in pairs for line in _compare(*pair, tolerance, f"{place}[{index}]")]
    if _is_number(value) and _is_number(reference):
        both_whole = isinstance(value, int) and isinstance(reference, int)
        same = value == reference if both_whole else tolerance.allows(value, reference)
        return [] if same else [_changed(place, value, reference)]
    same = type(value) is type(reference) and value == reference
    return [] if same else [_changed(place, value, reference)]


def _scaled(tolerance: Tolerance, reference: Mapping[str, Any]) -> Tolerance:
    """For the summary of a plotted array: a mean that cancels to about 0 is as inexact as what it sums."""
    size = max([abs(reference[key]) for key in ("min", "max") if _is_number(reference.get(key))], default=1.0)
    return Tolerance(tolerance.rtol, tolerance.atol * max(1.0, size))


def same_text(text: str, reference: str, tolerance: Tolerance) -> bool:
    """Whether two texts have the same words around numbers that are near each other.

    Whole numbers are counts and must be equal. Spaces beside a number do not count: a sign shifts a column.
    """
    if text == reference:
        return True
    pieces = itertools.zip_longest(_pieces(text), _pieces(reference))
    return all(now is not None and before is not None and _same_piece(now, before, tolerance) for now, before in pieces)


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """The text as words and numbers in turn."""
    start = 0
    for match in _NUMBER.finditer(text):
        yield "words", text[start : match.start()]
        yield "number", match.group()
        start = match.end()
    yield "words", text[start:]


def _same_piece(piece: tuple[str, str], reference: tuple[str, str], tolerance: Tolerance) -> bool:
    (kind, now), (_, before) = piece, reference  # words and numbers take turns, so the kinds are the same
    if kind == "words":
        return re.sub(r" +", " ", now).strip(" ") == re.sub(r" +", " ", before).strip(" ")
    if _WHOLE.fullmatch(now) and _WHOLE.fullmatch(before):
        return float(now) == float(before)
    return tolerance.allows(float(now), float(before))


def _stream(outputs: Sequence[Mapping[str, Any]], name: str) -> str:
    return "".join(output["text"] for output in outputs if output.get("name") == name)


def _shown(outputs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [output for output in outputs if output["output_type"] != "stream"]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _changed(place: str, value: Any, reference: Any) -> str:
    """Say what changed; of texts with several lines, the first line that differs."""
    if isinstance(value, str) and isinstance(reference, str) and "\n" in value.strip() and "\n" in reference.strip():
        lines = itertools.zip_longest(value.splitlines(), reference.splitlines(), fillvalue="")
        value, reference = next((pair for pair in lines if pair[0] != pair[1]), (value, reference))
    return f"{place}: {value!r} instead of {reference!r}"
