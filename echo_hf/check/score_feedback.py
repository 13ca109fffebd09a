"""How well comments are judged, and tasks named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from echo_hf.check.folded import folded
from echo_hf.check.found import FoundTask, FoundVerdict
from echo_hf.check.gold_lines import FeedbackLine, TaskLine
from echo_hf.check.inputs import Key
from echo_hf.check.measures import Item, Scored

NO_PICTURE = "no picture asked for"
NO_KEYWORD = "no keyword"


def score_verdicts(
    lines: Sequence[FeedbackLine], found: Mapping[str, FoundVerdict], root_of: Mapping[str, str]
) -> list[Scored]:
    """Compares what comments say.

    Args:
        lines: What people wrote down.
        found: What an engine said, by post.
        root_of: The root of each post.

    Returns:
        The share of acceptable verdicts; and of the comments that name a failure the share of
        acceptable keywords, where an engine gave one.
    """
    failures = [line for line in lines if line.right_keywords]
    return [
        Scored("verdict_accuracy", [_verdict(line, found, root_of) for line in lines]),
        Scored("keyword_accuracy", [_keyword(line, found, root_of) for line in failures]),
    ]


def score_tasks(
    lines: Sequence[TaskLine], asked: Mapping[str, Key], found: Mapping[str, FoundTask]
) -> list[Scored]:
    """Compares what samples ask for; each completion of a template is one.

    Args:
        lines: What people wrote down.
        asked: The gold sample of each row that the stage is asked about, by the row's id.
        found: What an engine said, by the row's id.

    Returns:
        The shares of right kinds and of acceptable tasks.
    """
    line_of = {line.key: line for line in lines}
    rows = [(id_, line_of[key]) for id_, key in asked.items() if key in line_of]
    return [
        Scored("kind_accuracy", [*_kinds(rows, found)]),
        Scored("task_accuracy", [*_tasks(rows, found)]),
    ]


def _verdict(
    line: FeedbackLine, found: Mapping[str, FoundVerdict], root_of: Mapping[str, str]
) -> Item:
    given = found[line.post_url].verdict if line.post_url in found else None
    expected = " or ".join(sorted(line.right))
    score = None if given is None else float(given in line.right)
    return Item(root_of[line.post_url], line.post_url, expected, given or "", score)


def _keyword(
    line: FeedbackLine, found: Mapping[str, FoundVerdict], root_of: Mapping[str, str]
) -> Item:
    said = found.get(line.post_url)
    given = folded(said.keyword or "") if said else ""
    expected = " or ".join(sorted(line.right_keywords))
    score = float(given in line.right_keywords) if given else None
    shown = given or (NO_KEYWORD if said else "")
    return Item(root_of[line.post_url], line.post_url, expected, shown, score)


def _kinds(rows: Sequence[tuple[str, TaskLine]], found: Mapping[str, FoundTask]) -> Iterator[Item]:
    for id_, line in rows:
        given = found[id_].kind or NO_PICTURE if id_ in found else ""
        score = float(given == line.kind) if given else None
        yield Item(line.root_url, line.prompt, line.kind, given, score)


def _tasks(rows: Sequence[tuple[str, TaskLine]], found: Mapping[str, FoundTask]) -> Iterator[Item]:
    for id_, line in rows:
        given = found[id_].task or NO_PICTURE if id_ in found else ""
        score = float(given in line.right) if given else None
        yield Item(line.root_url, line.prompt, " or ".join(sorted(line.right)), given, score)
