"""The weekly question to each address outside: which answers count as gone."""

import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "site"))

import external_links


def answering(*answers):
    """A stand-in for requests.get that gives these answers one after the other: a status, or an error to raise."""
    waiting = list(answers)

    @contextmanager
    def get(url, **options):
        answer = waiting.pop(0)
        if isinstance(answer, Exception):
            raise answer
        response = requests.Response()
        response.status_code = answer
        yield response

    return get


@pytest.mark.parametrize(
    ("answers", "state"),
    [
        ([200], "there"),
        ([404], "gone: 404"),
        ([410], "gone: 410"),
        ([503, 200], "there"),
        ([403, 403, 403], "not known: 403"),
        ([requests.Timeout(), requests.Timeout(), requests.Timeout()], "not known: Timeout"),
        ([requests.ConnectionError()] * 3, "gone: ConnectionError"),
        ([requests.ConnectionError(), 200], "there"),
    ],
)
def test_what_became_of_an_address(answers, state):
    assert external_links.state("https://example.org", answering(*answers)) == state


@pytest.mark.parametrize(("became", "code"), [("there", 0), ("not known: 403", 0), ("gone: 404", 1)])
def test_only_what_is_gone_fails(tmp_path, monkeypatch, capsys, became, code):
    monkeypatch.setattr(external_links, "state", lambda url: became)
    path = tmp_path / "external_links.txt"
    path.write_text("https://example.org/a\n", encoding="utf-8")
    assert external_links.main(path) == code
    assert capsys.readouterr().out.split() == [*became.split(), "https://example.org/a"]
