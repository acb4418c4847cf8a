"""What a check says of functions: right ones written in any way, wrong ones, and those that do other things."""

import contextlib
import dataclasses
import functools
import io
import linecache
import random
import signal
import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from small_exercises import WEIGHTS

from course_utils.checks.exercise import Case, Exercise, Law, Mistake
from course_utils.checks.function_check import CheckBrokenError, check_function, is_stub
from course_utils.checks.outcome import FAILED, OPEN, PASSED

SMALLEST = torch.tensor([[1.0, 2.0], [3.0, 5.0]])


def check(answer, **changes):
    return check_function(dataclasses.replace(WEIGHTS, **changes), answer)


# Answers that are not there yet.


def stub(scores):
    """Weights of scores."""
    raise NotImplementedError("your turn")


def only_a_docstring(scores):
    """Weights of scores."""


def dots(scores): ...


def half_done(scores):
    powers = scores.exp()  # noqa: F841
    raise NotImplementedError("your turn")


@pytest.mark.parametrize("answer", [None, ..., stub, only_a_docstring, dots, half_done, lambda scores: None])
def test_a_stub_is_open_and_no_wrong_try(answer):
    outcome = check(answer)
    assert (outcome.state, outcome.diagnosis, outcome.example) == (OPEN, "", None)
    assert "not done yet" in str(outcome)
    assert "expected" not in str(outcome)


def test_not_implemented_of_a_library_is_a_fault_of_its_own():
    class Empty(torch.nn.Module):
        pass

    outcome = check(Empty())
    assert (outcome.state, outcome.diagnosis) == (FAILED, "raises NotImplementedError")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(stub, False), (only_a_docstring, True), (dots, True), (lambda x: x, False), (F.softmax, False), (3, False)],
)
def test_a_function_without_a_body_is_told(answer, expected):
    assert is_stub(answer) is expected


# Right answers, however they are written.


def with_lists(numbers):
    if numbers.ndim > 2:
        return [with_lists(part) for part in numbers]
    rows = []
    for row in numbers.tolist():
        powers = [np.exp(x) for x in row]
        rows.append([power / sum(powers) for power in powers])
    return rows


