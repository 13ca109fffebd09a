"""Bring together what an author spread over several posts of a thread."""

from __future__ import annotations

import re

from echo_hf.engines.rules.feedback import judges
from echo_hf.engines.rules.labelled import Found
from echo_hf.engines.rules.samples import Draft, Samples
from echo_hf.engines.rules.spans import LONGEST_PROMPT, Span, trimmed
from echo_hf.engines.rules.thread import Post, same_author

FEWEST_WORDS = 4
PART = re.compile(r"\s*(?:@[\w.-]+\s+)*\(?(\d{1,2})\s?/\s?\d{0,2}\)?[\s:.)-]*")
FINISHED = re.compile(r"[.!?。！？…\"”»」』)\]}]\s*\Z")


def follow_pointers(samples: Samples) -> None:
    """Takes an author's next words for the prompt that a post of theirs has announced."""
    answered = _answered(samples)
    announced: dict[int, int] = {}
    for post in samples.thread:
        if post.points and not post.found:
            announced[post.number] = post.number
        elif post.parent in announced and samples.thread.continues(post):
            by = announced[post.number] = announced[post.parent]
            found = None if post.found or by in answered else _pointed(post, samples)
            if found:
                answered.add(by)
                samples.add_prompt(post, found)


def _answered(samples: Samples) -> set[int]:
    """The posts below which their own authors give a prompt."""
    answered: set[int] = set()
    for draft in samples.drafts.values():
        at: Post | None = draft.primary
        while at and samples.thread.continues(at) and at.parent not in answered:
            answered.add(at.parent)
            at = samples.thread.parent(at)
    return answered


def _pointed(post: Post, samples: Samples) -> Found | None:
    said = post.said
    if said.length < FEWEST_WORDS or (judges(said) and not said.looks):
        return None
    span = trimmed(post.text, Span(0, len(post.text)), samples.thread.names)
    return span and Found(span.of(post.text))


def join_parts(samples: Samples) -> None:
    """Adds to an unfinished prompt of a numbered post what its author's next number says."""
    for post in samples.thread:
        above = samples.owner.get(post.parent)
        if above and post.number not in samples.owner and _is_next_part(post, above, samples):
            rest = _part(post, samples)
            if rest and len(above.prompt) + 1 + len(rest) <= LONGEST_PROMPT and above.join(post):
                above.prompt += " " + rest
                samples.owner[post.number] = above


def _is_next_part(post: Post, above: Draft, samples: Samples) -> bool:
    before = samples.thread.parent(post)
    if before is None or not same_author(before, post) or above.posts[-1] != before.number:
        return False
    first, second = PART.match(before.text), PART.match(post.text)
    if first is None or second is None or FINISHED.search(above.prompt[-8:]):
        return False
    return int(second[1]) == int(first[1]) + 1


def _part(post: Post, samples: Samples) -> str | None:
    number = PART.match(post.text)
    start = number.end() if number else 0
    span = trimmed(post.text, Span(start, len(post.text)), samples.thread.names)
    return span and span.of(post.text)


def lend_upwards(samples: Samples) -> None:
    """Gives samples the posts above them that show the pictures of their prompts."""
    for draft in list(samples.drafts.values()):
        at = samples.thread.parent(draft.primary)
        while at and at.number not in samples.owner and _announces(at, draft):
            samples.owner[at.number] = draft
            draft.around.append(at.said)
            if at.pictures:
                draft.join(at)
            at = samples.thread.parent(at)


def _announces(above: Post, draft: Draft) -> bool:
    if same_author(above, draft.primary):
        return draft.marked or above.points or not draft.primary.pictures
    return draft.marked and above.points and above.author is None is draft.primary.author
