"""Config sections of collecting: searches, columns of tables, fetching of images."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network
from typing import Annotated, Any, NamedTuple, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from echo_hf._infra.registry import Registry
from echo_hf.config.checks import Section, StrictInt, Words, check_unequal, match_pattern
from echo_hf.errors import ConfigError

# Of an image, wherever it comes from.
MAX_IMAGE_PIXELS = 100_000_000
MAX_IMAGE_BYTES = 64 * 1024 * 1024
# Whom a search can ask, and where posts may have been written, by their addresses.
PLATFORM_MODULES = ("echo_hf.collect.platforms",)
PLATFORMS: Registry[Any, None] = Registry(
    "platform", "echo_hf.platforms", packages=PLATFORM_MODULES
)
SITES: Registry[Any, None] = Registry("platform", "echo_hf.sites", packages=PLATFORM_MODULES)


Terms = Annotated[tuple[Words, ...], Field(min_length=1), AfterValidator(check_unequal)]
Language = Annotated[str, match_pattern("[a-z]{2}", "two letters of ISO 639-1, such as ja")]
DaysRule = match_pattern("[1-9][0-9]{0,2}d", "a number of days from 1d to 999d, such as 1d or 7d")


class Phase(Section):
    """A stretch of time in which the same terms are searched for.

    Attributes:
        terms: What is searched for, each by itself.
        languages: ISO 639-1 codes that each term is limited to in turn; empty for all at once.
        window: How much time one query covers, such as `1d` or `7d`.
        start: First day (UTC); null for the end of the phase before, or the day of the release.
        days: How long it lasts.
        until: The day after its last one; with neither, it lasts until now.
    """

    terms: Terms
    languages: Annotated[tuple[Language, ...], AfterValidator(check_unequal)] = ()
    window: Annotated[str, DaysRule]
    start: datetime.date | None = None
    days: Annotated[StrictInt, Field(ge=1, le=10_000)] | None = None
    until: datetime.date | None = None

    @property
    def length(self) -> datetime.timedelta:
        return datetime.timedelta(days=int(self.window.removesuffix("d")))

    @model_validator(mode="after")
    def _check_end(self) -> Self:
        if self.days is not None and self.until is not None:
            raise ValueError("has days and until: expected one of them")
        return self


class CrawlBudget(Section):
    """Where asking stops; the page that reaches it is the last one.

    Attributes:
        posts: Most posts, as the platform counts them for its bill.
        usd: Most US dollars.
    """

    posts: Annotated[StrictInt, Field(ge=1)] | None = None
    usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None


class ExpandLimits(Section):
    """How far reply trees are followed; without limits until nothing new comes.

    Attributes:
        rounds: How often the newly found posts are asked about; 0 keeps to the search.
        posts: Most posts that come by it, counted as for the budget.
    """

    rounds: Annotated[StrictInt, Field(ge=0)] | None = None
    posts: Annotated[StrictInt, Field(ge=1)] | None = None


class Search(Section):
    """The phases and limits of searching a platform.

    Attributes:
        phases: One after the other, or each with a `start` of its own.
        budget: Where asking stops.
        expand: How far reply trees are followed.
    """

    phases: Annotated[tuple[Phase, ...], Field(min_length=1)]
    budget: CrawlBudget = CrawlBudget()
    expand: ExpandLimits = ExpandLimits()


class DateRange(NamedTuple):
    start: datetime.date
    until: datetime.date | None


def phase_dates(
    phases: Sequence[Phase], released: datetime.date, place: str = ""
) -> list[DateRange]:
    """Return the dates of each phase; one without a start follows the phase before."""
    ranges: list[DateRange] = []
    start: datetime.date | None = released
    for number, phase in enumerate(phases):
        phase_place = f"{place}.phases.{number}" if place else f"phases.{number}"
        start = phase.start or start
        if start is None:
            raise ConfigError(
                f"{phase_place} begins where the phase before ends, and that one has no end: give "
                "it days or until, or this one a start"
            )
        until = start + datetime.timedelta(phase.days) if phase.days else phase.until
        if until is not None and until <= start:
            raise ConfigError(
                f"{phase_place}.until is {until}: expected a day after its start, {start}"
            )
        ranges.append(DateRange(start, until))
        start = until
    return ranges


SECONDS_PER_UNIT = {"unix": 1.0, "unix_ms": 0.001}


def _check_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise ValueError("expected the name of a time zone, such as UTC or Europe/Berlin") from None
    return name


TimeFormatRule = match_pattern(
    f"{'|'.join(SECONDS_PER_UNIT)}|.*%.*",
    f"{' or '.join(SECONDS_PER_UNIT)}, or the form of a date, such as %d.%m.%Y %H:%M",
)


def _expand_name(name_or_column: Any) -> Any:
    return {"column": name_or_column} if isinstance(name_or_column, str) else name_or_column


class SourceColumn(Section):
    """A column of a table.

    Attributes:
        column: The column's name in the header.
    """

    column: Words


class AddressColumn(SourceColumn):
    """A column of addresses, or of identifiers that addresses are made of.

    Attributes:
        prefix: What to put before each value, such as `https://x.com/i/status/`.
    """

    prefix: Words | None = None


class TimeColumn(SourceColumn):
    """A column of times.

    Attributes:
        format: As `datetime.strptime` reads it, or `unix` or `unix_ms` for seconds or thousandths
            since 1970; null for ISO 8601.
        zone: Where the clock stood, for times that do not say it.
    """

    format: Annotated[Words, TimeFormatRule] | None = None
    zone: Annotated[str, AfterValidator(_check_zone)] | None = None


class ListColumn(SourceColumn):
    """A column with several values in a cell.

    Attributes:
        separator: What stands between them; null when a cell holds one value, or a list.
    """

    separator: Annotated[str, Field(min_length=1, max_length=10)] | None = None


ColumnOrName = Annotated[SourceColumn, BeforeValidator(_expand_name, str | SourceColumn)]
AddressColumnOrName = Annotated[AddressColumn, BeforeValidator(_expand_name, str | AddressColumn)]
TimeColumnOrName = Annotated[TimeColumn, BeforeValidator(_expand_name, str | TimeColumn)]
ListColumnOrName = Annotated[ListColumn, BeforeValidator(_expand_name, str | ListColumn)]


class SourceColumns(Section):
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
        pictures: Addresses of its images, or files beside the table.
        missing: Why its content is not there.
        likes: How often it was liked.
        views: How often it was seen.
        reposts: How often it was passed on.
        replies: How often it was answered.
        bookmarks: How often it was kept.
    """

    url: AddressColumnOrName
    text: ColumnOrName | None = None
    timestamp: TimeColumnOrName | None = None
    edited: TimeColumnOrName | None = None
    author: ColumnOrName | None = None
    lang: ColumnOrName | None = None
    post_id: ColumnOrName | None = None
    platform: ColumnOrName | None = None
    parent_url: AddressColumnOrName | None = None
    quoted_url: AddressColumnOrName | None = None
    keywords: ListColumnOrName | None = None
    pictures: ListColumnOrName | None = None
    missing: ColumnOrName | None = None
    likes: ColumnOrName | None = None
    views: ColumnOrName | None = None
    reposts: ColumnOrName | None = None
    replies: ColumnOrName | None = None
    bookmarks: ColumnOrName | None = None

    @property
    def names(self) -> dict[str, str]:
        return {field: column.column for field, column in self if column is not None}

    @property
    def options(self) -> dict[str, dict[str, str]]:
        columns = self.model_dump(exclude_none=True)
        for column in columns.values():
            del column["column"]
        return {field: column for field, column in columns.items() if column}


