"""Who may work in an app: pseudonyms are words, and strangers need a password."""

from __future__ import annotations

import pytest

from echo_hf.apps.people import PASSWORDS, AppUsers, check_reachable, people_of, pseudonym
from echo_hf.errors import RunError


@pytest.mark.parametrize(
    ("typed", "kept"), [("Ada", "ada"), (" zoë-2 ", "zoë-2"), ("ＡＤＡ", "ada"), ("山田", "山田")]
)
def test_a_pseudonym_has_one_form(typed: str, kept: str) -> None:
    """Capitals, spaces around it and wide letters make nobody a second person."""
    assert pseudonym(typed) == kept


@pytest.mark.parametrize("typed", ["", " ", "a b", "a@b.c", "x" * 41, "<b>", "a\nb", "../x"])
def test_what_is_no_pseudonym_is_refused(typed: str) -> None:
    """In one line that shows it."""
    with pytest.raises(RunError, match="is not a pseudonym") as caught:
        pseudonym(typed)
    assert "\n" not in str(caught.value)


def test_a_list_of_people_is_closed() -> None:
    """Who is not on it is told who is."""
    people = people_of(["Ada", "ben", "ada"])
    assert people == AppUsers(("ada", "ben"))
    assert people.admitted("ADA") == "ada"
    with pytest.raises(RunError, match="'cy' is not on the list: choose one of ada, ben"):
        people.admitted("cy")


def test_everybody_may_choose_where_there_is_no_list() -> None:
    """No name, no password."""
    assert people_of([]).admitted("cy") == "cy"


def test_passwords_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A colon in a password belongs to it."""
    monkeypatch.setenv(PASSWORDS, "Ada:correct:horse ben:battery-staple")
    people = people_of(["auth"])
    assert people.names == ("ada", "ben")
    assert people.passwords == {"ada": "correct:horse", "ben": "battery-staple"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names 0 people"),
        ("ada:long-enough Ada:long-enough", "names 2 people, 1 of them distinct"),
        ("ada:hunter2", "the password of 'ada' is short"),
        ("ada", "the password of 'ada' is short"),
    ],
)
def test_bad_passwords_are_one_line_without_them(
    monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    """None is ever shown."""
    monkeypatch.setenv(PASSWORDS, text)
    with pytest.raises(RunError, match=said) as caught:
        people_of(["auth"])
    assert "hunter2" not in str(caught.value)
    assert "long-enough" not in str(caught.value)


def test_auth_stands_alone() -> None:
    """Names beside it would be of people without a password."""
    with pytest.raises(RunError, match="--people auth stands alone"):
        people_of(["auth", "ada"])


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "::", "example.org"])  # noqa: S104 - what is tested
def test_strangers_are_not_let_in_by_accident(host: str) -> None:
    """Another machine may come in with a password, or where it was said that anybody may."""
    with pytest.raises(RunError, match="can be reached from other machines"):
        check_reachable(host, AppUsers(("ada",)), anyone=False)
    check_reachable(host, AppUsers(("ada",), {"ada": "correct-horse"}), anyone=False)
    check_reachable(host, AppUsers(), anyone=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_this_machine_needs_no_password(host: str) -> None:
    """It is reached by its own users alone."""
    check_reachable(host, AppUsers(), anyone=False)