def with_numpy(x):
    powers = np.exp(x.numpy() - x.numpy().max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


class Layer(torch.nn.Module):
    def forward(self, anything):
        return anything.softmax(-1)


RIGHT = {
    "PyTorch": lambda scores: scores.softmax(-1),
    "lists": with_lists,
    "NumPy": with_numpy,
    "double precision": lambda x: x.double().softmax(-1),
    "a module": Layer(),
    "partial": functools.partial(torch.softmax, dim=-1),
    "with gradients": lambda x: x.clone().requires_grad_().softmax(-1),
    "more arguments": lambda x, axis=-1, *rest, **named: x.softmax(axis),
    "by the definition": lambda x: x.exp() / x.exp().sum(-1, keepdim=True),
}


@pytest.mark.parametrize("answer", RIGHT.values(), ids=RIGHT)
def test_right_answers_pass(answer):
    outcome = check(answer)
    assert outcome.state == PASSED, str(outcome)
    assert outcome.covered == "matrices and batches"
    assert bool(outcome)


def endless_list():
    value = []
    value.append(value)
    return value


def test_what_passes_for_a_tuple_a_number_and_a_text():
    def exercise(value):
        case = [Case((1.0,)), Case((2.0,))]
        return Exercise(
            "small", "Small", "01_attention", "By hand", "easy", 1, lambda x: value, lambda rng: case, (), "two inputs"
        )

    two = (torch.ones(2), 3)
    passing = [
        (two, lambda x: [np.ones(2), 3.0]),
        (two, lambda x: ([1, 1], torch.tensor(3))),
        (0.5, lambda x: torch.tensor(0.5)),
        (0.5, lambda x: np.float32(0.5)),
        (torch.ones(2), lambda x: torch.ones(2).to_sparse()),
        (torch.ones(2), lambda x: torch.ones(2, dtype=torch.bfloat16)),
        (torch.tensor([True, False]), lambda x: [1, 0]),
        (torch.tensor([1.0, 2.0]), lambda x: [1, 2]),
        ([1, 2], lambda x: torch.tensor([1, 2])),
        (torch.ones(2), lambda x: [torch.tensor(1.0), torch.tensor(1.0)]),
        (torch.ones(2, 3), lambda x: (np.ones(3), torch.ones(3))),
        ({"a": 1.0, "b": None}, lambda x: {"b": None, "a": np.array(1)}),
        ("causal", lambda x: "causal"),
        (torch.tensor([float("-inf"), 0.0]), lambda x: [-np.inf, 0]),
    ]
    for value, answer in passing:
        outcome = check_function(exercise(value), answer)
        assert outcome.state == PASSED, f"{value}: {outcome}"
    failing = [
        (two, lambda x: torch.ones(2), "wrong number of outputs"),
        (two, lambda x: (torch.ones(2), 3, 4), "wrong number of outputs"),
        (torch.ones(2), lambda x: (torch.ones(2),), "wrong number of outputs"),
        (0.5, lambda x: torch.tensor([0.5]), "wrong shape"),
        (torch.ones(2), lambda x: "ones", "wrong type"),
        (torch.ones(2), lambda x: object(), "wrong type"),
        (torch.ones(2), lambda x: torch.ones(2, dtype=torch.complex64), "wrong number type"),
        (torch.ones(2), lambda x: torch.ones(2, device="meta"), "wrong type"),
        (torch.ones(2), lambda x: torch.nested.nested_tensor([torch.ones(2)]), "wrong type"),
        (torch.ones(2), lambda x: endless_list(), "wrong number of outputs"),
        ([torch.ones(2), "a"], lambda x: endless_list(), "wrong number of outputs"),
        ({"a": 1.0}, lambda x: {"b": 1.0}, "wrong number of outputs"),
        ("causal", lambda x: "padding", "not equal"),
        (None, lambda x: 3, "wrong type"),
        (torch.tensor([float("-inf"), 0.0]), lambda x: [-1e4, 0], "not equal"),
    ]
    for value, answer, diagnosis in failing:
        outcome = check_function(exercise(value), answer)
        assert (outcome.state, outcome.diagnosis) == (FAILED, diagnosis), f"{value}: {outcome}"


def test_the_kind_of_number_counts_only_where_the_exercise_says_so():
    masks = dataclasses.replace(WEIGHTS, oracle=lambda x: x > 0, mistakes=(), laws=())
    assert check_function(masks, lambda x: (x > 0).float()).passed
    outcome = check_function(dataclasses.replace(masks, exact_type=True), lambda x: (x > 0).float())
    assert outcome.diagnosis == "wrong number type"
    assert outcome.message == "The output holds floating-point numbers, expected are booleans."


# Mistakes by name.


@pytest.mark.parametrize("mistake", WEIGHTS.mistakes, ids=lambda mistake: mistake.name)
def test_a_known_mistake_is_named_by_its_effect(mistake):
    outcome = check(lambda x: mistake.wrong(x))
    assert (outcome.state, outcome.diagnosis, outcome.advice) == (FAILED, mistake.name, mistake.advice)
    assert "To read again: “By hand” in 01_attention." in str(outcome)


def test_a_mistake_is_shown_on_the_smallest_input_side_by_side():
    example = check(lambda x: x.softmax(-2)).example
    assert example.note == "two by two"
    assert example.call == "x =\nshape [2, 2]\n[[1.  2.]\n [3.  5.]]"
    assert example.got.endswith("[[0.1192  0.0474]\n [0.8808  0.9526]]")
    assert example.expected.endswith("[[0.2689  0.7311]\n [0.1192  0.8808]]")


def test_a_mistake_with_another_fault_beside_it_is_not_named():
    def mistaken_but_for_one_row(x):
        return x.softmax(-2) if x.size(0) > 1 else x.softmax(-1)

    assert check(mistaken_but_for_one_row).diagnosis == "not equal"
    assert check(lambda x: 2 * x.softmax(-2)).diagnosis == "not equal"
    assert check(lambda x: x.softmax(-2).T if x.ndim == 2 else x.softmax(-2)).diagnosis != "softmax over the queries"


def test_two_mistakes_with_the_same_effect_are_not_told_apart():
    other = Mistake("softmax of the transposed scores", lambda s: s.mT.softmax(-1).mT, "Which axis?")
    outcome = check(lambda x: x.softmax(-2), mistakes=(*WEIGHTS.mistakes, other))
    assert outcome.diagnosis == "not equal"
    assert "softmax" not in outcome.message
    same_name = dataclasses.replace(other, name="softmax over the queries")
    assert (
        check(lambda x: x.softmax(-2), mistakes=(*WEIGHTS.mistakes, same_name)).diagnosis == "softmax over the queries"
    )


def test_a_mistake_that_gives_nan_or_raises_is_named():
    gives_nan = Mistake("divides zero by zero", lambda s: s.relu() / s.relu(), "Zero by zero?")
    assert check(lambda x: (x > 0) / (x > 0), mistakes=(gives_nan,)).diagnosis == "divides zero by zero"
    nan_all_over = Mistake("divides by what is not there", lambda s: s.softmax(-1) * float("nan"), "Zero times what?")
    assert check(lambda x: (x - x).log() * 0, mistakes=(nan_all_over,)).diagnosis == "gives NaN"
    too_far = Mistake("an axis too far", lambda s: s.softmax(-1 if s.ndim == 2 else 7), "Which axes are there?")
    raises = Mistake("stumbles over three axes", lambda s: s.softmax(-1) if s.ndim == 2 else {}["s"], "Which axes?")
    outcome = check(lambda x: x.softmax(-1) if x.ndim == 2 else {}["x"], mistakes=(raises,))
    assert outcome.diagnosis == "raises KeyError"  # another text, so perhaps another cause
    outcome = check(lambda x: x.softmax(-1) if x.ndim == 2 else x.softmax(7), mistakes=(too_far,))
    assert outcome.diagnosis == "an axis too far"
    assert check(lambda x: x.softmax(7), mistakes=(too_far,)).diagnosis == "raises IndexError"


def test_a_mistake_that_changes_its_input_is_told_from_one_that_does_not():
    in_place = Mistake("fills the scores in place", lambda s: s.exp_().div_(s.sum(-1, True)), "Who still needs them?")

    def changes(x):
        x.exp_()
        x /= x.sum(-1, keepdim=True)
        return x

    assert check(changes, mistakes=(in_place,)).diagnosis == "fills the scores in place"


@given(st.floats(-3, 3), st.floats(-3, 3), st.integers(-2, -1))
def test_whatever_is_wrong_in_an_unknown_way_gets_no_name(factor, offset, axis):
    def answer(x):
        return factor * x.softmax(axis) + offset

    outcome = check(answer)
    effects = [
        mistake.name for mistake in WEIGHTS.mistakes if torch.allclose(answer(SMALLEST), mistake.wrong(SMALLEST), 1e-3)
    ]
    assert outcome.diagnosis in {"", "not equal", *effects}


# Faults of every kind.


def returns_nothing(x):
    x.softmax(-1)


def exits(x):
    exit()


def interrupts(x):
    raise KeyboardInterrupt


class StrangeError(Exception):
    def __str__(self):
        raise RuntimeError("cannot be shown")


def raises_strangely(x):
    raise StrangeError


def divides(x):
    return 1 / 0


def recursive(x):
    return recursive(x)


def generator(x):
    yield x.softmax(-1)


async def coroutine(x):
    return x.softmax(-1)


def changes_its_input(x):
    x.exp_()
    x /= x.sum(-1, keepdim=True)
    return x


class Counter:
    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return x * self.calls


FAULTS = {
    "returns None": (returns_nothing, "The output is None."),
    "raises SystemExit": (exits, "It raises SystemExit"),
    "raises KeyboardInterrupt": (interrupts, "It raises KeyboardInterrupt"),
    "raises ZeroDivisionError": (divides, "It raises ZeroDivisionError: division by zero (line "),
    "raises RecursionError": (recursive, "It raises RecursionError"),
    "wrong arguments": (lambda q, k: q, "It is called with 1 argument, and takes (q, k)."),
    "not a function": (torch.ones(2), "The check needs the function itself, and got a tensor of shape [2]."),
    "wrong shape": (lambda x: x.sum(-1), "The output has the shape [2], expected is [2, 2]."),
    "wrong number of outputs": (lambda x: (x, x), "The output is a tuple or list of 2, expected is an array"),
    "wrong type": (lambda x: "0.5", "The output is a text, expected is an array of shape [2, 2]."),
    "gives NaN": (lambda x: (x - x).softmax(-1) * float("nan"), "4 of 4 numbers are NaN, the first at [0, 0]."),
    "gives infinite numbers": (lambda x: x / 0, "4 of 4 numbers are infinite, the first at [0, 0]."),
    "changes its input": (changes_its_input, "The output is right, but `x` is not what it was before the call."),
    "differs from call to call": (
        lambda x: torch.rand(x.shape),
        "Two calls with the same input give different outputs.",
    ),
}


@pytest.mark.parametrize("diagnosis", FAULTS)
def test_a_fault_is_told_as_what_it_is(diagnosis):
    answer, message = FAULTS[diagnosis]
    outcome = check(answer)
    assert (outcome.state, outcome.diagnosis) == (FAILED, diagnosis)
    assert message in outcome.message


def test_what_is_kept_between_calls_is_found():
    assert check(Counter()).diagnosis == "differs from call to call"


def test_an_exception_that_cannot_be_shown_is_survived():
    assert check(raises_strangely).diagnosis == f"raises {StrangeError.__module__}.StrangeError"


@pytest.mark.parametrize("answer", [generator, coroutine])
def test_generators_and_coroutines_are_explained(answer):
    outcome = check(answer)
    assert outcome.diagnosis == "wrong type"
    assert outcome.advice == "It should return its result: without yield, and without async."


def test_an_endless_answer_is_left_and_shown_with_its_input():
    def endless(x):
        while True:
            try:
                x = x + 1
            except BaseException:
                continue

    outcome = check_function(WEIGHTS, endless, seconds=0.3)
    assert (outcome.state, outcome.diagnosis) == (FAILED, "does not come to an end")
    assert (outcome.example.got, "expected" in str(outcome)) == ("", True)


def test_the_line_is_the_learners():
    namespace = {}
    code = "def answer(scores):\n    powers = scores.exp()\n    return powers @ powers[0, :1]\n"
    linecache.cache["<cell 7>"] = (len(code), None, code.splitlines(keepends=True), "<cell 7>")
    exec(compile(code, "<cell 7>", "exec"), namespace)
    message = check(namespace["answer"]).message
    assert message.endswith("(line 3: return powers @ powers[0, :1])")
    assert "Traceback" not in str(check(namespace["answer"]))


def test_a_real_interruption_is_passed_on():
    def slow(x):
        signal.raise_signal(signal.SIGINT)
        return x

    with pytest.raises(KeyboardInterrupt):
        check(slow)


# Observations, which name no cause.


@pytest.mark.parametrize(
    ("answer", "observation"),
    [
        (lambda x: 2 * x.softmax(-1), "Each number is 2 times the expected one, on all examples."),
        (lambda x: -x.softmax(-1), "Each number has the opposite sign."),
        (lambda x: x.softmax(-1) + 1, "Each number is the expected one plus 1, on all examples."),
        (lambda x: x.softmax(-1) / x.size(-1), "On each example, all numbers are off by one common factor"),
        (lambda x: x.softmax(-1).mT, "With its last two axes exchanged, the output would be right."),
        (lambda x: x.softmax(-1).unsqueeze(0), "The numbers are right; axes of size 1 are too many or missing."),
        (lambda x: x.softmax(-1).flatten(), "The numbers are right and in the right order; only the shape differs."),
        (lambda x: x.softmax(-1).flip(-1), "The numbers are the expected ones in another order."),
        (lambda x: x.softmax(-1) if x.ndim == 2 else x, "It is right on 2 of 3 examples."),
        (lambda x: x.half().softmax(-1), "The numbers are close: none is off by more than"),
    ],
)
def test_an_observation_holds_on_all_examples(answer, observation):
    outcome = check(answer)
    assert outcome.state == FAILED
    assert any(said.startswith(observation) for said in outcome.observations), outcome.observations


def test_which_of_several_outputs_is_right_is_said():
    both = dataclasses.replace(WEIGHTS, oracle=lambda x: (x.exp(), x.softmax(-1)), mistakes=(), laws=())
    outcome = check_function(both, lambda x: (x.exp(), x.softmax(-2)))
    assert outcome.message == "The output[1] is not equal to the expected one."
    assert "output[0] is right; only the rest differs." in outcome.observations


def test_a_broken_law_is_told():
    assert check(lambda x: x.sigmoid()).advice == "It should be that each row sums to 1; here it is not."


def test_laws_alone_can_decide():
    lawful = dataclasses.replace(WEIGHTS, oracle=None, mistakes=())
    assert check_function(lawful, lambda x: x.softmax(-1)).passed
    assert check_function(lawful, lambda x: torch.full_like(x, 1 / x.size(-1))).passed
    outcome = check_function(lawful, lambda x: x.exp())
    assert (outcome.diagnosis, outcome.example.expected) == ("breaks a law", "")
    assert check_function(lawful, lambda x: "text").diagnosis == "breaks a law"
    assert check_function(lawful, returns_nothing).diagnosis == "returns None"


# The notebook stays as it is.


def test_the_notebooks_own_state_neither_reaches_the_check_nor_is_changed():
    torch.manual_seed(3)
    np.random.seed(3)
    random.seed(3)
    before = (torch.random.get_rng_state(), np.random.get_state()[1].copy(), random.getstate())
    torch.set_default_dtype(torch.float64)
    old = np.seterr(all="raise")
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("error")

            def disturbing(x):
                torch.manual_seed(9)
                np.random.rand(5)
                random.random()
                torch.set_default_dtype(torch.float16)
                np.seterr(all="print")
                torch.set_grad_enabled(True)
                warnings.warn("careful", stacklevel=1)
                np.log(np.zeros(1))
                return x.softmax(-1)

            assert check(disturbing).passed
            assert not torch.is_grad_enabled()
            assert np.geterr()["divide"] == "raise"
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
        np.seterr(**old)
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])
    assert random.getstate() == before[2]


