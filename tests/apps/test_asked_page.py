"""What both apps' pages have in common: who comes in, and how."""

from __future__ import annotations

from html import unescape

import pytest

from echo_hf.apps.page import AskedPage, answer_of, start_page
from echo_hf.apps.people import AppUsers
from echo_hf.errors import RunError

HOSTILE = "<script>alert(1)</script>\" onload='x' ${y} {{z}}"


def test_the_start_page_escapes_what_was_typed() -> None:
    """A name that was refused is shown as it is."""
    page = start_page("Rank", (HOSTILE,), f"{HOSTILE} is not a pseudonym")
    assert "<script" not in page
    assert "onload='x'" not in page
    assert f">{HOSTILE} is not a pseudonym<" in unescape(page)


def test_the_start_page_offers_a_closed_list() -> None:
    """A button each, and nothing to type; without a list there is something to type."""
    page = start_page("Rank", ("ada", "ben"))
    assert 'data-name="ada"' in page
    assert 'data-name="ben"' in page
    assert ("<input" in page, "<input" in start_page("Rank", ())) == (False, True)


def test_who_is_refused_is_asked_again() -> None:
    """Not on the list, no pseudonym, or the log cannot be used: the page says why."""

    def opened(person: str) -> str:
        if person == "ben":
            raise RunError("cannot use the log of events")
        return f"the page of {person}"

    page = AskedPage("Rank", AppUsers(("ada", "ben")), (), opened, lambda person, _: person)
    shown = [unescape(page.shown_to(name)) for name in (None, "Ada", "cy", "a b", "ben")]
    assert shown[1] == "the page of ada"
    said = ["", "the page", "'cy' is not on the list", "'a b' is not a pseudonym", "cannot use the"]
    assert all(words in html for words, html in zip(said, shown, strict=True))
    assert [html.count('data-name="') for html in shown] == [2, 0, 2, 2, 2]


@pytest.mark.parametrize(("sent", "number"), [(3, 3), ("3", 0), (True, 0), (None, 0), (1.5, 0)])
def test_an_answer_names_what_it_answers(sent: object, number: int) -> None:
    """A page may send anything; only a whole number is one."""
    assert answer_of({"answer": sent}) == number
