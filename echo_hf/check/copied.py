"""Refuse words of gold that stand nowhere: prompts in no post, blanks in no template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from echo_hf.check.folded import folded
from echo_hf.check.gold_lines import Completion, ExtractLine, PictureAt, RolesLine
from echo_hf.check.gold_posts import GoldPosts
from echo_hf.check.inputs import Row, digest_of
from echo_hf.config_check import shown_value
from echo_hf.context.spans import SHORTEST_SPAN, SpanIndex
from echo_hf.errors import GoldError
from echo_hf.multimodal.blanks import completed, name_of, placeholders
from echo_hf.multimodal.notations import CANDIDATE, inside

File = tuple[str, str | int]


def check_prompts(lines: Sequence[ExtractLine], posts: GoldPosts) -> None:
    """Refuses a sample whose prompt nobody wrote.

    Args:
        lines: The samples of threads that are there.
        posts: The posts and their threads.

    Raises:
        GoldError: A prompt is not made of what the posts of its thread and the descriptions of
            their pictures say.
    """
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
    """Refuses completions of what is no template, or that no output shows.

    Args:
        lines: What people said about pictures that are there.
        posts: The posts and their threads.

    Raises:
        GoldError: A prompt has no blanks, or not the one that a value is given for, or the
            picture of a completion is no output.
    """
    roles = {_file(one, posts): one.role for line in lines for one in line.pictures}
    for line in lines:
        for one in line.filled:
            _check_blanks(line, one)
            _check_output(line, one.output, roles.get(_file(one.output, posts)))


def unknown_blanks(prompt: str, names: Sequence[str]) -> list[str]:
    """Names of blanks that a template lacks; one without a name may be called anything.

    Args:
        prompt: A template.
        names: What its blanks are called, with or without their marks.

    Returns:
        Those that it has no place for.

    Example:
        >>> unknown_blanks("a [PET] with a ____", ["pet", "hat"])
        []
        >>> unknown_blanks("a [PET] with a ____", ["PET", "hat", "dress"])
        ['dress']
    """
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
