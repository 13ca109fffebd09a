"""Turn a reply tree into samples, by plain rules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from echo_hf.engines.rules.announced import follow_pointers, join_parts, lend_upwards
from echo_hf.engines.rules.names import names_of
from echo_hf.engines.rules.replies import assign, fall_back
from echo_hf.engines.rules.samples import Draft, Samples
from echo_hf.engines.rules.thread import Thread, read_thread, same_author


def extract(inputs: Mapping[str, Any]) -> str | None:
    """Answers an extraction request.

    Args:
        inputs: posts (number, parent, author, text, pictures, alt_texts of each, depth first) and
            target.

    Returns:
        The answer as JSON; null where the word lists do not cover the language of what matters in
        the thread, or where it has text that no sample can hold.
    """
    thread = read_thread(inputs["posts"], names_of(inputs["target"]))
    drafts = samples_of(thread).settled()
    unspoken = not drafts and any(post.text.strip() for post in thread)
    if unspoken or not _covered(thread, drafts):
        return None
    return json.dumps({"samples": [draft.as_answer() for draft in drafts]}, ensure_ascii=False)


def samples_of(thread: Thread) -> Samples:
    """Finds the samples of a thread, the posts that show them, and what was said about them.

    Args:
        thread: The thread.

    Returns:
        Its samples; one at least where a post has words enough.
    """
    samples = Samples(thread)
    _find_prompts(samples)
    follow_pointers(samples)
    join_parts(samples)
    lend_upwards(samples)
    assign(samples)
    if not samples.drafts:
        fall_back(samples)
    return samples


def _find_prompts(samples: Samples) -> None:
    known: set[str] = set()
    for post in samples.thread:
        # Who repeats a prompt has tried it.
        if post.found and (prompt := " ".join(post.found.prompt.split())) not in known:
            known.add(prompt)
            samples.add_prompt(post, post.found)


def _covered(thread: Thread, drafts: list[Draft]) -> bool:
    """Whether the word lists cover what the thread's first author and the samples' authors say."""
    root = next(iter(thread), None)
    primary = {draft.primary.number for draft in drafts}
    matters = [
        post
        for post in thread
        if post is root or post.number in primary or (root and same_author(root, post))
    ]
    total = sum(len(post.text) for post in matters)
    unknown = sum(len(post.text) for post in matters if not post.said.covered)
    return 2 * unknown <= total
