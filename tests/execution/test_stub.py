"""Stubs made from solutions, and the names that cells bind and use."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.execution.names import names_of
from course_utils.execution.stub import StubError, stub_of

RAISE = 'raise NotImplementedError("your turn")'
CLASS = """\
class A(B):
    '''Doc.'''

    def f(self):
        '''Doc.'''
        return 3

    def g(self): return 4"""
CLASS_STUB = f"""\
class A(B):
    '''Doc.'''

    def f(self):
        '''Doc.'''
        {RAISE}

    def g(self):
        {RAISE}"""


@pytest.mark.parametrize(
    ("solution", "stub"),
    [
        ("def f(x):\n    return 3 * x", f"def f(x):\n    {RAISE}"),
        ("def f(x): return 3 * x", f"def f(x):\n    {RAISE}"),
        ('def f(x):\n    """What it does.\n\n    More.\n    """\n    # a secret\n    return 3', "doc"),
        ("def f(\n    x: dict[str, int],  # [T]\n    y=(1, 2),\n) -> int:  # all\n    return 3", "head"),
        ("def f(x):\n    y = x + 1  # given\n\n    # your turn\n    return 3 * y", "given"),
        ("@cached\n@other(1)\nasync def f(x):\n    return 3", f"@cached\n@other(1)\nasync def f(x):\n    {RAISE}"),
        ("choice = 'b'  # a secret", "choice = ..."),
        ("length: int = 3 * 4", "length: int = ..."),
        ("a = b = 3", "a = b = ..."),
        ("# What to do.\nimport math\nfrom a import (\n    b,\n)\n\nx = 3\n# a secret\ny = 4", "several"),
        (CLASS, "class"),
        ("f = lambda x: 3 * x", "f = ..."),
        (
            "def f(x, *, key=lambda y: {1: y}[1:2]):\n    return 3",
            f"def f(x, *, key=lambda y: {{1: y}}[1:2]):\n    {RAISE}",
        ),
    ],
)
def test_a_stub_keeps_what_is_given_and_nothing_of_the_solution(solution, stub):
    longer = {
        "doc": f'def f(x):\n    """What it does.\n\n    More.\n    """\n    {RAISE}',
        "head": f"def f(\n    x: dict[str, int],  # [T]\n    y=(1, 2),\n) -> int:  # all\n    {RAISE}",
        "given": f"def f(x):\n    y = x + 1  # given\n    {RAISE}",
        "several": "# What to do.\nimport math\nfrom a import (\n    b,\n)\n\nx = ...\ny = ...",
        "class": CLASS_STUB,
    }
    made = stub_of(solution)
    assert made == longer.get(stub, stub)
    ast.parse(made)
    assert "secret" not in made


@pytest.mark.parametrize(
    ("solution", "reason"),
    [
        ("x = 3\nprint(x)", r"line 2, `print\(x\)`, is no import, function, class or assignment"),
        ("for x in y:\n    pass", "line 1, `for x in y:`"),
        ("# nothing", "it holds no statement"),
        ("import math", "it holds imports only"),
        ("class A:\n    x = 3", "line 2 of the class A is neither a docstring nor a method"),
    ],
)
def test_what_would_show_a_solution_is_refused(solution, reason):
    with pytest.raises(StubError, match=reason):
        stub_of(solution)


@given(st.integers(0, 5), st.booleans(), st.booleans(), st.text("abc_", min_size=1, max_size=5))
def test_no_line_of_a_body_is_left(lines, documented, one_liner, name):
    body = [f"secret_{number} = {number}" for number in range(lines)] + ["return secret"]
    text = f"def {name}_(x):" + (" return secret" if one_liner else "")
    if not one_liner:
        text += '\n    """Doc."""' * documented + "".join(f"\n    {line}" for line in body)
    made = stub_of(text)
    assert "secret" not in made
    assert made.splitlines()[0] == f"def {name}_(x):"
    assert ('"""Doc."""' in made) == (documented and not one_liner)


@pytest.mark.parametrize(
    ("code", "bound", "changed", "used"),
    [
        ("import a.b as c, d.e\nfrom f import g", "c d g", "", ""),
        ("x, (y, *z) = f(w)", "x y z", "", "f w"),
        ("def f(a):\n    b = a + c\n    return b", "f", "", "a b c"),
        ("x[0] = y\nz.a.b = 1\nn += 1\ndel q", "n", "x z n q", "x y z n q"),
        ("model.eval()\nprint(x)", "", "model", "model print x"),
        ("for i in r:\n    with o as p:\n        j = i", "i p j", "", "r o i"),
        ("try:\n    pass\nexcept E as e:\n    s = e", "e s", "", "E e"),
        ("[v for v in w]\nt = lambda k: k", "t", "", "v w k"),
        ("if (n := f()):\n    pass", "n", "", "f"),
        ("from x import *", "*", "", ""),
    ],
)
def test_names_of_a_cell(code, bound, changed, used):
    names = names_of(ast.parse(code))
    assert (names.bound, names.changed, names.used) == tuple(set(part.split()) for part in (bound, changed, used))
