"""The built pages as files: complete, described, and leading nowhere that is not there."""

import base64
import html
import re
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
GUIDES = {
    "docs/teaching.md": "teaching",
    "docs/batch.md": "batch",
    "docs/cluster.md": "cluster",
    "docs/scaling.md": "scaling",
    "docs/set_anomaly_cifar100.md": "cifar100",
    "docs/set_anomaly_log.md": "cifar100_log",
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changelog",
}


def names(pages, site) -> set[str]:
    return {path.relative_to(site).with_suffix("").as_posix() for path in pages}


def test_every_notebook_guide_and_module_has_its_page(site, pages):
    wanted = {f"notebooks/{path.stem}" for path in NOTEBOOKS}
    wanted |= {name for path, name in GUIDES.items() if (ROOT / path).is_file()}
    assert wanted | {"index", "run_it", "library/index", "search"} <= names(pages, site)
    anchors = {anchor for page in pages.values() for anchor in page.anchors}
    library = (ROOT / "course_utils").rglob("*.py")
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in library}
    public = {name for name in modules - {"course_utils"} if "._" not in name}
    assert {f"module-{name}" for name in public} <= anchors


def test_links_images_scripts_and_anchors_lead_somewhere(pages):
    from checked_pages import broken

    assert list(broken(pages)) == []


def test_no_page_fetches_anything_from_another_host(pages):
    from checked_pages import external

    assert external(pages)["files"] == []


def test_a_page_has_one_title_and_its_headings_descend_step_by_step(pages):
    for path, page in pages.items():
        levels = [level for level, _ in page.headings]
        assert levels.count(1) == 1, f"{path.name}: {page.headings}"
        assert all(after <= before + 1 for before, after in pairwise(levels)), path.name


def test_images_are_described(pages):
    assert {path.name: page.images_without_alt for path, page in pages.items() if page.images_without_alt} == {}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebooks_page_shows_its_figures_with_their_descriptions(site, path):
    text = (site / "notebooks" / f"{path.stem}.html").read_text(encoding="utf-8")
    outputs = [output for cell in nbformat.read(path, as_version=4).cells for output in cell.get("outputs", [])]
    images = [(output, mime) for output in outputs for mime in output.get("data", {}) if mime.startswith("image/")]
    alts = [output.metadata[mime]["alt"] for output, mime in images if "text/html" not in output.data]
    assert alts
    shown = [html.unescape(alt) for alt in re.findall(r'<img[^>]*\balt="([^"]*)"', text)]
    assert [alt for alt in alts if alt not in shown] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_solutions_are_folded_and_can_be_opened(site, path):
    text = (site / "notebooks" / f"{path.stem}.html").read_text(encoding="utf-8")
    cells = nbformat.read(path, as_version=4).cells
    solutions = sum("solution" in cell.metadata.get("tags", []) for cell in cells)
    hidden = sum(cell.metadata.get("jupyter", {}).get("source_hidden", False) for cell in cells)
    folded = re.findall(r"<details class=\"[^\"]*\bhide\b[^\"]*\"[^>]*>", text)
    assert len(folded) == max(solutions, hidden)
    assert not any(" open" in tag for tag in folded)
    assert text.count("Show the solution") == solutions


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_downloaded_is_the_committed_notebook(site, path):
    (copy,) = (site / "_downloads").rglob(path.name)
    assert copy.read_bytes() == path.read_bytes()


def test_every_formula_is_typeset(site, pages):
    formulas = 0
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert "<merror" not in text, path.name
        formulas += text.count("<math")
        prose = re.sub(r"<(pre|code|script|math)\b.*?</\1>", "", text, flags=re.DOTALL)
        assert re.findall(r"\\\(|\\\[|\$[^$\s<][^$<]*\$|\\(?:frac|sqrt|text)\b", prose) == [], path.name
    assert formulas > 100


def test_nothing_unfinished_is_published(pages):
    for path in pages:
        assert not re.search(r"\b(TODO|FIXME|XXX|coming soon|lorem ipsum)\b", path.read_text(encoding="utf-8")), path


def test_no_page_shows_where_it_was_built(pages):
    for path in pages:
        assert str(ROOT) not in path.read_text(encoding="utf-8"), path.name


def test_figures_are_compressed(site):
    committed = [
        len(base64.b64decode(output.data["image/png"]))
        for path in NOTEBOOKS
        for cell in nbformat.read(path, as_version=4).cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    built = [path.stat().st_size for path in (site / "_images").iterdir() if re.fullmatch(r"[0-9a-f]{64}", path.stem)]
    assert 0 < sum(built) <= sum(committed)
    assert max(built) < 100_000