def test_the_default_device_neither_reaches_the_check_nor_is_changed():
    def disturbing(x):
        torch.set_default_device("meta")
        return x.softmax(-1)

    assert check(disturbing).passed
    assert torch.ones(1).device.type == "cpu"
    try:
        torch.set_default_device("meta")
        assert check(lambda x: torch.ones(()) * x.softmax(-1)).passed
        assert torch.get_default_device().type == "meta"
    finally:
        torch.set_default_device(None)


def test_gradients_can_be_asked_for_where_the_notebook_has_switched_them_off():
    with torch.inference_mode():
        assert check(lambda x: torch.autograd.grad(x.requires_grad_().logsumexp(-1).sum(), x)[0]).passed


def test_what_an_answer_prints_is_not_shown():
    def noisy(x):
        for _ in range(10_000):
            print("x" * 100)
        return x.softmax(-1)

    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        assert check(noisy).passed
    assert shown.getvalue() == ""


def test_a_check_repeats():
    assert str(check(lambda x: x.softmax(-2))) == str(check(lambda x: x.softmax(-2)))


def test_a_broken_oracle_is_not_blamed_on_the_answer():
    def broken(x):
        raise RuntimeError("tampered with")

    with pytest.raises(CheckBrokenError, match=r"says nothing about your answer: RuntimeError: tampered with"):
        check(lambda x: x, oracle=broken)
    with pytest.raises(CheckBrokenError, match="weights could not compute"):
        check(lambda x: x, cases=broken)


def test_nothing_of_the_solution_is_told():
    """The oracle's code stays away from all that is shown."""
    for answer in (stub, returns_nothing, divides, WEIGHTS.mistakes[0].wrong):
        text = str(check(answer)) + check(answer)._repr_html_()
        assert "F.softmax" not in text
        assert "lambda" not in text


def test_html_is_escaped():
    def answer(x):
        raise ValueError("<script>alert(1)</script>")

    page = check(answer)._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_laws_may_not_be_told_of_outputs_of_another_kind():
    def fails(case, output):
        raise AttributeError

    outcome = check(lambda x: x.exp(), laws=(Law("it is a tensor", fails),), mistakes=())
    assert (outcome.diagnosis, outcome.advice) == ("not equal", "")
