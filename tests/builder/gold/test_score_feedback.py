"""Verdicts and tasks, against counts by hand."""

from __future__ import annotations

from typing import Any

from echo_hf.builder.gold.inputs import FoundTask, FoundVerdict
from echo_hf.builder.gold.lines import FeedbackLine, TaskLine
from echo_hf.builder.gold.measures import Measure, measured
from echo_hf.builder.gold.sample_scores import score_tasks, score_verdicts

ROOT = "https://example.org/r"


def url(name: str) -> str:
    """Address of a post."""
    return f"https://example.org/{name}"


def said(name: str, verdict: str, *keywords: str, **more: Any) -> FeedbackLine:
    """What people wrote down about a comment."""
    best = keywords[0] if keywords else None
    values = {"verdict": verdict, "acceptable_keywords": keywords, **more}
    return FeedbackLine(post_url=url(name), keyword=best, **values)


def verdicts(lines: list[FeedbackLine], found: dict[str, FoundVerdict]) -> dict[str, Measure]:
    """The measures by name."""
    given = {url(name): one for name, one in found.items()}
    scored = score_verdicts(lines, given, {one.post_url: ROOT for one in lines})
    return {one.name: measured("feedback", one, errors=True) for one in scored}


def test_verdicts_by_hand() -> None:
    """Two of four answers are acceptable; the fifth comment has none."""
    lines = [
        said("a", "success"),
        said("b", "failure", "layout", acceptable=("failure", "mixed")),
        said("c", "mixed", "tint"),
        said("d", "success"),
        said("e", "success"),
    ]
    given = {"a": "success", "b": "mixed", "c": "success", "d": "none"}
    found = verdicts(lines, {name: FoundVerdict(one, None) for name, one in given.items()})

    one = found["verdict_accuracy"]
    assert (one.value, one.n, one.asked, one.strict) == (2 / 4, 4, 5, 2 / 5)
    assert (found["keyword_accuracy"].n, found["keyword_accuracy"].asked) == (0, 2)


def test_keywords_by_hand() -> None:
    """Case and white space do not count; a failure without a keyword is not answered."""
    lines = [
        said("a", "failure", "colour cast", "tint"),
        said("b", "failure", "layout"),
        said("c", "mixed", "extra fingers"),
        said("d", "success"),
    ]
    found = {
        "a": FoundVerdict("failure", " Tint "),
        "b": FoundVerdict("failure", "layout shift"),
        "c": FoundVerdict("success", None),
        "d": FoundVerdict("failure", "tint"),
    }
    one = verdicts(lines, found)["keyword_accuracy"]

    assert (one.value, one.n, one.asked, one.strict) == (1 / 2, 2, 3, 1 / 3)
    assert [(error.expected, error.given) for error in one.errors] == [
        ("layout", "layout shift"), ("extra fingers", "no keyword"),
    ]  # fmt: skip


def test_tasks_by_hand() -> None:
    """Each row is one; that no picture is asked for is an answer, and a wrong one."""

    def line(prompt: str, kind: str, task: str, *acceptable: str) -> TaskLine:
        values: dict[str, Any] = {"kind": kind, "task": task, "acceptable": acceptable or (task,)}
        return TaskLine(root_url=ROOT, prompt=prompt, **values)

    lines = [
        line("a  fox", "task", "edit", "edit", "style_transfer"),
        line("who are you", "probe", "text_to_image"),
        line("an owl", "task", "text_to_image"),
    ]
    keys = {
        "1": (ROOT, "a fox"),
        "2": (ROOT, "a fox"),
        "3": (ROOT, "who are you"),
        "4": (ROOT, "an owl"),
        "5": (ROOT, "wow"),  # a comment, about which no line says anything
    }
    found = {
        "1": FoundTask(keys["1"], "task", "style_transfer"),
        "2": FoundTask(keys["2"], "task", "composition"),
        "3": FoundTask(keys["3"], None, None),
        "5": FoundTask(keys["5"], "task", "edit"),
    }
    kinds, tasks = (measured("feedback", one) for one in score_tasks(lines, keys, found))

    assert (kinds.value, kinds.n, kinds.asked) == (2 / 3, 3, 4)
    assert (tasks.value, tasks.n, tasks.asked) == (1 / 3, 3, 4)
