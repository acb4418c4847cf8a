"""The site in a real browser: on a phone and a desktop, light and dark, by the keyboard, offline, and printed."""

import io
import re
import time
from pathlib import Path

import pytest
from browser import WIDTHS, opened, serious_findings

ROOT = Path(__file__).resolve().parents[2]
HEAVIEST = 1_500_000  # bytes of a notebook's page with everything that it loads
SCREENSHOTS = ROOT / "docs" / "_build" / "screenshots"  # not in git; CI keeps them
A4 = 794  # pixels of width at 96 to the inch
READY = "document.fonts.ready.then(() => true)"


def every(site: Path) -> list[Path]:
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


def notebooks(site: Path) -> list[Path]:
    return sorted((site / "notebooks").glob("*.html"))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_fits_the_window_and_says_nothing_to_the_console(chromium, site, width, dark):
    wide = {}
    with opened(chromium, site / "index.html", width=width, dark=dark) as page:
        for path in every(site):
            page.goto(path.as_uri())
            needed = page.evaluate("document.documentElement.scrollWidth")
            if needed > width:
                wide[path.name] = needed
            ground = page.locator("body").evaluate("(node) => getComputedStyle(node).backgroundColor")
            assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 200) == dark, path.name
    assert wide == {}


def test_formulas_have_a_size_and_the_font_of_the_site(chromium, site):
    with opened(chromium, site / "notebooks" / "01_attention.html") as page:
        page.evaluate(READY)
        boxes = page.locator("math").evaluate_all(
            "(all) => all.map((one) => one.getBoundingClientRect()).map((box) => [box.width, box.height])"
        )
        assert len(boxes) > 20
        assert min(width for width, _ in boxes) > 3
        assert min(height for _, height in boxes) > 5
        assert page.evaluate("document.fonts.check(\"16px 'Course Math'\")")
        formula = page.locator(".math-block math").first
        assert formula.locator("mfrac").count() == 1
        numerator, denominator = formula.locator("mfrac > *").all()
        above, below = numerator.bounding_box(), denominator.bounding_box()
        assert above["y"] + above["height"] <= below["y"] + 2


@pytest.mark.parametrize("from_disk", [True, False], ids=["file", "http"])
def test_search_finds_the_padding_mask(chromium, site, served, from_disk):
    if from_disk:
        with opened(chromium, site / "index.html") as page:
            page.goto(f"{(site / 'search.html').as_uri()}?q=padding+mask")
            found = results(page)
    else:
        page = chromium.new_page()
        page.goto(f"{served}/search.html?q=padding+mask")
        found = results(page)
        assert "mask" in page.locator("#search-results li .context").first.inner_text().lower()
        page.close()
    assert any("attention" in one.lower() for one in found), found


def results(page) -> list[str]:
    page.locator("#search-results li a").first.wait_for()
    page.wait_for_function("document.querySelector('.search-summary').textContent.match(/found|matching/)")
    return page.locator("#search-results li a").all_inner_texts()


def test_the_keyboard_reaches_the_content_the_search_and_the_chapters(chromium, site):
    with opened(chromium, site / "index.html") as page:
        page.keyboard.press("Tab")
        assert "main content" in page.evaluate("document.activeElement.textContent")
        page.keyboard.press("Enter")
        assert page.evaluate("location.hash") == "#main-content"
        page.reload()
        reached = []
        for _ in range(25):
            page.keyboard.press("Tab")
            reached.append(page.evaluate("document.activeElement.textContent.trim()"))
            outline = page.evaluate(
                "(() => { const style = getComputedStyle(document.activeElement);"
                "return style.outlineStyle !== 'none' || style.boxShadow !== 'none'; })()"
            )
            assert outline, f"{reached[-1]!r} does not show that it has the focus"
        assert any("Search" in text for text in reached)
        assert any("01 Attention" in text for text in reached)
        page.keyboard.press("Control+k")
        page.keyboard.type("padding mask")
        page.keyboard.press("Enter")
        page.wait_for_url("**/search.html?q=padding+mask*")
        assert results(page)


def test_on_a_phone_the_chapters_open_and_close_by_the_keyboard(chromium, site):
    with opened(chromium, site / "index.html", width=360) as page:
        link = page.locator("#pst-primary-sidebar a, .bd-sidebar-primary a", has_text="02 The encoder").first
        assert not link.is_visible()
        page.locator("button.primary-toggle:visible").first.focus()
        page.keyboard.press("Enter")
        dialog = page.locator("dialog[open]")
        dialog.get_by_text("02 The encoder").wait_for()
        page.keyboard.press("Escape")
        dialog.wait_for(state="detached")


