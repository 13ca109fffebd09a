"""How well posts are kept and dropped."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from echo_hf.check.gold_lines import RelevanceLine
from echo_hf.check.measures import Item, Scored


def score_relevance(
    lines: Sequence[RelevanceLine],
    found: Mapping[str, int],
    keep: Collection[int],
    root_of: Mapping[str, str],
) -> list[Scored]:
    """Compares scores of posts.

    Args:
        lines: What people wrote down.
        found: What an engine said, by post.
        keep: Scores that keep a thread.
        root_of: The root of each post.

    Returns:
        Precision and recall of keeping and of dropping, without the posts that people themselves
        would both keep and drop; and the share of acceptable scores.
    """
    clear = [line for line in lines if len({score in keep for score in line.right}) == 1]
    doubtful = len(lines) - len(clear)
    covered = sum(line.url in found for line in clear), len(clear)
    scored: list[Scored] = []
    for side, kept in (("keep", True), ("drop", False)):
        claimed = [one for one in clear if one.url in found and (found[one.url] in keep) is kept]
        wanted = [one for one in clear if (one.score in keep) is kept]
        precision = list(_sides(claimed, found, keep, root_of))
        recall = list(_sides(wanted, found, keep, root_of))
        scored.append(Scored(f"{side}_precision", precision, covered, skipped=doubtful))
        scored.append(Scored(f"{side}_recall", recall, skipped=doubtful))
    return [
        *scored,
        Scored("score_accuracy", [_scored(line, found, root_of) for line in lines]),
    ]


def _sides(
    lines: Sequence[RelevanceLine],
    found: Mapping[str, int],
    keep: Collection[int],
    root_of: Mapping[str, str],
) -> Iterator[Item]:
    for line in lines:
        given = found.get(line.url)
        agree = (given in keep) == (line.score in keep)
        expected = "keep" if line.score in keep else "drop"
        said = "" if given is None else "keep" if given in keep else "drop"
        score = None if given is None else float(agree)
        yield Item(root_of[line.url], line.url, expected, said, score)


def _scored(line: RelevanceLine, found: Mapping[str, int], root_of: Mapping[str, str]) -> Item:
    given = found.get(line.url)
    expected = " or ".join(map(str, sorted(line.right)))
    score = None if given is None else float(given in line.right)
    return Item(root_of[line.url], line.url, expected, str(given or ""), score)
