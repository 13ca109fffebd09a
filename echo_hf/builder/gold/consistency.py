"""Refuse gold that does not fit its posts, or itself: the first mistake, in one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from echo_hf.builder.gold.folder import Gold, GoldPosts
from echo_hf.builder.gold.inputs import Row, digest_of
from echo_hf.builder.gold.lines import (
    Completion,
    ExtractLine,
    FeedbackLine,
    Line,
    PictureAt,
    PictureRole,
    RelevanceLine,
    RolesLine,
    SampleLine,
    ScreenshotLine,
    folded,
)
from echo_hf.config.checks import shown_value
from echo_hf.errors import GoldError
from echo_hf.samples.blanks import CANDIDATE, completed, inside, name_of, placeholders
from echo_hf.samples.spans import SHORTEST_SPAN, SpanIndex

File = tuple[str, str | int]


def check_prompts(lines: Sequence[ExtractLine], posts: GoldPosts) -> None:
    """Refuses a sample whose prompt nobody wrote."""
    threads = {row["root_url"]: row["posts"] for row in posts.threads.to_list()}
    for line in lines:
        written = SpanIndex(list(_texts(threads[line.root_url])))
        for sample in line.samples:
            if not written.holds(sample.prompt):
                raise GoldError(
                    f"{line.place}: prompt {shown_value(sample.prompt)} stands in no post of "
                    "its thread: expected words copied from there, or pieces of at least "
                    f"{SHORTEST_SPAN} words joined by a space"
                )


def check_filled(lines: Sequence[RolesLine], posts: GoldPosts) -> None:
    """Refuses completions of what is no template, or that no output shows."""
    roles = {_file(one, posts): one.role for line in lines for one in line.pictures}
    for line in lines:
        for one in line.filled:
            _check_blanks(line, one)
            _check_output(line, one.output, roles.get(_file(one.output, posts)))


def unknown_blanks(prompt: str, names: Sequence[str]) -> list[str]:
    """Names of blanks that a template lacks; one without a name may be called anything."""
    written = list(_written(prompt))
    known = {folded(name) for one in written for name in (one, inside(one), name_of(one))}
    strange = [
        name
        for name in names
        if folded(name) not in known and completed(prompt, [(name, "")]).unknown
    ]
    return strange[sum(not name_of(one) for one in written) :]


def _written(prompt: str) -> Iterator[str]:
    # A careful reader may know a blank that the stage takes for a remark.
    found = placeholders(prompt)
    yield from found
    yield from (one.group() for one in CANDIDATE.finditer(prompt) if one.group() not in found)


def _check_blanks(line: RolesLine, one: Completion) -> None:
    unmarked = all(completed(line.prompt, [(name, "")]).unknown for name in one.blanks)
    if unmarked and not any(_written(line.prompt)):
        raise GoldError(
            f"{line.place}: filled has {shown_value(one.prompt)}, but prompt "
            f"{shown_value(line.prompt)} has no blank: expected a template, or nothing in filled"
        )
    strange = unknown_blanks(line.prompt, list(one.blanks))
    if strange:
        raise GoldError(
            f"{line.place}: filled has a value for blank {shown_value(strange[0])}, which prompt "
            f"{shown_value(line.prompt)} lacks: expected the names that stand in its blanks"
        )


def _check_output(line: RolesLine, output: PictureAt, role: str | None) -> None:
    if role != "output":
        given = f"{role!r}" if role else "without a role"
        raise GoldError(
            f"{line.place}: filled has picture {output.index} of {output.post_url!r}, which is "
            f"{given}: expected one that pictures has as 'output'"
        )


def _file(picture: PictureAt, posts: GoldPosts) -> File:
    # A post may show the same file twice, of which one line is enough.
    return picture.post_url, digest_of(picture, posts) or picture.index


def _texts(posts: Sequence[Row]) -> Iterator[str]:
    for post in posts:
        yield post["text"] or ""
        pictures: Sequence[Mapping[str, str | None]] = post["pictures"] or []
        yield from (one["alt_text"] for one in pictures if one["alt_text"])


def addresses_of(gold: Gold) -> set[str]:
    """Every post that gold names."""
    return {url for lines in gold.lines.values() for line in lines for url in _named(line)}


def check_agreement(gold: Gold, posts: GoldPosts, where: str) -> None:
    """Refuses gold that does not fit the posts, or itself."""
    _check_posts(gold, posts, where)
    for lines in gold.lines.values():
        for line in lines:
            _check_root(line, posts)
    for row in gold.extract or ():
        _check_thread(row, posts)
    check_prompts(gold.extract or (), posts)
    for line in gold.roles or ():
        _check_pictures(line, posts)
    _check_one_line(gold.roles or ())
    _check_one_role(gold.roles or (), posts)
    check_filled(gold.roles or (), posts)
    _check_screenshots(gold, posts)
    _check_halves(gold, posts)
    if gold.extract is not None:
        _check_samples(gold, gold.extract)


def root_of(line: Line, posts: GoldPosts) -> str:
    """The root of the thread that a line speaks of."""
    return posts.root_of[next(_named(line))]


def _named(line: Line) -> Iterator[str]:
    if isinstance(line, RelevanceLine):
        yield line.url
    if isinstance(line, FeedbackLine | ScreenshotLine):
        yield line.post_url
    if isinstance(line, ExtractLine | SampleLine):
        yield line.root_url
    if isinstance(line, ExtractLine):
        for sample in line.samples:
            yield from (*sample.post_urls, *sample.feedback, *sample.feedback_optional)
    if isinstance(line, RolesLine):
        yield from (picture.post_url for picture in line.named)


def _check_posts(gold: Gold, posts: GoldPosts, where: str) -> None:
    missing: dict[str, Line] = {}
    for lines in gold.lines.values():
        for line in lines:
            # A missing root has an address and nothing to score.
            known = posts.pictures if isinstance(line, RelevanceLine) else posts.root_of
            missing.update((url, line) for url in _named(line) if url not in known)
    if missing:
        url, line = next(iter(missing.items()))
        more = f", nor are {len(missing) - 1} others" if len(missing) > 1 else ""
        raise GoldError(
            f"{line.place}: {url!r} is not in the posts ({where}){more}: expected addresses of "
            "posts that stand there"
        )


def _check_root(line: Line, posts: GoldPosts) -> None:
    if isinstance(line, ExtractLine | SampleLine):
        root = posts.root_of[line.root_url]
        if root != line.root_url:
            raise GoldError(
                f"{line.place}: root_url {line.root_url!r} answers another post: expected the "
                f"root of its thread, {root!r}"
            )


def _check_thread(line: ExtractLine, posts: GoldPosts) -> None:
    said: set[str] = set()
    for sample in line.samples:
        feedback = (*sample.feedback, *sample.feedback_optional)
        for url in (*sample.post_urls, *feedback):
            if posts.root_of[url] != line.root_url:
                raise GoldError(
                    f"{line.place}: {url!r} belongs to the thread of {posts.root_of[url]!r}: "
                    f"expected posts of {line.root_url!r}"
                )
        for url in feedback:
            if url in said:
                raise GoldError(
                    f"{line.place}: {url!r} is given as feedback twice: expected once in a thread"
                )
            said.add(url)


def _check_pictures(line: RolesLine, posts: GoldPosts) -> None:
    for picture in line.named:
        count = len(posts.pictures.get(picture.post_url, ()))
        if picture.index >= count:
            raise GoldError(
                f"{line.place}: picture {picture.index} of {picture.post_url!r}, which has "
                f"{count}: expected a position from 0 on"
            )
        if posts.root_of[picture.post_url] != line.root_url:
            raise GoldError(
                f"{line.place}: a picture of {picture.post_url!r}, which is not in the thread of "
                f"{line.root_url!r}: expected pictures of that thread"
            )


def _check_one_line(lines: Sequence[RolesLine]) -> None:
    first: dict[PictureAt, RolesLine] = {}
    for line in lines:
        for one in line.pictures:
            at = PictureAt(post_url=one.post_url, index=one.index)
            other = first.setdefault(at, line)
            if other is not line:
                raise GoldError(
                    f"{line.place}: picture {one.index} of {one.post_url!r} stands in "
                    f"{other.place} as well: expected each picture in one line"
                )


def _check_one_role(lines: Sequence[RolesLine], posts: GoldPosts) -> None:
    # A post may show the same file twice: it is looked at once, and has one role.
    first: dict[tuple[str, str | int], tuple[PictureRole, RolesLine]] = {}
    for line in lines:
        for one in line.pictures:
            file = posts.pictures[one.post_url][one.index] or one.index
            known, other = first.setdefault((one.post_url, file), (one, line))
            if known.role != one.role:
                raise GoldError(
                    f"{line.place}: picture {one.index} of {one.post_url!r} is {one.role!r}, but "
                    f"{known.role!r} in {other.place} as picture {known.index}: expected one role"
                )


def _check_halves(gold: Gold, posts: GoldPosts) -> None:
    first: dict[str, Line] = {}
    for lines in gold.lines.values():
        for line in lines:
            other = first.setdefault(root_of(line, posts), line)
            if other.half != line.half:
                raise GoldError(
                    f"{line.place}: half is {line.half!r}, but {other.half!r} in {other.place}, "
                    "which is of the same thread: expected one half (without one a line is "
                    "'held_out')"
                )


def _check_samples(gold: Gold, extract: tuple[ExtractLine, ...]) -> None:
    prompts: Mapping[str, list[str]] = {
        line.root_url: [sample.prompt for sample in line.samples] for line in extract
    }
    known = {
        SampleLine(root_url=root, prompt=prompt).key
        for root, every in prompts.items()
        for prompt in every
    }
    for line in (*(gold.roles or ()), *(gold.safety or ()), *(gold.tasks or ())):
        if line.key not in known:
            there = prompts.get(line.root_url, [])
            raise GoldError(
                f"{line.place}: prompt {shown_value(line.prompt)} is of no sample of that thread: "
                f"extract.jsonl has {shown_value(there)}"
            )
    listed = {
        url
        for line in extract
        for sample in line.samples
        for url in (*sample.feedback, *sample.feedback_optional)
    }
    for said in gold.feedback or ():
        if said.post_url not in listed:
            raise GoldError(
                f"{said.place}: {said.post_url!r} is feedback of no sample in extract.jsonl: "
                "expected a post that is listed there"
            )


def _check_screenshots(gold: Gold, posts: GoldPosts) -> None:
    marked = {
        (one.post_url, one.index)
        for line in gold.roles or ()
        for one in (line.conversation, line.collage, *line.duplicates_of_conversation)
        if one
    }
    for line in gold.screenshots or ():
        if line.index >= (count := len(posts.pictures.get(line.post_url, ()))):
            raise GoldError(
                f"{line.place}: picture {line.index} of {line.post_url!r}, which has {count}: "
                "expected a position from 0 on"
            )
        if gold.roles is not None and (line.post_url, line.index) not in marked:
            raise GoldError(
                f"{line.place}: picture {line.index} of {line.post_url!r} is no conversation or "
                "collage in roles.jsonl: expected one that is marked there"
            )