def test_without_javascript_the_text_the_formulas_and_the_figures_are_there(chromium, site):
    context = chromium.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto((site / "notebooks" / "01_attention.html").as_uri())
    assert page.locator("article h1").inner_text().startswith("Attention")
    assert page.locator("math").first.bounding_box()["width"] > 3
    assert page.locator(".cell_output img").first.bounding_box()["width"] > 200
    context.close()


@pytest.mark.parametrize(("width", "dark"), [(360, False), (1440, True), (1440, False)], ids=["phone", "dark", "light"])
def test_no_page_hinders_a_reader_with_a_disability(chromium, site, axe, width, dark):
    found = {}
    with opened(chromium, site / "index.html", width=width, dark=dark) as page:
        for path in every(site):
            page.goto(path.as_uri())
            if problems := serious_findings(page, axe):
                found[path.relative_to(site).as_posix()] = problems
    assert found == {}


def test_a_screen_reader_finds_landmarks_headings_formulas_and_figures(chromium, site):
    with opened(chromium, site / "notebooks" / "01_attention.html") as page:
        tree = page.locator("body").aria_snapshot()
        assert len(re.findall(r"^\s*- main\b", tree, flags=re.MULTILINE)) == 1
        assert len(re.findall(r"heading \"[^\"]+\" \[level=1\]", tree)) == 1
        named = re.findall(r"- navigation \"([^\"]+)\"", tree)
        assert len(named) >= 2
        assert len(set(named)) == len(named)
        assert page.get_by_role("math").count() > 20
        figures = page.locator(".cell_output").get_by_role("img")
        assert all(
            figure.get_attribute("alt")
            for figure in figures.all()
            if figure.evaluate("(node) => node.tagName") == "IMG"
        )
        for box in page.locator(".math-block").all():
            assert box.get_attribute("tabindex") == "0"


def test_a_notebooks_page_is_light(chromium, site, served):
    weights, seconds = {}, {}
    for path in notebooks(site):
        page = chromium.new_page(viewport={"width": 1440, "height": 900})
        sizes: dict[str, int] = {}
        page.on("requestfinished", lambda request, sizes=sizes: sizes.update({request.url: body_size(request)}))
        began = time.monotonic()
        page.goto(f"{served}/notebooks/{path.name}", wait_until="load")
        seconds[path.stem] = time.monotonic() - began
        page.evaluate(READY)
        page.mouse.wheel(0, 100_000)
        page.wait_for_load_state("networkidle")
        assert {url.split("/")[2] for url in sizes if url.startswith("http")} == {served.split("/")[2]}
        weights[path.stem] = sum(sizes.values())
        page.close()
    for name in weights:
        print(f"{name}: {weights[name] / 1000:,.0f} kB, loaded in {seconds[name]:.2f} s")
    assert {name: weight for name, weight in weights.items() if weight >= HEAVIEST} == {}


def body_size(request) -> int:
    return len(request.response().body()) if request.url.startswith("http") else 0


def test_paper_shows_code_and_figures_whole(chromium, site):
    for path in notebooks(site):
        page = chromium.new_page(viewport={"width": A4, "height": 1123})
        page.goto(path.as_uri())
        page.emulate_media(media="print")
        cut = page.locator("article pre, article img, article table, article .math-block").evaluate_all(
            "(all) => all.filter((one) => one.offsetParent && (one.scrollWidth > one.clientWidth + 1"
            " || one.getBoundingClientRect().right > innerWidth + 1)).map((one) => one.outerHTML.slice(0, 120))"
        )
        assert cut == [], path.name
        kept = page.evaluate(
            "[...document.querySelectorAll('article img, article .piece')].filter((one) => one.offsetParent)"
            ".map((one) => getComputedStyle(one).breakInside)"
        )
        assert set(kept) == {"avoid"}
        assert not page.locator(".bd-sidebar-primary").first.is_visible()
        pdf = page.pdf(format="A4", print_background=True)
        assert pdf.startswith(b"%PDF")
        assert len(re.findall(rb"/Type\s*/Page\b", io.BytesIO(pdf).read())) >= 3
        page.close()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [WIDTHS[0], WIDTHS[-1]])
def test_screenshots_are_kept_to_be_looked_at(chromium, site, width, dark):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    shown = [site / "index.html", *notebooks(site), site / "library" / "model.html", site / "cifar100.html"]
    with opened(chromium, site / "index.html", width=width, dark=dark) as page:
        for path in shown:
            page.goto(path.as_uri())
            page.evaluate(READY)
            target = SCREENSHOTS / f"{path.stem}-{width}-{'dark' if dark else 'light'}.png"
            page.screenshot(path=target, full_page=True)
            assert target.stat().st_size > 10_000
