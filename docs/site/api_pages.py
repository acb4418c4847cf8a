"""The pages of the library: a page for each of its rooms, made of the docstrings, and a table that leads to them."""

import ast
from dataclasses import dataclass
from pathlib import Path

# The pages, each with the modules on it in the order of reading. A module that is not listed comes last.
ROOMS = {
    "model": (
        "The model",
        "attention heads causal_attention cross_attention efficient_attention key_value_cache "
        "positions learned_positions rotary encoder decoder schedule predictor",
    ),
    "tasks": (
        "The tasks, and how they are trained",
        "reverse seq2seq addition anomaly set_evaluation rules class_evidence training batches "
        "machine shared_batches threads progress",
    ),
    "data": (
        "Images and features",
        "images image_order cifar100 backbones features feature_cache tutorial_features stacked",
    ),
    "checkpoints": ("Saved models", "checkpoints checkpoint_files registry downloads download_progress upkeep"),
    "experiments": ("Experiments: what the notebooks measure", "experiments results"),
    "figures": ("Figures and interactive pieces", "plotting diagrams figure_description interactive"),
    "checks": ("Checks of the exercises", "checks"),
    "batch": ("Batch runs", "execution"),
    "other": ("Everything else", ""),
}
_PLACES = {module: page for page, (_, modules) in ROOMS.items() for module in modules.split()}


@dataclass(frozen=True)
class Module:
    """A module of the library.

    Attributes:
        name: with its package, as one imports it.
        summary: the first paragraph of its docstring.
        page: the key in ROOMS of the page that it is on.
    """

    name: str
    summary: str
    page: str


def modules(package: Path) -> list[Module]:
    """All public modules of a package, in the order of the pages and on them.

    Args:
        package: folder of the package.
    """
    found = []
    for path in package.rglob("*.py"):
        parts = path.relative_to(package.parent).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        if any(part.startswith("_") for part in name.split(".")) or name == package.name:
            continue
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        summary = docstring.split("\n\n")[0].replace("\n", " ")
        found.append(Module(name, summary, _PLACES.get(name.split(".")[1], "other")))
    keys, places = list(ROOMS), list(_PLACES)
    return sorted(
        found,
        key=lambda module: (
            keys.index(module.page),
            places.index(room) if (room := module.name.split(".")[1]) in _PLACES else len(places),
            module.name,
        ),
    )


def table(found: list[Module]) -> str:
    """The Markdown of the page that leads to all others."""
    lines = [
        "# The library",
        "",
        "What the notebooks import, from the docstrings of `course_utils`.",
        "Shapes are written as `[B, T, D]`: B sequences in a batch, T their length, D the width of a token, H heads, "
        "C classes.",
        "In every mask, true means *may attend*.",
    ]
    used = [page for page in ROOMS if any(module.page == page for module in found)]
    for page in used:
        lines += ["", f"## [{ROOMS[page][0]}]({page}.rst)", "", "| module | what it is |", "| --- | --- |"]
        lines += [
            f"| {{py:mod}}`{short(module.name)} <{module.name}>` | {_cell(module.summary)} |"
            for module in found
            if module.page == page
        ]
    return "\n".join([*lines, "", "```{toctree}", ":hidden:", "", *used, "```", ""])


def pages(found: list[Module]) -> dict[str, str]:
    """The reStructuredText of each page, by its name."""
    texts: dict[str, str] = {}
    for module in found:
        title = ROOMS[module.page][0]
        texts.setdefault(module.page, f"{title}\n{'=' * len(title)}\n")
        heading = short(module.name)
        texts[module.page] += f"\n{heading}\n{'-' * len(heading)}\n\n.. automodule:: {module.name}\n"
    return texts


def short(name: str) -> str:
    """A module's name without the package's."""
    return name.partition(".")[2]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
