"""How people work with the model: ways round failures, and probes of the model (figures 5a, 5b).

No stage is asked whether a comment is a workaround. What is listed are candidates, by a rule on the
verdicts that there are: in one sample somebody speaks of a failure, and a later comment, of
another post, of success or of both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from echo_hf.analysis.failures import comments_of, example, shortened
from echo_hf.analysis.figures import Part
from echo_hf.analysis.post_times import PostTimes
from echo_hf.analysis.result import Interaction, Probe, Workaround

LONGEST_PROMPT = 280
PROBE = "probe"
WORKED = frozenset({"success", "mixed"})
Sample = Mapping[str, Any]
InteractionPart = Part[Interaction]


def interaction(samples: Sequence[Sample], times: PostTimes) -> InteractionPart:
    """Lists what may be workarounds, and what are probes.

    Args:
        samples: Rows of samples, with kinds, and verdicts of their comments.
        times: When posts were posted; without a time, the order of the comments holds.

    Returns:
        Both lists, by sample in the order given.
    """
    found = Interaction(
        workarounds=tuple(one for sample in samples for one in _workarounds(sample, times)),
        probes=tuple(_probe(sample, times) for sample in samples if sample["kind"] == PROBE),
    )
    definition = {
        "workarounds": "candidates: a comment of verdict success or mixed after one, of another "
        "post, of verdict failure or mixed with a keyword, on the same sample",
        "probes": "samples of kind probe",
    }
    return InteractionPart(found=found, definition=definition)


def _workarounds(sample: Sample, times: PostTimes) -> Iterator[Workaround]:
    comments = list(comments_of(sample))
    if all(times.of(one.url) for one in comments):
        comments.sort(key=lambda one: times.order(one.url)[:2])
    said_by: dict[str, set[str | None]] = defaultdict(set)  # posts by the failure that they name
    for comment in comments:
        failed = _named_by_others(said_by, comment.url) if comment.verdict in WORKED else ()
        if failed:
            yield Workaround(
                id=sample["id"],
                prompt=_first_words(sample),
                failed=failed,
                comment=example(comment.url, comment.text, times),
            )
        if comment.form and comment.keyword:
            said_by[comment.keyword].add(comment.url)


def _named_by_others(said_by: Mapping[str, set[str | None]], url: str | None) -> tuple[str, ...]:
    return tuple(keyword for keyword, posts in said_by.items() if len(posts) > (url in posts))


def _probe(sample: Sample, times: PostTimes) -> Probe:
    url = (sample["post_urls"] or [None])[0]
    return Probe(
        id=sample["id"],
        prompt=_first_words(sample),
        post=example(url, None, times),
        comments=len(sample["community_feedback"] or ()),
    )


def _first_words(sample: Sample) -> str | None:
    return None if sample["prompt"] is None else shortened(sample["prompt"], LONGEST_PROMPT)
