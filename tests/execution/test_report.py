"""What a batch leaves behind: results.json, junit.xml and index.html, and the command that reads results."""

import base64
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from small_notebooks import RECORD, course, report_of, write

PARAMETERS = "n: int = 1\nrate: float = 0.5\nname: str = '<b>'"
FIGURE = """\
from IPython.display import display
from PIL import Image
import base64, io
buffer = io.BytesIO()
Image.new("RGB", (900, 600), "red").save(buffer, "PNG")
bundle = {"image/png": base64.b64encode(buffer.getvalue()).decode()}
display(bundle, metadata={"image/png": {"alt": 'A "red" field'}}, raw=True)"""


class Page(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def swept(tmp_path_factory) -> tuple[Path, object]:
    """A sweep of 2x3 of a notebook, and another notebook that fails."""
    folder = tmp_path_factory.mktemp("swept")
    notebook = write(
        folder / "01_good.ipynb",
        FIGURE,
        RECORD + "record('product', n * rate)\nrecord('n_too', n)",
        parameters=PARAMETERS,
    )
    failing = write(folder / "02_bad.ipynb", "# ## Part", r"raise ValueError('\x1b[31mred\x1b[0m \x08 <i>')")
    options = ["--sweep", "01_good.n=1,2", "--sweep", "01_good.rate=0.1,0.2,0.3", "--output", folder / "out"]
    return folder / "out", course("run", notebook, failing, *options)


def test_results_json_says_what_came_of_each_run(swept):
    folder, result = swept
    report = report_of(folder)
    assert (result.exit_code, report["exit_code"], report["schema"], report["planned"]) == (1, 1, 1, 7)
    assert [run["results"]["product"] for run in report["runs"][:6]] == pytest.approx([0.1, 0.2, 0.3, 0.2, 0.4, 0.6])
    first, last = report["runs"][0], report["runs"][-1]
    assert first["parameters"] == {"n": 1, "rate": 0.1, "name": "<b>"}
    assert (first["set"], first["swept"], first["status"], first["error"]) == (
        ["n", "rate"],
        ["n", "rate"],
        "passed",
        None,
    )
    assert first["title"] == "01_good [n=1, rate=0.1]"
    assert 0.1 < first["seconds"] < 60
    assert 10e6 < first["peak_memory_bytes"] < 1e9
    assert first["output"] == "01_good__n-1__rate-0.1.ipynb"
    assert all((folder / run["output"]).is_file() for run in report["runs"])
    assert (last["status"], last["error"]["kind"], last["error"]["cell"], last["error"]["heading"]) == (
        "failed",
        "error",
        4,
        "Part",
    )
    assert report["ended"] >= report["started"]
    assert report["versions"].keys() >= {"python", "course", "papermill"}


def test_junit_xml_is_read_by_ci_systems(swept):
    suite = ElementTree.parse(swept[0] / "junit.xml").getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors"), suite.get("skipped")) == (
        "7",
        "1",
        "0",
        "0",
    )
    cases = suite.findall("testcase")
    assert cases[0].get("classname") == "01_good"
    assert [one.get("name") for one in cases[0].iter("property")] == ["product", "n_too"]
    failure = cases[-1].find("failure")
    assert failure.get("type") == "error"
    assert "cell 4 (Part): ValueError: red" in failure.text


def test_index_html_needs_no_other_file_and_shows_all(swept):
    folder, _ = swept
    page = Page((folder / "index.html").read_text(encoding="utf-8"))
    pictures = [attributes for tag, attributes in page.tags if tag == "img"]
    assert all(picture["src"].startswith("data:image/png;base64,") for picture in pictures)
    assert pictures[0]["alt"].startswith("Results of 01_good over n, rate: product, n_too")
    assert [picture["alt"] for picture in pictures[1:]] == ['A "red" field'] * 6
    thumbnail = base64.b64decode(pictures[1]["src"].partition(",")[2])
    assert int.from_bytes(thumbnail[16:20]) == 240, "its width"
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert {"results.json", "junit.xml", "01_good__n-2__rate-0.3.ipynb", "02_bad.ipynb"} <= set(links)
    assert all((folder / link).is_file() for link in links)
    assert "<i>" in page.text, "what a notebook says is no markup"
    assert not {"script", "link", "iframe", "i", "b"} & {tag for tag, _ in page.tags}
    assert "6 of 7 passed" in page.text


def test_the_terminal_shows_the_table_and_where_the_report_is(swept):
    folder, result = swept
    assert "product = 0.6" in result.output
    assert f"Report: {folder / 'index.html'}" in result.output


def test_a_second_run_into_a_folder_replaces_the_first(tmp_path):
    first = write(tmp_path / "a.ipynb", "1")
    course("run", first, "--output", tmp_path / "out")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    course("run", write(tmp_path / "b.ipynb", "1"), "--output", tmp_path / "out")
    left = {path.name for path in (tmp_path / "out").iterdir()} - {".lock"}
    assert left == {"b.ipynb", "notes.txt", "results.json", "junit.xml", "index.html"}
    assert [run["title"] for run in report_of(tmp_path / "out")["runs"]] == ["b"]


def test_the_results_of_a_copy_and_of_a_run_are_printed(swept):
    folder, _ = swept
    assert course("results", folder / "01_good__n-2__rate-0.3.ipynb").output == "product = 0.6\nn_too = 2\n"
    for path in (folder, folder / "results.json"):
        lines = course("results", path).output.splitlines()
        assert len(lines) == 12
        assert lines[0] == "01_good [n=1, rate=0.1]: product = 0.1"


def test_a_path_without_results_is_wrong_usage(tmp_path):
    (tmp_path / "a.json").write_text("[1]")
    for path in (tmp_path, tmp_path / "a.json", tmp_path / "missing"):
        assert course("results", path).exit_code == 2


def test_the_documented_schema_has_every_key(swept):
    text = (Path(__file__).resolve().parents[2] / "docs" / "batch.md").read_text(encoding="utf-8")
    report = report_of(swept[0])
    keys = {*report, *report["runs"][0], *report["runs"][-1]["error"]}
    documented = set(re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE))
    assert keys <= documented, keys - documented
    from course_utils.execution import outcome

    kinds = {value for name, value in vars(outcome).items() if name.isupper() and isinstance(value, str)}
    assert kinds - {"passed", "failed", "skipped"} <= documented, kinds - documented
    assert json.dumps(report)
