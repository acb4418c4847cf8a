"""Let `pytest --nbval` compare numbers with the tolerances and ranges that expected.toml states."""

from pathlib import Path

import nbval.plugin

from course_utils.execution.bounds import expected_beside
from course_utils.execution.comparison import differences
from course_utils.execution.parameters import default_profile


def install() -> None:
    """Replace nbval's comparison of a cell's outputs; all the rest of nbval stays as it is."""
    nbval.plugin.IPyNbCell.compare_outputs = _compare_outputs


def _compare_outputs(cell: nbval.plugin.IPyNbCell, outputs: list, committed: list, skip_compare=None) -> bool:
    """Whether the outputs of a cell are those of the notebook; nbval shows what is noted on the cell if not."""
    path = Path(cell.path)
    expected = expected_beside(path)
    ranges = expected.of(path.stem, default_profile(cell.parent.nb))
    tolerance = expected.tolerance_of(path.stem, cell.cell.metadata.get("tags", []))
    outputs, committed = cell.sanitize_outputs(outputs), cell.sanitize_outputs(committed)
    cell.comparison_traceback = differences(outputs, committed, tolerance, ranges)
    return not cell.comparison_traceback
