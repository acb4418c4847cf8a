"""A notebook as a page: solutions folded, figures small and described, ways to run it, and no data of tests."""

import base64
import io
import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
from address import launchers
from nbformat import NotebookNode
from pages import rewrite_links
from PIL import Image

COLOURS = 256  # of a figure: its lines and its colour map need no more


@dataclass(frozen=True)
class Opening:
    """What a notebook says of itself in its first cell.

    Attributes:
        title: its heading.
        build: what the reader will build.
        know: what the reader needs to know.
        time: how long it takes.
    """

    title: str
    build: str
    know: str
    time: str


def opening(notebook: NotebookNode, name: str) -> Opening:
    """Read a notebook's first cell.

    Args:
        notebook: the notebook.
        name: its file's, for the message.

    Raises:
        ValueError: if the cell lacks one of the four.
    """
    text = notebook.cells[0].source
    title = re.match(r"# (.+)", text)
    found = {"title": title[1] if title else ""}
    for key, label in [
        ("build", "What you will build"),
        ("know", "What you need to know"),
        ("time", "How long it takes"),
    ]:
        match = re.search(rf"^\*\*{label}\.?\*\*(.+?)(?:\n\n|\Z)", text, flags=re.MULTILINE | re.DOTALL)
        found[key] = " ".join(match[1].split()) if match else ""
    missing = [key for key, value in found.items() if not value]
    if missing:
        raise ValueError(f"the first cell of {name} lacks what the landing page shows of it: {missing}")
    return Opening(**found)


def page(path: Path, root: Path, address: str) -> NotebookNode:
    """The notebook as the site shows it.

    Args:
        path: of the executed notebook.
        root: folder of the repository.
        address: of the published repository; empty if there is none.
    """
    notebook = nbformat.read(path, as_version=4)
    origin = path.relative_to(root).as_posix()
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = rewrite_links(cell.source, origin, origin.removesuffix(".ipynb"), root, address)
            continue
        _fold(cell)
        for output in cell.get("outputs", []):
            if "data" in output:
                _show(cell, output)
    title, _, rest = notebook.cells[0].source.partition("\n")
    notebook.cells[0].source = f"{title}\n\n{_run_it(origin, address)}\n{rest}"
    return notebook


def smaller(png: bytes) -> bytes:
    """A PNG with a palette, where that saves something."""
    with Image.open(io.BytesIO(png)) as image:
        flat = Image.new("RGB", image.size, "white")
        flat.paste(image, mask=image.convert("RGBA").getchannel("A"))
        buffer = io.BytesIO()
        palette = flat.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        palette.save(buffer, "PNG", optimize=True)
    return min(png, buffer.getvalue(), key=len)


def _fold(cell: NotebookNode) -> None:
    """Fold the input of a solution, and of a cell that is folded in Jupyter."""
    tags = cell.metadata.setdefault("tags", [])
    solution = "solution" in tags
    if (solution or cell.metadata.get("jupyter", {}).get("source_hidden")) and "hide-input" not in tags:
        tags.append("hide-input")
        name = "solution" if solution else "code"
        cell.metadata["mystnb"] = {"code_prompt_show": f"Show the {name}", "code_prompt_hide": f"Hide the {name}"}


def _show(cell: NotebookNode, output: NotebookNode) -> None:
    """Leave what a reader sees of an output, and hand on the alternative text of a figure."""
    for mime in [mime for mime in output.data if mime.startswith("application/vnd.course.")]:
        del output.data[mime]
    png = output.data.get("image/png")
    if png is None:
        return
    data = smaller(base64.b64decode(png))
    output.data["image/png"] = base64.b64encode(data).decode()
    alt = output.get("metadata", {}).get("image/png", {}).get("alt", "")
    output.metadata["image/png"] = {"alt": alt}


def _run_it(origin: str, address: str) -> str:
    links = [f"[{one.name}]({one.url})" for one in launchers(address, origin)]
    name = origin.rpartition("/")[2]
    links += [f"{{download}}`download <../originals/{name}>`", "[on your own machine](../run_it.md)"]
    return "::::{container} run-it\n**Run it:** " + " · ".join(links) + "\n::::"
