"""Which column of somebody's table holds which field of a post."""

from __future__ import annotations

from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field

from echo_hf.config_fields import Section, Words

SECONDS = {"unix": 1.0, "unix_ms": 0.001}


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise ValueError("expected the name of a time zone, such as UTC or Europe/Berlin") from None
    return name


def _format(given: str) -> str:
    if given not in SECONDS and "%" not in given:
        raise ValueError(
            f"expected {' or '.join(SECONDS)}, or the form of a date, such as %d.%m.%Y %H:%M"
        )
    return given


def _named(given: Any) -> Any:
    return {"column": given} if isinstance(given, str) else given


class Column(Section):
    """A column, by its name in the header.

    Attributes:
        column: The name.
    """

    column: Words


class AddressColumn(Column):
    """A column of addresses, or of identifiers that addresses are made of.

    Attributes:
        prefix: What to put before each value, such as `https://x.com/i/status/`.
    """

    prefix: Words | None = None


class TimeColumn(Column):
    """A column of times.

    Attributes:
        format: As `datetime.strptime` reads it, or `unix` or `unix_ms` for seconds or thousandths
            since 1970; null for ISO 8601.
        zone: Where the clock stood, for times that do not say it.
    """

    format: Annotated[Words, AfterValidator(_format)] | None = None
    zone: Annotated[str, AfterValidator(_zone)] | None = None


class ListColumn(Column):
    """A column with several values in a cell.

    Attributes:
        separator: What stands between them; null when a cell holds one value, or a list.
    """

    separator: Annotated[str, Field(min_length=1, max_length=10)] | None = None


One = Annotated[Column, BeforeValidator(_named)]
Address = Annotated[AddressColumn, BeforeValidator(_named)]
Time = Annotated[TimeColumn, BeforeValidator(_named)]
Several = Annotated[ListColumn, BeforeValidator(_named)]


class Columns(Section):
    """A column for each field of a post that a table has; the others stay unknown.

    Attributes:
        url: The post's address.
        text: Its words.
        timestamp: When it was written.
        edited: When its text was last changed, for posts that are there more than once.
        author: The account's name.
        lang: Code of its language.
        post_id: The platform's own name of it.
        platform: Where it was posted.
        parent_url: The post that it answers.
        quoted_url: The post that it quotes.
        keywords: The search terms that found it.
        pictures: Addresses of its pictures, or files beside the table.
        missing: Why its content is not there.
        likes: A count; so are the four that follow.
        views: How often it was seen.
        reposts: How often it was passed on.
        replies: How often it was answered.
        bookmarks: How often it was kept.
    """

    url: Address
    text: One | None = None
    timestamp: Time | None = None
    edited: Time | None = None
    author: One | None = None
    lang: One | None = None
    post_id: One | None = None
    platform: One | None = None
    parent_url: Address | None = None
    quoted_url: Address | None = None
    keywords: Several | None = None
    pictures: Several | None = None
    missing: One | None = None
    likes: One | None = None
    views: One | None = None
    reposts: One | None = None
    replies: One | None = None
    bookmarks: One | None = None

    @property
    def names(self) -> dict[str, str]:
        """By field the name of its column."""
        given: dict[str, Column | None] = dict(self)
        return {field: one.column for field, one in given.items() if one is not None}

    @property
    def options(self) -> dict[str, dict[str, str]]:
        """By field what is to be known to read its column."""
        said = self.model_dump(exclude_none=True)
        rest = {
            field: {name: value for name, value in one.items() if name != "column"}
            for field, one in said.items()
        }
        return {field: one for field, one in rest.items() if one}
