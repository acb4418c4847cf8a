"""The attention explorer: what travels in the page is what was given, small, and safe to put into any page."""

import base64
import html
import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import colormaps
from piece_pages import random_maps, run_javascript

from course_utils.figure_description import MIME_TYPE
from course_utils.interactive import attention_explorer, show
from course_utils.interactive.packing import pack_weights

NASTY = ["</script><script>alert(1)</script>", '"quoted"', "it's", "&amp; <!--", "日本語", "ünï\u2028", "$x$", "\\"]


def data_of(piece) -> dict:
    """The data in the page, as JavaScript reads it."""
    call = re.search(r"^mount\(.*\(box\) => explorer\(box, (.*)\)\);$", piece.html, flags=re.MULTILINE)
    return json.loads(call.group(1))


def unpacked(packed: dict, shape) -> np.ndarray:
    numbers = np.frombuffer(base64.b64decode(packed["data"]), dtype=f"<u{packed['bits'] // 8}")
    return (packed["largest"] * (numbers / (2 ** packed["bits"] - 1)) ** 2).reshape(shape)


@pytest.mark.parametrize("sharpness", [0.0, 1.0, 3.0])
def test_six_layers_of_eight_heads_over_32_tokens_take_at_most_100_kb(sharpness):
    tokens = [f"token {number}" for number in range(32)]
    piece = attention_explorer(random_maps(6, 8, 32, sharpness=sharpness), tokens)
    assert len(piece.html.encode()) <= 100_000


@pytest.mark.parametrize(("layers", "heads", "length", "bits"), [(6, 8, 32, 8), (1, 2, 6, 16), (2, 4, 10, 16)])
def test_weights_in_the_page_are_the_maps_within_the_stated_error(layers, heads, length, bits):
    maps = random_maps(layers, heads, length)
    data = data_of(attention_explorer(maps, range(length)))
    assert data["weights"]["bits"] == bits
    assert data["weights"]["error"] <= {8: 0.004, 16: 0.00002}[bits]
    read = run_javascript(["weights.js"], "Array.from(unpackWeights(packed))", packed=data["weights"])
    np.testing.assert_allclose(np.reshape(read, (layers, heads, length, length)), maps, atol=data["weights"]["error"])


@given(st.integers(1, 40), st.floats(0.0, 20.0), st.integers(0, 2**32 - 1))
def test_packed_weights_are_within_the_error_and_zero_stays_zero(length, sharpness, seed):
    weights = np.stack(random_maps(10, 2, length, seed=seed, sharpness=sharpness))
    weights[0, 0, 0] = 0.0
    packed = pack_weights(weights)
    read = unpacked(packed, weights.shape)
    assert np.abs(read - weights).max() <= packed["error"]
    assert (read[0, 0, 0] == 0).all()
    assert packed["bits"] == (16 if weights.size <= 15_000 else 8)


def test_masked_keys_get_nothing_and_the_others_a_sum_of_one():
    rows = [[0.5, 0.25, 0.25], [0.1, 0.9, 0.0], [0.0, 1.0, 0.0]]
    masked = [False, True, False]
    program = "rows.map((row) => maskedRow(row, masked))"
    assert run_javascript(["weights.js"], program, rows=rows, masked=masked) == [
        [0.5 / 0.75, 0, 0.25 / 0.75],
        [1, 0, 0],
        [0, 0, 0],  # nothing is left
    ]
    assert run_javascript(["weights.js"], program, rows=rows, masked=[False] * 3) == rows
    assert run_javascript(["weights.js"], program, rows=rows, masked=[True] * 3) == [[0, 0, 0]] * 3


def test_colours_are_those_of_the_static_figures():
    shares = np.linspace(0, 1, 101)
    drawn = run_javascript(["page.js"], "shares.map(rampColour)", shares=shares.tolist())
    np.testing.assert_allclose(drawn, 255 * colormaps["cividis"](shares)[:, :3], atol=11)
    assert run_javascript(["page.js"], "[rampColour(-1), rampColour(7)]") == [drawn[0], drawn[-1]]


def test_tokens_cannot_break_out_of_the_page():
    piece = attention_explorer(random_maps(1, 1, len(NASTY)), NASTY, alt='<b> & "alt"')
    assert data_of(piece)["queries"] == NASTY
    opened = re.findall(r"<(/?[a-z!][a-z-]*)", piece.html, flags=re.IGNORECASE)
    inside, _, rest = piece.html.partition("<script>")
    program, end, after = rest.partition("</script>")
    assert end
    assert after == ""
    assert opened.count("script") == opened.count("/script") == 1
    assert "<!--" not in program
    assert "\u2028" not in program
    assert re.search(r'alt="([^"]*)"', inside).group(1) == html.escape('<b> & "alt"')


