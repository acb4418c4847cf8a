"""The interactive pieces in a real browser: on a page from disk, offline, by mouse and by the keyboard alone."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from browser import WIDTHS, axe_core, opened, serious_findings
from piece_pages import digit_sets, page_of, random_maps, reverse_piece, saved_reverse_model

from course_utils.interactive import attention_explorer, odd_one_out_game, warmup_schedule

TOKENS = ["the", "cat", "sat", "</script><b>", '"on"', "日本語"]
MAPS = random_maps(2, 2, 6)
EXPLORER = attention_explorer(MAPS, TOKENS, alt="Weights of two layers.")

MODEL = saved_reverse_model()
GAME = odd_one_out_game(*digit_sets())
PIECES = {
    "explorer": EXPLORER,
    "reverse": reverse_piece(MODEL),
    "game": GAME,
    "schedule": warmup_schedule(warmup=100, max_iters=1000, lr=1e-3, longest=2000),
}


@pytest.fixture(scope="module")
def page_with(tmp_path_factory):
    """The path of a page with the pieces of these names."""

    def make(*names: str) -> Path:
        return page_of(tmp_path_factory.mktemp("page"), *(PIECES[name] for name in names))

    return make


# Every piece.


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_pieces_fit_the_window_and_say_nothing_to_the_console(chromium, page_with, width, dark):
    with opened(chromium, page_with(*PIECES), width=width, dark=dark) as page:
        assert page.locator(".piece").count() == len(PIECES)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        ground = page.locator(".piece").first.evaluate("(node) => getComputedStyle(node).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 200) == dark


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious(chromium, page_with, dark):
    source = axe_core()
    with opened(chromium, page_with(*PIECES), dark=dark, width=360) as page:
        assert serious_findings(page, source) == []


@pytest.mark.parametrize("name", PIECES)
def test_without_javascript_the_plain_figure_stands_there(chromium, page_with, name):
    with opened(chromium, page_with(name), javascript=False) as page:
        figure = page.get_by_role("img", name=PIECES[name].alt)
        assert figure.is_visible()
        assert figure.bounding_box()["width"] > 200
    with opened(chromium, page_with(name)) as page:
        assert not page.locator("img").first.is_visible()
        assert page.locator(".piece").is_visible()


def test_a_piece_may_stand_twice_and_its_script_run_again(chromium, page_with):
    with opened(chromium, page_with(*PIECES, *PIECES)) as page:
        assert page.locator(".piece").count() == 2 * len(PIECES)
        before = page.locator(".piece").first.inner_text()
        page.evaluate(
            """() => { for (const script of document.querySelectorAll("script")) {
                const again = document.createElement("script");
                again.textContent = script.textContent;
                script.replaceWith(again);
            } }"""
        )
        assert page.locator(".piece").count() == 2 * len(PIECES)
        assert page.locator(".piece").first.inner_text() == before


def test_a_piece_is_built_when_it_is_put_into_the_page_later(chromium, page_with, tmp_path):
    """As Jupyter does it: the HTML first, then each script made anew."""
    with opened(chromium, page_of(tmp_path)) as page:
        page.evaluate(
            """(html) => {
                const output = document.createElement("div");
                output.innerHTML = html;
                for (const script of output.querySelectorAll("script")) {
                    const again = document.createElement("script");
                    again.textContent = script.textContent;
                    script.replaceWith(again);
                }
                document.body.append(output);
            }""",
            EXPLORER.html,
        )
        assert page.locator(".piece").is_visible()


@pytest.mark.parametrize(
    ("node", "name", "value", "dark"),
    [
        ("documentElement", "data-theme", "dark", True),  # Sphinx
        ("body", "data-jp-theme-light", "false", True),  # JupyterLab
        ("body", "class", "vscode-dark", True),
        ("documentElement", "theme", "dark", True),  # Colab
        ("documentElement", "data-theme", "light", False),
    ],
)
def test_a_piece_follows_the_theme_of_its_page(chromium, page_with, node, name, value, dark):
    with opened(chromium, page_with("explorer"), dark=not dark) as page:
        page.evaluate("([node, name, value]) => document[node].setAttribute(name, value)", [node, name, value])
        host = page.locator("[data-course-piece]")
        page.wait_for_function(
            "([host, dark]) => host.hasAttribute('data-dark') === dark", arg=[host.element_handle(), dark]
        )


def test_print_is_dark_on_light(chromium, page_with):
    with opened(chromium, page_with("explorer"), dark=True) as page:
        page.emulate_media(media="print", color_scheme="dark")
        assert page.locator(".heading").first.evaluate("(node) => getComputedStyle(node).color") == "rgb(0, 0, 0)"


# The attention explorer.


def shown_weights(page) -> list[float]:
    """The numbers on the keys; a masked key counts 0."""
    texts = page.locator(".key .number").all_inner_texts()
    return [0.0 if text == "masked" else float(text) for text in texts]


def test_pointing_at_a_query_shows_its_weights_and_leaving_shows_the_chosen_one(chromium, page_with):
    with opened(chromium, page_with("explorer")) as page:
        rows = page.get_by_role("radio", name=re.compile("^query "))
        np.testing.assert_allclose(shown_weights(page), MAPS[0][0, 0], atol=6e-4)
        rows.nth(2).hover()
        np.testing.assert_allclose(shown_weights(page), MAPS[0][0, 2], atol=6e-4)
        page.locator(".cell").nth(2 * 6 + 5).hover()
        assert page.locator(".readout").inner_text() == f"“sat” gives “日本語” {MAPS[0][0, 2, 5]:.3f}"
        page.locator("h1").hover()
        np.testing.assert_allclose(shown_weights(page), MAPS[0][0, 0], atol=6e-4)
        rows.nth(4).click()
        page.locator("h1").hover()
        np.testing.assert_allclose(shown_weights(page), MAPS[0][0, 4], atol=6e-4)


def test_clicked_keys_are_masked_and_the_rest_renormalised(chromium, page_with):
    with opened(chromium, page_with("explorer")) as page:
        keys = page.locator(".key")
        keys.nth(1).click()
        page.locator("text.pressable").nth(4).click()  # a key's name on the map does the same
        expected = MAPS[0][0, 0] * [1, 0, 1, 1, 0, 1]
        np.testing.assert_allclose(shown_weights(page), expected / expected.sum(), atol=6e-4)
        assert [key.get_attribute("aria-pressed") for key in keys.all()] == [
            "false",
            "true",
            "false",
            "false",
            "true",
            "false",
        ]
        for key in (0, 2, 3, 5):
            keys.nth(key).click()
        assert shown_weights(page) == [0] * 6
        page.get_by_role("button", name="Unmask all").click()
        np.testing.assert_allclose(shown_weights(page), MAPS[0][0, 0], atol=6e-4)


def test_all_of_the_explorer_is_reached_by_the_keyboard(chromium, page_with):
    with opened(chromium, page_with("explorer")) as page:
        status = page.get_by_role("status")

        def focused() -> str:
            return page.evaluate(
                """() => {
                    const node = document.activeElement.shadowRoot.activeElement;
                    return node.getAttribute("aria-label") || node.textContent;
                }"""
            )

        page.keyboard.press("Tab")
        assert focused() == "layer 1, head 1"
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        assert focused() == "layer 2, head 2"
        assert status.inner_text().startswith("layer 2, head 2, query 1, the: ")
        page.keyboard.press("Tab")
        assert focused() == "query 1: the"
        page.keyboard.press("End")
        page.keyboard.press("ArrowUp")
        assert focused() == 'query 5: "on"'
        np.testing.assert_allclose(shown_weights(page), MAPS[1][1, 4], atol=6e-4)
        page.keyboard.press("Tab")
        page.keyboard.press("ArrowRight")
        assert focused().startswith("mask key 2: cat")
        page.keyboard.press("Space")
        expected = MAPS[1][1, 4] * [1, 0, 1, 1, 1, 1]
        np.testing.assert_allclose(shown_weights(page), expected / expected.sum(), atol=6e-4)
        assert status.inner_text().endswith("; 1 masked")
        told = {name: float(weight) for name, weight in re.findall(r"(\S+) (\d\.\d+)", status.inner_text())}
        assert told["the"] == pytest.approx(expected[0] / expected.sum(), abs=6e-4)
        page.keyboard.press("Tab")
        assert focused() == "Unmask all"
        page.keyboard.press("Enter")
        assert focused().startswith("mask key 2: cat")
        np.testing.assert_allclose(shown_weights(page), MAPS[1][1, 4], atol=6e-4)


ODD_SHAPES = {
    "one token": attention_explorer(random_maps(1, 1, 1), ["alone"]),
    "more keys than queries": attention_explorer(random_maps(1, 3, 2, 40), ["q1", "q2"], keys=range(40)),
    "names that are long, empty or of one line more": attention_explorer(
        random_maps(3, 1, 4), ["x" * 200, "", "two\nlines", "a b"]
    ),
    "queries that see nothing": attention_explorer([np.zeros((1, 3, 3))], "abc"),
    "many tokens": attention_explorer(random_maps(1, 1, 64), [f"token {number}" for number in range(64)]),
    "images": attention_explorer(random_maps(1, 12, 4), "abcd", thumbnails=digit_sets()[0][0, :4]),
}


@pytest.mark.parametrize("name", ODD_SHAPES)
def test_maps_of_any_shape_can_be_looked_into(chromium, tmp_path, name):
    piece = ODD_SHAPES[name]
    shape = piece.facts["weights"]["shape"]
    with opened(chromium, page_of(tmp_path, piece), width=360) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert page.locator(".cell").count() == shape[2] * shape[3]
        row = page.get_by_role("radio", name=f"query {shape[2]}: ")
        row.focus()
        row.press("Space")
        assert row.get_attribute("aria-checked") == "true"
        page.locator(".key").last.press("Space")
        assert page.get_by_role("status").inner_text().endswith("; 1 masked")


def test_focus_is_visible(chromium, page_with):
    with opened(chromium, page_with("explorer")) as page:
        page.keyboard.press("Tab")
        assert page.locator(".tile").first.evaluate("(node) => getComputedStyle(node).outlineStyle") == "solid"
        page.keyboard.press("Tab")
        assert page.locator(".row .frame").first.evaluate("(node) => getComputedStyle(node).strokeWidth") == "4px"


def test_names_of_tokens_stay_text(chromium, page_with):
    with opened(chromium, page_with("explorer")) as page:
        assert page.locator(".key .name").all_inner_texts() == TOKENS
        assert page.locator(".piece b").count() == 0


# The reverse model.


def type_digits(page, digits: str) -> None:
    page.get_by_label("digits").fill(digits)


def outputs(page) -> list[int]:
    return [int(text) for text in page.locator(".inout .output td").all_inner_texts()]


def test_the_reverse_model_answers_while_one_types(chromium, page_with):
    with opened(chromium, page_with("reverse")) as page:
        page.keyboard.press("Tab")
        page.keyboard.press("Control+A")
        page.keyboard.type("3141592653589793")
        assert outputs(page) == [int(digit) for digit in reversed("3141592653589793")]
        assert page.get_by_role("status").inner_text() == "All 16 outputs are right."
        assert page.locator(".cell").count() == 16 * 16


@pytest.mark.parametrize("digits", ["7", "12", "90210", "0000000", "123456789012345"])
def test_the_page_shows_pytorchs_output_at_other_lengths_and_says_they_were_not_trained(chromium, page_with, digits):
    inputs = MODEL.one_hot(torch.tensor([[int(digit) for digit in digits]]))
    with torch.no_grad():
        predicted = MODEL(inputs)[0]
    attention = MODEL.get_attention_maps(inputs)[0][0, 0]
    with opened(chromium, page_with("reverse")) as page:
        type_digits(page, digits)
        assert outputs(page) == predicted.argmax(dim=-1).tolist()
        assert f"to do with {len(digits)}." in page.get_by_role("status").inner_text()
        shown = [float(text) for text in page.locator(".class .number").all_inner_texts()]
        np.testing.assert_allclose(shown, predicted[0].softmax(dim=-1), atol=6e-4)
        page.locator(".cell").last.hover()
        told = re.search(r"Attention: (\S+) to position (\d+)", page.locator(".readout").inner_text())
        assert float(told[1]) == pytest.approx(float(attention[-1, -1]), abs=6e-4)
        assert int(told[2]) == len(digits)


def test_what_is_no_digit_is_left_out_and_nothing_typed_is_said(chromium, page_with):
    with opened(chromium, page_with("reverse")) as page:
        type_digits(page, "a1b2-3")
        assert page.get_by_label("digits").input_value() == "123"
        type_digits(page, "")
        assert page.get_by_role("status").inner_text() == "Type a digit."
        page.get_by_role("button", name="16 random digits").click()
        assert len(page.get_by_label("digits").input_value()) == 16
        assert page.get_by_role("status").inner_text().endswith("right.")


def test_positions_of_the_reverse_model_are_reached_by_the_keyboard(chromium, page_with):
    with opened(chromium, page_with("reverse")) as page:
        for _ in range(3):
            page.keyboard.press("Tab")
        page.keyboard.press("ArrowDown")
        assert page.locator(".heading").inner_text().startswith("Position 2: output ")


def test_keys_of_a_piece_do_not_reach_the_page_around_it(chromium, page_with):
    """Sphinx turns the page at an arrow key, and Jupyter acts on digits and letters."""
    with opened(chromium, page_with("reverse")) as page:
        page.evaluate("window.keys = []; document.addEventListener('keydown', (event) => window.keys.push(event.key))")
        page.get_by_label("digits").press("5")
        page.get_by_label("digits").press("ArrowLeft")
        page.get_by_label("digits").press("Control+K")
        assert page.evaluate("window.keys.filter((key) => key !== 'Control')") in (["k"], ["K"])
        assert page.locator("[data-course-piece]").get_attribute("data-lm-suppress-shortcuts") == "true"


# The game.


def test_the_game_is_played_by_the_keyboard_and_keeps_both_scores(chromium, page_with):
    odd = GAME.facts["odd"]
    with opened(chromium, page_with("game")) as page:
        assert [image.get_attribute("alt") for image in page.locator(".card img").all()][2] == "image 3 of 10"
        page.keyboard.press("Tab")
        for round_ in range(4):
            place = odd[round_] if round_ < 2 else (odd[round_] + 1) % 10  # two right, two wrong
            assert page.locator(".card .number").all_inner_texts() == [""] * 10
            for _ in range(place):
                page.keyboard.press("ArrowRight")
            page.keyboard.press("Space")
            status = page.get_by_role("status").inner_text()
            assert status.startswith("Right: " if round_ < 2 else "Not this one: ")
            assert f"image {odd[round_] + 1} is the odd one" in status
            assert page.locator(".card.odd").get_by_role("img").get_attribute("alt") == f"image {odd[round_] + 1} of 10"
            page.locator(".card").nth((place + 1) % 10).click(force=True)  # a second choice does not count
            page.get_by_role("button", name="Play again" if round_ == 3 else "Next set").press("Enter")
            if round_ < 3:
                right = min(round_ + 1, 2)
                score = f"You found {right} of {round_ + 1}, the model {round_ + 1} of {round_ + 1}."
                assert page.locator(".score").inner_text() == score
        assert page.locator(".heading").inner_text().startswith("Set 1 of 4")
        assert page.locator(".score").inner_text() == ""


def test_probabilities_of_the_game_are_the_models(chromium, page_with):
    with opened(chromium, page_with("game")) as page:
        for _ in range(3):
            page.locator(".card").first.click()
            page.get_by_role("button", name="Next set").click()
        page.locator(".card").first.click()
        shown = [float(text.removesuffix(" %")) for text in page.locator(".card .number").all_inner_texts()]
        assert sorted(shown) == [2.0] * 9 + [82.0]
        assert re.search(r"The model gives it 2.0 %, and image \d+ 82.0 %", page.get_by_role("status").inner_text())
        assert page.locator(".score").inner_text().endswith("the model 3 of 4.")


# The schedule.


def test_sliders_change_the_curve(chromium, page_with):
    with opened(chromium, page_with("schedule")) as page:
        warmup = page.get_by_role("slider", name="warm-up steps")
        curve = page.locator("path.factor")
        peak = 0.5 * (1 + np.cos(np.pi * 100 / 1000)) * 1e-3
        assert f"{peak:.2g}".replace("e-0", "e-") in page.get_by_role("status").inner_text()
        before = curve.get_attribute("d")
        page.keyboard.press("Tab")
        page.keyboard.press("ArrowRight")
        assert warmup.input_value() == "101"
        assert curve.get_attribute("d") != before
        page.keyboard.press("Home")
        assert "100.0 % of the rate at factor 1, at step 0" in page.get_by_role("status").inner_text()
        assert curve.get_attribute("d") == page.locator("path.without").get_attribute("d")
        page.get_by_role("slider", name="rate at factor 1").press("End")
        assert "largest rate is 0.1," in page.get_by_role("status").inner_text()
        page.get_by_role("slider", name="horizon").press("Home")
        assert "largest rate is 0.1, 100.0 %" in page.get_by_role("status").inner_text()
        warmup.press("End")
        assert "does not end before the horizon" in page.get_by_role("status").inner_text()
