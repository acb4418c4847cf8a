"""Say where the course is published: `python docs/site/set_address.py https://github.com/OWNER/NAME`.

The one setting is `repository` of `[tool.course]` in pyproject.toml. A notebook that was opened alone, in Colab say,
has nothing but itself, so its first cells hold a copy, which this program writes too. Run `make sync` afterwards. An
empty address ("") takes it back.
"""

import re
import sys
from pathlib import Path

from address import checked

ROOT = Path(__file__).resolve().parents[2]
_SETTING = re.compile(r'^( *repository = )"[^"]*"', re.MULTILINE)


def set_address(address: str, root: Path = ROOT) -> list[Path]:
    """Write the address into the setting and into each notebook's source.

    Args:
        address: as https://github.com/OWNER/NAME; or empty.
        root: folder of the repository.

    Returns:
        The files that were changed.

    Raises:
        ValueError: if it is no https address, or a file does not have one line for it; nothing is written then.
    """
    address = checked(address)
    changed = {}
    for path in [root / "pyproject.toml", *sorted(root.glob("notebooks/[0-9]*.py"))]:
        text = path.read_text(encoding="utf-8")
        new, count = _SETTING.subn(rf'\g<1>"{address}"', text)
        if count != 1:
            raise ValueError(f"{path.name} must have one line `repository = ...`, and has {count}")
        if new != text:
            changed[path] = new
    for path, new in changed.items():
        path.write_text(new, encoding="utf-8")
    return list(changed)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for path in set_address(sys.argv[1]):
        print(path.relative_to(ROOT))
