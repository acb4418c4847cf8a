"""Each exercise: what its check says of a stub, of right answers, of known mistakes and of other wrong answers."""

import dataclasses

import answers_attention
import answers_beyond
import answers_encoder
import answers_reverse
import answers_sets
import numpy as np
import pytest
import torch

from course_utils import checks
from course_utils.checks.exercise import Choice, Exercise, Quantity
from course_utils.checks.outcome import FAILED, OPEN, PASSED
from course_utils.checks.session import judge

TASKS = checks.tasks()
FUNCTIONS = {name: task for name, task in TASKS.items() if isinstance(task, Exercise)}
NUMBERS = {name: task for name, task in TASKS.items() if isinstance(task, Quantity)}
CHOICES = {name: task for name, task in TASKS.items() if isinstance(task, Choice)}
ANSWERS = (answers_attention, answers_encoder, answers_reverse, answers_sets, answers_beyond)


def gathered(kind: str) -> dict:
    """What all files of answers say under one name."""
    return {name: answers for file in ANSWERS for name, answers in getattr(file, kind).items()}


def each(kind: str) -> dict:
    """Every answer of a kind with its exercise, for parametrize."""
    triples = [(name, i, answer) for name, answers in gathered(kind).items() for i, answer in enumerate(answers, 1)]
    return {
        "argvalues": [(name, answer) for name, _, answer in triples],
        "ids": [f"{name}-{number}" for name, number, _ in triples],
    }


def mistakes() -> dict:
    pairs = [(name, mistake) for name, task in FUNCTIONS.items() for mistake in task.mistakes]
    return {"argvalues": pairs, "ids": [f"{name}-{mistake.name}" for name, mistake in pairs]}


def not_written(*arguments, **keywords):
    raise NotImplementedError


def test_there_are_enough_of_them_in_each_notebook_and_of_each_kind():
    assert len(TASKS) >= 24
    for notebook in ("01_attention", "02_encoder", "03_reverse_task", "04_set_anomaly", "05_beyond"):
        own = [task for task in TASKS.values() if task.notebook == notebook]
        assert len(own) >= 4, notebook
        assert any(not isinstance(task, Exercise) for task in own), f"{notebook} has no number and no choice"
    assert {task.difficulty for task in TASKS.values()} == {"easy", "medium", "hard"}


def test_each_has_answers_to_be_tested_with():
    assert set(gathered("RIGHT")) == set(gathered("UNKNOWN")) == set(FUNCTIONS)
    assert set(gathered("NUMBERS")) == set(NUMBERS)
    assert set(gathered("CHOICES")) == set(CHOICES)
    assert all(len(answers) >= 3 for answers in gathered("RIGHT").values())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_check_knows_three_mistakes_by_name_and_what_to_think_about(name):
    known = FUNCTIONS[name].mistakes
    assert len({mistake.name for mistake in known}) >= 3
    assert all(mistake.advice.endswith((".", "?")) for mistake in known)
    assert FUNCTIONS[name].covered


@pytest.mark.parametrize("name", TASKS)
def test_a_stub_is_not_done_yet(name):
    stub = not_written if name in FUNCTIONS else ...
    outcome = judge(TASKS[name], stub)
    assert outcome.state == OPEN
    assert outcome.diagnosis == ""
    assert "not done yet" in str(outcome)


@pytest.mark.parametrize(("name", "answer"), **each("RIGHT"))
def test_a_right_answer_passes_however_it_is_written(name, answer):
    outcome = judge(TASKS[name], answer)
    assert outcome.state == PASSED, str(outcome)
    assert outcome.covered


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_oracle_passes(name):
    assert judge(TASKS[name], FUNCTIONS[name].oracle).state == PASSED


@pytest.mark.parametrize(("name", "mistake"), **mistakes())
def test_each_known_mistake_is_called_by_its_name(name, mistake):
    outcome = judge(TASKS[name], mistake.wrong)
    assert outcome.state == FAILED
    assert outcome.diagnosis == mistake.name
    assert outcome.advice == mistake.advice
    assert outcome.example.call
    assert outcome.example.got
    assert outcome.example.expected


@pytest.mark.parametrize(("name", "answer"), **each("UNKNOWN"))
def test_another_wrong_answer_gets_no_name_and_the_smallest_example(name, answer):
    outcome = judge(TASKS[name], answer)
    assert outcome.state == FAILED
    assert outcome.diagnosis not in {mistake.name for mistake in FUNCTIONS[name].mistakes}, str(outcome)
    assert outcome.diagnosis
    assert outcome.example.call
    assert outcome.example.expected


@pytest.mark.parametrize("name", FUNCTIONS)
def test_mistakes_are_told_apart_whatever_the_random_inputs(name):
    task = FUNCTIONS[name]
    for seed in range(5):
        reseeded = dataclasses.replace(task, cases=lambda rng, seed=seed: task.cases(np.random.default_rng(seed)))
        for mistake in task.mistakes:
            assert judge(reseeded, mistake.wrong).diagnosis == mistake.name, seed


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_answer_in_double_precision_passes(name):
    oracle = FUNCTIONS[name].oracle

    def doubled(value):
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            return value.double()
        return tuple(map(doubled, value)) if isinstance(value, tuple | list) else value

    assert judge(TASKS[name], lambda *arguments: doubled(oracle(*arguments))).state == PASSED


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_right_known_and_other(name):
    task = NUMBERS[name]
    right, other, *rest = gathered("NUMBERS")[name]
    measured = dict(*rest)
    assert [judge(task, number, **measured).state for number in right] == [PASSED] * len(right)
    assert len(task.wrong_values) >= 3
    for wrong in task.wrong_values:
        value = wrong.value(**measured) if callable(wrong.value) else wrong.value
        outcome = judge(task, value, **measured)
        assert (outcome.state, outcome.diagnosis, outcome.advice) == (FAILED, wrong.name, wrong.advice)
    for number in other:
        assert judge(task, number, **measured).diagnosis == "not equal"


@pytest.mark.parametrize("name", CHOICES)
def test_choices_each_with_its_own_explanation(name):
    task = CHOICES[name]
    right = gathered("CHOICES")[name]
    assert judge(task, right).state == PASSED
    assert len(task.options) >= 4
    for label, option in task.options.items():
        if label != right:
            outcome = judge(task, label)
            assert outcome.state == FAILED
            assert option.explanation in outcome.message
            assert task.options[right].explanation not in outcome.message
    assert len({option.explanation for option in task.options.values()}) == len(task.options)
