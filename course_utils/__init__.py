"""Building blocks of the Transformer course.

A submodule is loaded when it is first asked for, so that `import course_utils` costs nothing:
`from course_utils import attention` and `course_utils.attention` both work.
"""

import importlib
import logging
import pkgutil
import warnings

__version__ = "0.1.0"

# Lightning's import asks notebooks without ipywidgets to install it, for progress bars that the course does not use.
warnings.filterwarnings("ignore", message="IProgress not found")
# What matplotlib says of its font cache (being built, or listing fonts that have moved) is the machine's own affair.
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)

_SUBMODULES = frozenset(module.name for module in pkgutil.iter_modules(__path__))


def __getattr__(name: str):
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; its modules are {sorted(_SUBMODULES)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES})
