"""Settings of Sphinx; `python docs/site` gathers the sources and calls it."""

import base64
import hashlib
import os
import sys
from pathlib import Path

import nbformat
from docutils import nodes

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]

import icons  # noqa: E402
import styles  # noqa: E402
from address import repository  # noqa: E402 (found through the line above)

import course_utils  # noqa: E402

project = "Transformers, measured"
author = "The Transformer course maintainers"
copyright = "The Transformer course maintainers; code MIT, text and figures CC BY 4.0"
release = version = course_utils.__version__
language = "en"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "docstrings", "mathml"]
html_math_renderer = "mathml"
templates_path = [str(HERE / "_templates")]
# Warnings are errors (`-W`); this one says that a tool's own settings cannot be pickled, which costs nothing.
suppress_warnings = ["config.cache"]

exclude_patterns = ["originals"]  # to be downloaded
nb_execution_mode = "off"
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_inline"]
myst_heading_anchors = 4
myst_update_mathjax = False
myst_links_external_new_tab = False

add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autoclass_content = "class"
autodoc_default_options = {"members": True, "ignore-module-all": True}
default_role = "code"
python_use_unqualified_type_names = True
napoleon_numpy_docstring = False

html_theme = "sphinx_book_theme"
html_title = project
html_static_path = [str(HERE / "_static")]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_use_index = html_domain_indices = False  # the search finds names, and the library has a table
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_last_updated_fmt = None
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system has it
html_theme_options = {
    "use_download_button": False,
    "use_fullscreen_button": False,
    "navbar_persistent": [],
    "show_toc_level": 2,
    "home_page_in_toc": True,
    "show_navbar_depth": 1,
    "search_bar_text": "Search the course",
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
if address := repository(ROOT / "pyproject.toml"):
    html_theme_options |= {"repository_url": address, "use_repository_button": True, "use_issues_button": True}


def _descriptions(folder: Path) -> dict[str, str]:
    """The alternative text of each figure, by the name under which myst-nb stores it: the digest of its bytes."""
    found = {}
    for path in sorted(folder.glob("notebooks/*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                for mime, data in output.get("data", {}).items():
                    if mime == "image/svg+xml":
                        content = os.linesep.join(data.splitlines()).encode()
                    elif mime.startswith("image/"):
                        content = base64.b64decode(data)
                    else:
                        continue
                    found[hashlib.sha256(content).hexdigest()] = output.metadata.get(mime, {}).get("alt", "")
    return found


def _describe_figures(app, doctree: nodes.document) -> None:
    for image in doctree.findall(nodes.image):
        alt = app.figure_descriptions.get(Path(image["uri"]).stem)
        if alt:
            image["alt"] = alt


def _lighten(app, error: Exception | None) -> None:
    """Leave out what no page needs: icons that are not shown, styles that are not used, source maps, templates."""
    if error is not None or app.builder.format != "html":
        return
    for path in Path(app.outdir).glob("notebooks/*.html"):  # what is folded is called what stands on it
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace('<summary aria-label="Toggle hidden content">', "<summary>"), encoding="utf-8")
    icons.keep_used(Path(app.outdir))
    styles.keep_used(Path(app.outdir))
    static = Path(app.outdir) / "_static"
    for path in [*static.rglob("*.map"), *static.rglob("*-macros.html")]:
        path.unlink()


def setup(app) -> None:
    """Register what this site does beside its extensions."""
    app.figure_descriptions = _descriptions(Path(app.srcdir))
    app.connect("doctree-read", _describe_figures)
    app.connect("build-finished", _lighten)