def test_pieces_are_told_apart_by_their_content_and_are_the_same_each_time():
    def key(piece) -> str:
        return re.search(r'data-course-piece="([0-9a-f]{12})"', piece.html).group(1)

    first, again = attention_explorer(random_maps(1, 2, 4), "abcd"), attention_explorer(random_maps(1, 2, 4), "abcd")
    assert first.html == again.html
    others = [
        attention_explorer(random_maps(1, 2, 4, seed=1), "abcd"),
        attention_explorer(random_maps(1, 2, 4), "abce"),
    ]
    assert len({key(piece) for piece in (first, *others)}) == 3
    assert first.html.count(key(first)) == 2


def test_the_page_asks_for_nothing():
    piece = attention_explorer(random_maps(1, 2, 4), "abcd")
    addresses = set(re.findall(r"https?://[\w./-]+", piece.html))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert not re.search(r"\b(?:fetch|import|XMLHttpRequest|localStorage|cookie)\b", piece.html)


def test_values_are_described_for_the_comparison():
    maps = random_maps(2, 2, 3, 4)
    bundle = attention_explorer(maps, "abc", keys="wxyz", alt="Weights.").bundle()
    assert set(bundle) == {"text/html", "text/plain", MIME_TYPE}
    assert bundle["text/plain"] == "Weights."
    described = bundle[MIME_TYPE]["piece"]
    assert described["kind"] == "explorer"
    assert described["queries"] == list("abc")
    assert described["keys"] == list("wxyz")
    assert described["weights"]["shape"] == [2, 2, 3, 4]
    assert described["weights"]["max"] == pytest.approx(np.max(maps), rel=1e-5)
    json.dumps(bundle, allow_nan=False)


def test_the_plain_figure_is_drawn_from_the_maps():
    single = attention_explorer(random_maps(1, 1, 5), "abcde").fallback
    assert [label.get_text() for label in single.axes[0].get_xticklabels()] == list("abcde")
    several = attention_explorer(random_maps(2, 3, 5), "abcde").fallback
    assert [axes.get_title() for axes in several.axes[:6]][::3] == ["layer 1, head 1", "layer 2, head 1"]
    many = attention_explorer(random_maps(6, 8, 32), range(32)).fallback
    np.testing.assert_array_equal(many.axes[0].images[0].get_array(), random_maps(6, 8, 32)[0][0])


def test_thumbnails_travel_as_small_images():
    images = np.arange(3 * 8 * 8, dtype=np.uint8).reshape(3, 8, 8)
    piece = attention_explorer(random_maps(1, 1, 3), ["one", "two", "three"], thumbnails=images)
    pictures = data_of(piece)["pictures"]
    assert len(set(pictures)) == 3
    assert all(picture.startswith("data:image/png;base64,") and len(picture) < 300 for picture in pictures)
    with pytest.raises(ValueError, match=r"thumbnails must be \[3, height, width\]"):
        attention_explorer(random_maps(1, 1, 3), "abc", thumbnails=images[:2])


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        ([], "one .H, Tq, Tk. for each layer"),
        ([np.ones((3, 3)) / 3], "for each layer, all of one shape"),
        ([np.ones((1, 3, 3)) / 3, np.ones((2, 3, 3)) / 3], "of one shape"),
        ([np.ones((1, 3, 3))], "add up to 1.*got 3;"),
        ([np.full((1, 3, 3), np.nan)], "finite"),
        ([np.array([[[2.0, -1.0, 0.0]] * 3])], "not negative"),
        ([np.ones((1, 4, 4)) / 4], "4 queries and 4 keys need as many names, got 3 tokens and 3 keys"),
    ],
)
def test_what_are_no_maps_is_refused(maps, message):
    with pytest.raises(ValueError, match=message):
        attention_explorer(maps, "abc")


def test_rows_that_see_no_key_are_accepted():
    maps = np.stack(random_maps(1, 1, 3))
    maps[0, 0, 1] = 0
    assert attention_explorer(list(maps), "abc").facts["weights"]["min"] == 0


def test_alt_text_must_say_something():
    with pytest.raises(ValueError, match="alt text"):
        attention_explorer(random_maps(1, 1, 3), "abc", alt="  ")


def test_show_puts_the_bundle_into_a_notebook_and_prints_the_alt_text_elsewhere(monkeypatch, capsys):
    piece = attention_explorer(random_maps(1, 1, 3), "abc", alt="Weights.")
    show(piece)
    assert capsys.readouterr().out == "Weights.\n"
    shown = []
    monkeypatch.setattr("course_utils.interactive.notebook.InteractiveShell.initialized", lambda: True)
    monkeypatch.setattr(
        "course_utils.interactive.notebook.display", lambda *args, **kwargs: shown.append((args, kwargs))
    )
    show(piece)
    assert shown == [((piece.bundle(),), {"raw": True})]
