"""The odd-one-out game: sets keep their images, odd ones and probabilities together when they are shuffled."""

import base64
import io
import json
import re

import numpy as np
import pytest
from piece_pages import digit_sets
from PIL import Image

from course_utils.figure_description import MIME_TYPE
from course_utils.interactive import odd_one_out_game

IMAGES, ODD, PROBABILITIES = digit_sets()


def rounds_of(piece) -> list[dict]:
    """The sets in the page, as JavaScript reads them."""
    call = re.search(r"^mount\(.*\(box\) => oddOneOutGame\(box, (.*)\)\);$", piece.html, flags=re.MULTILINE)
    return json.loads(call.group(1))["rounds"]


def pixels(url: str) -> np.ndarray:
    """Ink of a picture in the page: 255 is black."""
    return 255 - np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))))


def test_each_image_keeps_its_probability_and_the_odd_one_its_image():
    rounds = rounds_of(odd_one_out_game(IMAGES, ODD, PROBABILITIES))
    assert len(rounds) == len(IMAGES)
    for shown, images, odd, probabilities in zip(rounds, IMAGES, ODD, PROBABILITIES, strict=True):
        drawn = np.stack([pixels(url) for url in shown["pictures"]])
        places = [next(k for k, image in enumerate(drawn) if np.array_equal(image, wanted)) for wanted in images]
        assert sorted(places) == list(range(len(images)))
        np.testing.assert_allclose(np.array(shown["probabilities"])[places], probabilities, atol=1e-5)
        assert shown["odd"] == places[odd]


def test_the_odd_one_does_not_stand_at_one_place():
    many = np.tile(IMAGES, (8, 1, 1, 1))
    rounds = rounds_of(odd_one_out_game(many, np.tile(ODD, 8), np.tile(PROBABILITIES, (8, 1))))
    assert len({shown["odd"] for shown in rounds}) > 5
    again = rounds_of(odd_one_out_game(many, np.tile(ODD, 8), np.tile(PROBABILITIES, (8, 1))))
    other = rounds_of(odd_one_out_game(many, np.tile(ODD, 8), np.tile(PROBABILITIES, (8, 1)), seed=1))
    assert rounds == again
    assert rounds != other


def test_eight_sets_of_ten_are_small_and_described():
    piece = odd_one_out_game(np.tile(IMAGES, (2, 1, 1, 1)), np.tile(ODD, 2), np.tile(PROBABILITIES, (2, 1)))
    assert len(piece.facts["odd"]) == 8
    assert len(piece.html.encode()) <= 100_000
    described = piece.bundle()[MIME_TYPE]["piece"]
    assert described["kind"] == "oddOneOutGame"
    assert described["probabilities"]["shape"] == [8, 10]
    assert "finds it in 6 of them" in piece.alt


def test_images_in_colour_are_drawn_as_they_are():
    colours = np.random.default_rng(0).integers(0, 256, size=(1, 3, 4, 4, 3), dtype=np.uint8)
    (shown,) = rounds_of(odd_one_out_game(colours, [0], [[0.5, 0.25, 0.25]]))
    assert np.array_equal(255 - pixels(shown["pictures"][shown["odd"]]), colours[0, 0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"images": IMAGES[0]}, r"\[S, T, height, width\], \[S\] and \[S, T\]"),
        ({"odd": ODD[:2]}, r"got \[4, 10, 8, 8\], \[2\] and \[4, 10\]"),
        ({"odd": [0, 1, 2, 10]}, r"from 0 to 9, got \[0, 1, 2, 10\]"),
        ({"probabilities": 2 * PROBABILITIES}, "add up to 1"),
        ({"probabilities": PROBABILITIES * np.nan}, "add up to 1"),
    ],
)
def test_what_does_not_fit_together_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        odd_one_out_game(**{"images": IMAGES, "odd": ODD, "probabilities": PROBABILITIES} | changes)
