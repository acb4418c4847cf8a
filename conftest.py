"""Settings of pytest that hold in every folder of the repository."""


def pytest_configure(config) -> None:
    """Let nbval compare numbers with a tolerance."""
    if config.getoption("nbval", default=False) or config.getoption("nbval_lax", default=False):
        from course_utils.execution import regression  # imported here: other runs do not need it

        regression.install()
