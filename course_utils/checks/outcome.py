"""What came of a check: passed, failed or open, in words that a notebook and a terminal can show."""

import html
from dataclasses import dataclass

PASSED, FAILED, OPEN = "passed", "failed", "open"
STATES = (PASSED, FAILED, OPEN)

_COLOURS = {PASSED: "#2a7f62", FAILED: "#b3541e", OPEN: "#5f6b7a"}
_SIGNS = {PASSED: "✓", FAILED: "✗", OPEN: "○"}


@dataclass(frozen=True)
class Example:
    """The smallest input that shows what is wrong.

    Attributes:
        call: the input in words, one argument a line.
        got: what the answer gave; empty if it gave nothing.
        expected: what it should have given; empty where that is not to be told.
        note: what is special about this input; may be empty.
    """

    call: str
    got: str = ""
    expected: str = ""
    note: str = ""


@dataclass(frozen=True)
class Outcome:
    """What came of a check. A notebook shows it by itself; `print` shows the same in plain text.

    Attributes:
        exercise: name of the exercise.
        title: its title.
        notebook: the notebook that it stands in.
        section: the heading to read again.
        state: passed, failed or open; open means that there is nothing to judge yet, and it counts as no try.
        diagnosis: a few words for a table: the name of the mistake, or what kind of fault it is; empty if passed.
        message: the same in sentences.
        advice: what to think about; empty if there is none.
        covered: what the check tried; empty unless passed.
        observations: facts about the numbers that may help, each a sentence; they name no cause.
        example: the smallest input that shows the fault, if there is one.
    """

    exercise: str
    title: str
    notebook: str
    section: str
    state: str
    diagnosis: str = ""
    message: str = ""
    advice: str = ""
    covered: str = ""
    observations: tuple[str, ...] = ()
    example: Example | None = None

    @property
    def passed(self) -> bool:
        """Whether the answer is right."""
        return self.state == PASSED

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        lines = [f"{_SIGNS[self.state]} {self.title}: {self._verdict()}"]
        lines += [text for text in self._sentences() if text]
        if self.example:
            note = f" ({self.example.note})" if self.example.note else ""
            lines += [f"The smallest example{note}:", _indented(self.example.call)]
            for label, text in (("got", self.example.got), ("expected", self.example.expected)):
                if text:
                    lines += [f"  {label}:", _indented(_indented(text))]
        if pointer := self._pointer():
            lines.append(pointer)
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def paragraph(text: str) -> str:
            return f'<p style="margin:.3em 0">{html.escape(text)}</p>'

        parts = [
            f'<p style="margin:.3em 0"><b style="color:{_COLOURS[self.state]}">{_SIGNS[self.state]} '
            f"{html.escape(self._verdict())}</b> {html.escape(self.title)}</p>"
        ]
        parts += [paragraph(text) for text in self._sentences() if text]
        if self.example:
            note = f" ({self.example.note})" if self.example.note else ""
            parts += [paragraph(f"The smallest example{note}:"), _block(self.example.call)]
            sides = [("got", self.example.got), ("expected", self.example.expected)]
            shown = [(label, text) for label, text in sides if text]
            columns = "".join(
                f'<td style="text-align:left;vertical-align:top;padding:0 2em 0 0"><b>{label}</b>{_block(text)}</td>'
                for label, text in shown
            )
            if shown:
                parts.append(f"<table><tr>{columns}</tr></table>")
        if pointer := self._pointer():
            parts.append(paragraph(pointer))
        style = f"border-left:4px solid {_COLOURS[self.state]};padding:.1em .8em"
        return f'<div style="{style}">{"".join(parts)}</div>'

    def _verdict(self) -> str:
        return {PASSED: "passed", FAILED: "not yet right", OPEN: "not done yet"}[self.state]

    def _sentences(self) -> list[str]:
        covered = f"Covered: {self.covered}." if self.covered else ""
        return [self.message, *self.observations, self.advice, covered]

    def _pointer(self) -> str:
        return f"To read again: “{self.section}” in {self.notebook}." if self.state == FAILED else ""


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _block(text: str) -> str:
    return f'<pre style="margin:.2em 0;padding:0;background:none">{html.escape(text)}</pre>'
