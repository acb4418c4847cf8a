"""The parts that the site is made by, each on a small example."""

import io
import sys
from pathlib import Path

import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs" / "site"))

from notebook_pages import Opening, opening, page, smaller  # noqa: E402 (found through the line above)
from pages import rewrite_links, slug  # noqa: E402
from styles import keep_used  # noqa: E402

ADDRESS = "https://github.com/example/course"


def rewritten(text: str, origin: str = "docs/batch.md", document: str = "batch", address: str = "") -> str:
    return rewrite_links(text, origin, document, ROOT, address)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[a](cluster.md)", "[a](cluster.md)"),
        ("[a](set_anomaly_cifar100.md#Other-set-sizes)", "[a](cifar100.md#other-set-sizes)"),
        ("[a](../notebooks/01_attention.ipynb)", "[a](notebooks/01_attention.ipynb)"),
        ("[a](../CONTRIBUTING.md)", "[a](contributing.md)"),
        ("[a](../LICENSE)", "a"),
        ("[a](#Some-Heading)", "[a](#some-heading)"),
        ("[a](https://example.org/x)", "[a](https://example.org/x)"),
        ("![a](figures/x.png)", "![a](figures/x.png)"),
        ("`[a](../LICENSE)`", "`[a](../LICENSE)`"),
        ("```\n[a](../LICENSE)\n```\n[a](../LICENSE)", "```\n[a](../LICENSE)\n```\na"),
    ],
)
def test_links_of_a_guide_hold_on_the_site(before, after):
    assert rewritten(before) == after


def test_links_of_a_notebook_hold_on_the_site():
    text = rewritten("[a](02_encoder.ipynb#Sources)", "notebooks/01_attention.ipynb", "notebooks/01_attention")
    assert text == "[a](../notebooks/02_encoder.ipynb#sources)"


def test_other_files_are_found_where_the_course_is_published():
    assert rewritten("[a](../LICENSE)", address=ADDRESS) == f"[a]({ADDRESS}/blob/main/LICENSE)"


def test_anchors_are_those_of_the_site():
    assert slug("What is it, then?") == "what-is-it-then"
    assert slug("What-is-it") == "what-is-it"


def notebook(*cells):
    first = new_markdown_cell(
        "# Small\n\n**What you will build.**\nA thing.\nAnd more.\n\n**What you need to know.**\nNothing.\n\n"
        "**How long it takes.**\nA minute.\n\n**Notation.**"
    )
    return new_notebook(cells=[first, *cells])


def test_the_landing_page_repeats_what_a_notebook_says_of_itself():
    assert opening(notebook(), "01_small") == Opening("Small", "A thing. And more.", "Nothing.", "A minute.")


def test_a_notebook_that_does_not_say_it_is_named():
    bare = new_notebook(cells=[new_markdown_cell("# Small\n\n**What you will build.**\nA thing.")])
    with pytest.raises(ValueError, match=r"the first cell of 01_small lacks .*: \['know', 'time'\]"):
        opening(bare, "01_small")


def test_a_solution_is_folded_under_its_name(tmp_path):
    import nbformat

    cells = [
        new_code_cell("1", metadata={"tags": ["solution"], "jupyter": {"source_hidden": True}}),
        new_code_cell("2", metadata={"jupyter": {"source_hidden": True}}),
        new_code_cell("3"),
    ]
    (tmp_path / "notebooks").mkdir()
    path = tmp_path / "notebooks" / "01_small.ipynb"
    nbformat.write(notebook(*cells), path)
    solution, hidden, open_ = page(path, tmp_path, "").cells[1:]
    assert "hide-input" in solution.metadata.tags
    assert solution.metadata.mystnb.code_prompt_show == "Show the solution"
    assert hidden.metadata.mystnb.code_prompt_show == "Show the code"
    assert "hide-input" not in open_.metadata.tags


def png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def test_a_figure_becomes_smaller_and_looks_the_same():
    rows, columns = np.mgrid[0:200, 0:300]
    waves = (127 * (1 + np.sin(rows / 19) * np.cos(columns / 23))).astype(np.uint8)  # a heat map
    pixels = np.stack([waves, 255 - waves, waves // 2, np.full_like(waves, 255)], axis=-1)
    before = png(pixels)
    after = smaller(before)
    assert len(after) < len(before)
    with Image.open(io.BytesIO(after)) as image:
        shown = np.asarray(image.convert("RGB")).astype(int)
    assert np.abs(shown - pixels[..., :3].astype(int)).mean() < 1


def test_a_figure_that_is_small_already_stays():
    before = png(np.zeros((2, 2), np.uint8))
    assert len(smaller(before)) <= len(before)


def test_what_is_transparent_becomes_white():
    with Image.open(io.BytesIO(smaller(png(np.zeros((40, 40, 4), np.uint8))))) as image:
        assert (np.asarray(image.convert("RGB")) == 255).all()


def test_styles_that_no_page_can_use_go(tmp_path):
    folder = tmp_path / "_static" / "styles"
    folder.mkdir(parents=True)
    (tmp_path / "index.html").write_text('<p class="used">', encoding="utf-8")
    (tmp_path / "_static" / "a.js").write_text('node.classList.add("by-script")', encoding="utf-8")
    sheet = folder / "pydata-sphinx-theme.css"
    sheet.write_text(
        ":root{--a:1}p{x:1}.used,.unused{x:2}.used .unused{x:3}.by-script{x:4}"
        "@media print{.unused{x:5}}@media print{.used{x:6}}a:not(.unused){x:7}",
        encoding="utf-8",
    )
    keep_used(tmp_path)
    assert sheet.read_text(encoding="utf-8") == (
        ":root{--a:1}p{x:1}.used{x:2}.by-script{x:4}@media print{.used{x:6}}a:not(.unused){x:7}"
    )


def test_formulas_become_mathml_or_are_refused():
    pytest.importorskip("math_core")
    from math_core import LatexError
    from mathml import to_mathml

    assert to_mathml(r"\frac{1}{\sqrt{d_k}}", block=False) == (
        "<math><mfrac><mn>1</mn><msqrt><msub><mi>d</mi><mi>k</mi></msub></msqrt></mfrac></math>"
    )
    assert 'display="block"' in to_mathml("x", block=True)
    with pytest.raises(LatexError):
        to_mathml(r"\frac{1}", block=False)


def test_a_docstring_is_plain_text():
    pytest.importorskip("sphinx")
    from docstrings import plain_text

    lines = [
        "The length |x| of a * b, see `a * b` and name_.",
        "",
        "    code = |x|",
        "",
        "Args:",
        "    x: |y| [B, T].",
        "    *rest: more.",
    ]
    assert plain_text(lines) == [
        r"The length \|x\| of a \* b, see `a * b` and name\_.",
        "",
        "::",
        "",
        "    code = |x|",
        "",
        "Args:",
        r"    x: \|y\| [B, T].",
        "    *rest: more.",
    ]
