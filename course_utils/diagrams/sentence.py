"""Attention over a sentence: one word asks, some words answer, each with its weight."""

import math
from collections.abc import Mapping, Sequence

from course_utils.diagrams.svg import Drawing

_WORDS = ("the", "cat", "left", "its", "milk", "because", "it", "was", "full")
# As in notebook 01: the query of "it", and the key of each word that it is compared with.
_QUERY = (1.8, 0.4)
_KEYS = {"cat": (2.0, 0.2), "left": (0.1, 0.1), "milk": (0.3, 1.8)}


def attention_over_a_sentence() -> Drawing:
    """The query of "it" is compared with three keys; their weights say how much of each value is taken."""
    weights = _weights(_QUERY, _KEYS)
    told = ", ".join(f"{word} {weight:.2f}" for word, weight in weights.items())
    drawing = Drawing(
        "attention-over-a-sentence",
        "Attention over a sentence",
        "The sentence reads: the cat left its milk because it was full. The word it sends out a query, which is "
        f"compared with the keys of three words and gives each a weight: {told}. The values of the words, "
        "weighted in this way, are summed to the output for it.",
        560,
        344,
    )
    places = _places(_WORDS)
    middle = places["left"]
    for word, x in places.items():
        role = "query" if word == "it" else "key" if word in weights else "token"
        width = _width_of(word)
        drawing.box((x, 92), word, role, width, 34, bold=word == "it")
        if word in weights:
            bend = ((x + places["it"]) / 2, 92 - 0.42 * abs(places["it"] - x))
            drawing.curve((places["it"], 75), bend, (x, 75), width=1 + 9 * weights[word], colour="#4a6fa5")
    drawing.text((places["it"], 128), "query", size=13)
    for word, weight in weights.items():
        x = places[word]
        drawing.text((x, 126), "key", size=13)
        drawing.line([(x, 136), (x, 152)])
        drawing.box((x, 168), f"{weight:.2f}", "weight", 50, 30)
        drawing.text((x, 198), "×")
        drawing.box((x, 228), "value", "value", 50, 30)
        drawing.line([(x, 244), (x, 272), (middle, 272), (middle, 296)], width=1 + 5 * weight, head=False)
    for y, note in ((168, "weights, which sum to 1"), (228, "what each word contributes")):
        drawing.text((places["milk"] + 40, y), note, size=13, anchor="start")
    drawing.box((middle, 312), "weighted sum", width=130)
    drawing.line([(middle + 65, 312), (middle + 100, 312)])
    drawing.text((middle + 108, 312), "output for “it”, mostly from “cat”", size=13, anchor="start")
    return drawing


def _weights(query: Sequence[float], keys: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Softmax of the scaled dot products of a query with keys."""
    scores = {
        word: sum(a * b for a, b in zip(query, key, strict=True)) / math.sqrt(len(query)) for word, key in keys.items()
    }
    total = sum(math.exp(score) for score in scores.values())
    return {word: math.exp(score) / total for word, score in scores.items()}


def _width_of(word: str) -> float:
    return 20 + 8.2 * len(word)


def _places(words: Sequence[str]) -> dict[str, float]:
    """The middle of each word's box, in a row with small gaps."""
    places, left = {}, 16.0
    for word in words:
        places[word] = left + _width_of(word) / 2
        left += _width_of(word) + 7
    return places
