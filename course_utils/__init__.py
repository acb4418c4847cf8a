"""Building blocks of the Transformer course.

A submodule is loaded when it is first asked for, so that `import course_utils` costs nothing:
`from course_utils import attention` and `course_utils.attention` both work.
"""

__version__ = "0.1.0"


def __getattr__(name: str):
    if name in _submodules():
        import importlib  # here, so that it is loaded only with something to load

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; its modules are {sorted(_submodules())}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_submodules()})


def _submodules() -> set[str]:
    import pkgutil

    return {module.name for module in pkgutil.iter_modules(__path__)}
