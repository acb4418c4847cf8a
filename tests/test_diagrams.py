"""The diagrams: well-formed, told in words, within their card, readable on it, and put into a notebook."""

import itertools
import xml.etree.ElementTree as ElementTree

import pytest

from course_utils import diagrams
from course_utils.diagrams.svg import FILLS, INK, Drawing

SVG = "{http://www.w3.org/2000/svg}"
WIDTH_OF_A_LETTER = 0.62  # of the font size; wider than the letters of the usual fonts on average


def parsed(name: str) -> ElementTree.Element:
    return ElementTree.fromstring(diagrams.DIAGRAMS[name]().svg())


def boxes(root: ElementTree.Element) -> list[tuple[float, float, float, float]]:
    """Left, top, right and bottom of each box that holds words (rx 6)."""
    found = []
    for rect in root.iter(f"{SVG}rect"):
        if rect.get("rx") == "6":
            x, y, width, height = (float(rect.get(side)) for side in ("x", "y", "width", "height"))
            found.append((x, y, x + width, y + height))
    return found


def texts(root: ElementTree.Element) -> list[tuple[float, float, float, float, str]]:
    """Left, top, right and bottom of each text, and its words."""
    found = []
    for text in root.iter(f"{SVG}text"):
        x, y, size = (float(text.get(key)) for key in ("x", "y", "font-size"))
        width = WIDTH_OF_A_LETTER * size * len(text.text)
        left = {"start": x, "middle": x - width / 2, "end": x - width}[text.get("text-anchor")]
        found.append((left, y - 0.8 * size, left + width, y + 0.25 * size, text.text))
    return found


def overlap(one, other) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def test_all_that_the_course_draws_are_there():
    assert set(diagrams.DIAGRAMS) == {
        "architecture",
        "attention_over_a_sentence",
        "layer_types",
        "multihead",
        "scaled_dot_product",
    }


@pytest.mark.parametrize("name", diagrams.DIAGRAMS)
def test_a_diagram_has_a_title_and_a_description_that_name_it(name):
    root = parsed(name)
    drawing = diagrams.DIAGRAMS[name]()
    ids = {element.get("id"): element.text for element in root if element.get("id")}
    assert root.get("role") == "img"
    assert [ids[label] for label in root.get("aria-labelledby").split()] == [drawing.title, drawing.description]
    assert len(drawing.description) > 80


@pytest.mark.parametrize("name", diagrams.DIAGRAMS)
def test_everything_lies_within_the_card(name):
    root = parsed(name)
    width, height = (float(number) for number in root.get("viewBox").split()[2:])
    assert width <= 560  # legible where a page is 360 pixels wide: no text there below 8 pixels
    for left, top, right, bottom, words in [*texts(root), *((*box, "box") for box in boxes(root))]:
        assert (left >= 0, top >= 0, right <= width, bottom <= height) == (True,) * 4, words


@pytest.mark.parametrize("name", diagrams.DIAGRAMS)
def test_no_words_stand_on_others_and_no_box_on_another(name):
    root = parsed(name)
    for one, other in itertools.combinations(texts(root), 2):
        assert not overlap(one, other), (one[4], other[4])
    for one, other in itertools.combinations(boxes(root), 2):
        assert not overlap(one, other)


@pytest.mark.parametrize("name", diagrams.DIAGRAMS)
def test_ids_begin_with_the_name_of_the_diagram(name):
    root, prefix = parsed(name), diagrams.DIAGRAMS[name]().name + "-"
    assert all(element.get("id").startswith(prefix) for element in root.iter() if element.get("id"))


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * channel for weight, channel in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("role", FILLS)
def test_words_contrast_with_what_they_stand_on(role):
    assert (luminance(FILLS[role]) + 0.05) / (luminance(INK) + 0.05) > 9


def test_the_weights_of_the_sentence_are_those_of_the_notebook():
    words = " ".join(words for *_, words in texts(parsed("attention_over_a_sentence")))
    # softmax of (3.68, 0.22, 1.26) / sqrt(2)
    assert all(weight in words for weight in ("0.79", "0.07", "0.14"))


def test_words_are_escaped():
    drawing = Drawing("x", "a < b", 'say "a & b"', 100, 50)
    drawing.text((50, 25), "<b>")
    assert [text.text for text in ElementTree.fromstring(drawing.svg()).iter(f"{SVG}text")] == ["<b>"]


def test_without_a_notebook_the_words_are_printed(capsys):
    diagrams.show("multihead")
    assert capsys.readouterr().out.startswith("The tokens X are projected")


def test_a_notebook_is_given_the_picture_and_the_words(monkeypatch):
    shown = {}
    monkeypatch.setattr(diagrams.InteractiveShell, "initialized", lambda: True)
    monkeypatch.setattr(diagrams, "display", lambda data, metadata, raw: shown.update(data=data, metadata=metadata))
    diagrams.show("multihead")
    drawing = diagrams.DIAGRAMS["multihead"]()
    assert shown["data"] == {"image/svg+xml": drawing.svg(), "text/plain": drawing.description}
    assert shown["metadata"] == {"image/svg+xml": {"alt": drawing.description}}


def test_an_unknown_diagram_is_refused():
    with pytest.raises(ValueError, match=r"no diagram 'head'.*multihead"):
        diagrams.show("head")
