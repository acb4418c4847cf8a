"""An extension of IPython for batch runs: a line `!command` that fails raises an error, as `%%bash` does.

In Jupyter such a line shows what the command prints and the notebook goes on; in a batch nobody reads that.
`!command || true` says that a failure does not matter.
"""

import subprocess

from IPython.core.interactiveshell import InteractiveShell


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Let `!command` raise CalledProcessError if the command's exit code is not 0."""
    if shell.has_trait("system_raise_on_error"):  # newer versions can do it themselves, for `x = !command` as well
        shell.system_raise_on_error = True
        return
    run_command = shell.system

    def run_and_check(command: str) -> None:
        expanded = shell.var_expand(command, depth=1)  # with the variables of the caller
        run_command(expanded.replace("{", "{{").replace("}", "}}").replace("$", "$$"))
        code = shell.user_ns.get("_exit_code", 0)
        if code:
            raise subprocess.CalledProcessError(code, expanded)

    shell.system = run_and_check
