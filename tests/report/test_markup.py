"""Elements from hostile values: what a browser would parse is what was given."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.report.markup import (
    REPLACEMENT,
    UNSHOWN,
    Markup,
    element,
    is_web,
    joined,
    link,
    printable,
)

ANYTHING = st.text(st.characters(exclude_categories=()))


class Parsed(HTMLParser):
    """What a parser that is not ours makes of some markup."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keeps an element and its attributes."""
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Keeps what would be read."""
        self.words += data


@given(ANYTHING)
def test_text_stays_text(text: str) -> None:
    """Whatever a text holds, it makes no element, and is read as it was but for what is unshown."""
    parsed = Parsed(element("p", text))
    assert parsed.tags == [("p", {})]
    assert parsed.words == UNSHOWN.sub(REPLACEMENT, text.replace("\r\n", "\n"))


@given(ANYTHING)
def test_attributes_stay_attributes(text: str) -> None:
    """Whatever a value holds, it does not leave its quotes."""
    ((tag, attributes),) = Parsed(element("a", title=text)).tags
    assert (tag, list(attributes)) == ("a", ["title"])
    assert attributes["title"] == printable(text)


@given(ANYTHING)
def test_what_is_shown_can_be_written(text: str) -> None:
    """No half character is left, and nothing turns the direction of what follows."""
    said = printable(text)
    said.encode("utf-8")
    assert not {"\u202d", "\u202e", "\x00", "\x1b"} & set(said)


@pytest.mark.parametrize("name", ["onclick", "onError", "style", "srcdoc", "on_load", "a b", ""])
def test_attributes_that_run_cannot_be_made(name: str) -> None:
    """Neither event handlers nor styles can be written, by whatever spelling."""
    with pytest.raises(ValueError, match="script nor style"):
        element("p", **{name: "1"})


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        " https://example.org",
        "java\nscript:alert(1)",
        "data:text/html,<script>1</script>",
        "//example.org/a",
        "ftp://example.org",
        "http:/example.org",
        "https://[broken",
        "",
    ],
)
def test_only_the_web_is_linked(address: str) -> None:
    """An address that is none of the web is text."""
    assert not is_web(address)
    assert [tag for tag, _ in Parsed(link(address, "x")).tags] == ["span"]


def test_a_link_tells_the_page_nothing() -> None:
    """A link opens without telling where it was."""
    ((tag, attributes),) = Parsed(link("https://example.org/a?b=1&c=2")).tags
    assert tag == "a"
    assert attributes["href"] == "https://example.org/a?b=1&c=2"
    assert set(str(attributes["rel"]).split()) == {"noreferrer", "noopener"}


def test_markup_is_not_escaped_twice() -> None:
    """Elements go into elements as they are; null and false leave no trace."""
    inner = element("b", "<")
    assert element("p", inner, None, hidden=False, id=None) == "<p><b>&lt;</b></p>"
    assert joined([inner, [Markup("<hr>")]], 3) == "<b>&lt;</b><hr>3"
