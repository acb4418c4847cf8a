"""A Sphinx extension: formulas become MathML while the site is built, so that a page needs no script for them.

Why not MathJax: it would be a megabyte for each reader, twice the rest of a page, and a second of rearranging; what
PyPI has of it is of 2022. MathML Core is drawn by every current browser (Chrome since 109, Firefox, Safari), read by
screen readers, printed and copied like text, and works without JavaScript and from a file. The font is served from
the site: `_static/math/`.
"""

import re

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)
_OPENS, _CLOSES = re.compile(r"[(\[“‘\"']+$"), re.compile(r"^[^\w\s(\[“‘&<>]+")
_converter = LatexToMathML()


def to_mathml(latex: str, block: bool) -> str:
    """The <math> element of a formula.

    Args:
        latex: the formula, without dollar signs.
        block: whether it stands on a line of its own.

    Raises:
        LatexError: if the formula cannot be read; it says where and why.
    """
    return _converter.convert_with_local_state(latex, displaystyle=block)


def _visit_inline(translator: HTML5Translator, node: nodes.math) -> None:
    before, after = (node.get(side, "") for side in ("before", "after"))
    translator.body.append(f'<span class="math">{before}{_converted(node, block=False)}{after}</span>')
    raise nodes.SkipNode


def _keep_punctuation(app: Sphinx, doctree: nodes.document, name: str) -> None:
    """Take the marks beside a formula into its box, where no line breaks: else one may begin with a full stop."""
    for formula in list(doctree.findall(nodes.math)):
        for side, place, pattern in (("before", -1, _OPENS), ("after", 1, _CLOSES)):
            position = formula.parent.index(formula) + place
            text = formula.parent[position] if 0 <= position < len(formula.parent) else None
            if isinstance(text, nodes.Text) and (marks := pattern.search(text)):
                formula[side] = marks[0]
                formula.parent[position] = nodes.Text(pattern.sub("", text))


def _visit_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    identifiers = "".join(f' id="{one}"' for one in node.get("ids", [])[:1])
    # A long formula scrolls within its own box; what scrolls must be reachable by the keyboard.
    label = 'role="group" aria-label="Formula" tabindex="0"'
    translator.body.append(f'<div class="math-block"{identifiers} {label}>{_converted(node, block=True)}</div>\n')
    raise nodes.SkipNode


def _converted(node: nodes.Element, block: bool) -> str:
    try:
        return to_mathml(node.astext().strip(), block)
    except LatexError as error:
        logger.warning("this formula cannot be set: %s (%s)", node.astext(), error, location=node)
        return f"<code>{nodes.Text(node.astext())}</code>"


def setup(app: Sphinx) -> dict[str, object]:
    """Register the renderer under the name `mathml`."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    app.connect("doctree-resolved", _keep_punctuation)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