class FetchPolicy(Section):
    """Limits of fetching; immutable, and closed to keys it does not know.

    Attributes:
        most_bytes: Largest image, in bytes.
        most_pixels: Width times height of the largest image.
        connect_timeout_s: Longest wait for looking a name up and connecting, in seconds.
        read_timeout_s: Longest silence of a server, in seconds.
        total_timeout_s: Longest attempt with all its redirects, however steadily bytes drip.
        max_attempts: How often an image is asked for in a run, while it may still go better.
        backoff_s: Longest wait before the second attempt, in seconds; it doubles with each.
        longest_wait_s: Longest wait that a server may ask for; beyond, its images are left for
            another run.
        max_redirects: Redirects of one address.
        concurrency: Most images under way at once; each may be in memory.
        per_host: Most images under way at once at one host.
        ports: Ports that are connected to.
        allow_addresses: Networks that are connected to though they are not public.
    """

    most_bytes: int = Field(MAX_IMAGE_BYTES, gt=0, le=MAX_IMAGE_BYTES)
    most_pixels: int = Field(MAX_IMAGE_PIXELS, gt=0, le=MAX_IMAGE_PIXELS)
    connect_timeout_s: float = Field(10.0, gt=0)
    read_timeout_s: float = Field(20.0, gt=0)
    total_timeout_s: float = Field(120.0, gt=0)
    max_attempts: int = Field(3, ge=1, le=10)
    backoff_s: float = Field(1.0, ge=0)
    longest_wait_s: float = Field(60.0, ge=0)
    max_redirects: int = Field(5, ge=0, le=20)
    concurrency: int = Field(8, ge=1, le=64)
    per_host: int = Field(4, ge=1, le=64)
    ports: frozenset[int] = frozenset({80, 443})
    allow_addresses: tuple[IPv4Network | IPv6Network, ...] = ()
