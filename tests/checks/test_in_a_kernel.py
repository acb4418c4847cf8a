"""The checks in a real Jupyter kernel, where `exit()`, figures and endless loops are the notebook's own affair."""

import json

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

SETUP = """\
import dataclasses, torch
from course_utils import checks
from course_utils.checks import session
from course_utils.checks.function_check import check_function
quick = dataclasses.replace(checks.tasks()["attention_weights"], seconds=1.0)
"""
CELLS = {
    "setup": SETUP,
    "shadow": "F = print = softmax = np = None\ntorch.set_default_dtype(torch.float64)\n_ = torch.manual_seed(5)",
    "stub": 'def weights(scores):\n    raise NotImplementedError("your turn")\nchecks.attention_weights(weights)',
    "exit": "checks.attention_weights(lambda scores: exit())",
    "figure": """\
import matplotlib.pyplot as plt
from IPython.display import display
def weights(scores):
    display("shown"); plt.plot([1, 2]); plt.show()
    return 1 / 0
checks.attention_weights(weights)""",
    "endless": """\
def weights(scores):
    while True:
        try:
            scores = scores + 1
        except:
            pass
check_function(quick, weights)""",
    "input": "checks.attention_weights(lambda scores: input('?'))",
    "right": "checks.attention_weights(lambda scores: torch.softmax(scores, -1))",
    "after": "plt.close('all'); (torch.get_default_dtype(), torch.initial_seed())",
}


@pytest.mark.slow
def test_a_notebook_goes_on_whatever_an_answer_does(progress_file, tmp_path):
    notebook = new_notebook(cells=[new_code_cell(code) for code in CELLS.values()])
    environment = {"PATH_PROGRESS": str(progress_file)}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        NotebookClient(notebook, kernel_name="python3", timeout=300, startup_timeout=120).execute()
    nbformat.validate(notebook)
    outputs = {name: cell.outputs for name, cell in zip(CELLS, notebook.cells, strict=True)}
    shown = {name: made[-1].data for name, made in outputs.items() if made}
    assert "not done yet" in shown["stub"]["text/html"]
    assert "It raises SystemExit" in shown["exit"]["text/plain"]
    assert "line 5: return 1 / 0" in shown["figure"]["text/plain"]
    assert "It was stopped" in shown["endless"]["text/plain"]
    assert "It raises" in shown["input"]["text/plain"]
    assert "✓" in shown["right"]["text/html"]
    assert shown["after"]["text/plain"] == "(torch.float64, 5)"
    for name in ("stub", "exit", "figure", "endless", "input", "right"):
        assert len(outputs[name]) == 1, f"{name} shows more than its outcome: {outputs[name]}"
    states = [json.loads(line)["state"] for line in progress_file.read_text().splitlines()]
    assert states == ["open", "failed", "failed", "failed", "passed"]
