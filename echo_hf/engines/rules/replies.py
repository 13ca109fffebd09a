"""Decide what each reply of a thread is: a picture of a sample, feedback, or a comment."""

from __future__ import annotations

from echo_hf.engines.rules.feedback import judges, judges_own, says_tried
from echo_hf.engines.rules.reading import MOST_WORDS_OF_A_REMARK
from echo_hf.engines.rules.relevance import PERHAPS, judge
from echo_hf.engines.rules.samples import Draft, Quality, Samples
from echo_hf.engines.rules.thread import Post, same_author

FEWEST_WORDS = 4


def assign(samples: Samples) -> None:
    """Gives every post of the thread to a sample, as far as it belongs to one."""
    for post in samples.thread:
        own = samples.owner.get(post.number)
        if own is None:
            _reply(post, samples)
        elif own.primary is post:
            own.hear_beside(post, samples.thread.names)
        elif judges_own(post.said):
            own.hear(post, post.text)


def fall_back(samples: Samples) -> None:
    """Makes a sample of the first post that says something, when the thread has none."""
    posts = [post for post in samples.thread if post.text.strip()]
    root = next(iter(samples.thread), None)
    first = next((p for p in posts if p is root or p.said.length >= FEWEST_WORDS), None)
    if first:
        quality: Quality = "Analysis" if _score(first, samples) >= PERHAPS else "Trash"
        samples.add_comment(first, quality)
        assign(samples)


def _reply(post: Post, samples: Samples) -> None:
    above = samples.owner.get(post.parent)
    if above and _takes_part(post, above, samples):
        samples.owner[post.number] = above
    elif _comments(post, above, samples):
        samples.add_comment(post, "Analysis")
    elif above:
        samples.owner[post.number] = above


def _takes_part(post: Post, above: Draft, samples: Samples) -> bool:
    joined = _shows(post, above) and above.join(post)
    if post.found:
        above.hear_beside(post, samples.thread.names)
        return joined
    speaks = post.said.length > 0 or not joined
    return (speaks and judges(post.said) and above.hear(post, post.text)) or joined


def _shows(post: Post, above: Draft) -> bool:
    """Whether its pictures are what somebody made from the sample's prompt."""
    said = post.said
    if not post.pictures or (said.other and not said.target):
        return False
    if _wordless(post) or post.found or says_tried(said):
        return True
    filled_in = above.template and said.length <= 2 * MOST_WORDS_OF_A_REMARK
    return filled_in or (same_author(post, above.primary) and said.is_remark)


def _comments(post: Post, above: Draft | None, samples: Samples) -> bool:
    said = post.said
    if said.length < FEWEST_WORDS or said.asks_for_prompt:
        return False
    among_pictures = said.picture and (post.pictures > 0 or above is not None)
    return (among_pictures and not said.is_remark) or _score(post, samples) > PERHAPS


def _score(post: Post, samples: Samples) -> int:
    verdict = judge(post.said, post.alt_texts, post.pictures, samples.thread.names)
    return verdict.score if verdict else 0


def _wordless(post: Post) -> bool:
    words = (word for word in post.said.text.split() if not word.startswith("#"))
    return not any(letter.isalnum() for word in words for letter in word)
