"""An analysis that a test states itself."""

from __future__ import annotations

import math
from typing import Any

from echo_hf.report.analysis.result import Analysis

MISSING = {"reason": "not_configured", "detail": "name a language model: analysis.perplexity"}
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 60 20"><text y="15">tint</text></svg>'
PARTS = (
    *("diversity", "lengths", "languages", "near_duplicates", "perplexity", "tasks", "open_tasks"),
    *("embedding_map", "failures", "word_cloud", "interaction", "activity", "funnel"),
)


def _row(names: str, *values: Any) -> dict[str, Any]:
    return dict(zip(names.split(), values, strict=True))


def estimate(value: float, room: float = 0.0) -> dict[str, Any]:
    ends = {"low": value - room, "high": value + room} if room else {}
    return {"value": value, **ends}


def analysis(**parts: Any) -> Analysis:
    every = {name: {"found": found} for name, found in parts.items()}
    about = _row("name toolkit source samples sets", "invented", "0.1.0", {"kind": "run"}, 40, [])
    return Analysis.model_validate({**about, **dict.fromkeys(PARTS, MISSING), **every})


def every_part(word: str = "yellow tint") -> dict[str, Any]:
    post = {"post_url": f"https://example.org/{word}", "time": "2026-03-04T10:00:00Z", "text": word}
    quartiles = _row("low median high", 40, 80, 200)
    lengths = _row("name characters words words_of", word, quartiles, None, 0)
    alike = "name prompts clusters in_clusters share largest"
    keywords = "keyword comments samples spellings by_month examples"
    failures = [
        _row(keywords, name, 9 - at, 7 - at, {name: 9 - at}, {"2026-03": 9 - at}, [post])
        for at, name in enumerate((word, "misspelt text", "layout"))
    ]
    verdicts = {"failure": 24, "success": 30, "unasked": 2}
    return {
        "diversity": [_diversity("benchmark", 690.0, None), _diversity(word, 300.0, 2.3)],
        "lengths": [lengths],
        "languages": [{"name": word, "prompts": {"en": 30, "ja": 9, "unknown": 1}}],
        "near_duplicates": [_row(alike, word, 40, 2, 5, 0.125, 3)],
        "perplexity": [_perplexity("benchmark", 61.0, None), _perplexity(word, 73.0, 1.2)],
        "tasks": _tasks(word),
        "open_tasks": _open_tasks(word),
        "embedding_map": _map(word),
        "failures": _row("keywords verdicts unnamed untimed", failures, verdicts, 1, 0),
        "word_cloud": {"svg": SVG, "words": 3, "left_out": {}},
        "interaction": {
            "workarounds": [_row("id prompt failed comment", "a", word, [word], post)],
            "probes": [_row("id prompt post comments", "b", word, post, 3)],
        },
        "activity": {
            "days": [_day(at) for at in range(40)],
            "keywords": {word: 300, "lumen": 120},
            "undated": 2,
        },
        "funnel": [
            _step("collect", 900, 820, {"repost": 80}, word),
            _step("relevance", 820, 410, {"not_relevant": 410}, word),
            _step("splits", 120, 40, {}, word),
        ],
    }


def _diversity(name: str, value: float, ratio: float | None) -> dict[str, Any]:
    names = "name counted left_out unique at expected deviation ratio ratio_at most_common"
    through = None if ratio is None else estimate(ratio)
    expected, common = estimate(value, 12.0), [["make a", 12]]
    at = None if ratio is None else 1000
    return _row(names, name, 1000, {}, int(value), 1000, expected, 6.0, through, at, common)


def _perplexity(name: str, value: float, ratio: float | None) -> dict[str, Any]:
    names = "name prompts tokens left_out token_level prompt_level median ratio prompt_ratio"
    through = None if ratio is None else estimate(ratio)
    levels = (estimate(value, 3.0), estimate(value * 2), value)
    return _row(names, name, 40, 2000, {}, *levels, through, None)


def _tasks(word: str) -> dict[str, Any]:
    names = "task samples share in_references absent_from"
    counts = [
        _row(names, "edit", 30, 0.75, {word: 0}, [word]),
        _row(names, "restoration", 10, 0.25, {}, []),
    ]
    rates = {"anole_two": estimate(0.7, 0.1), "bravo": estimate(0.3, 0.1)}
    coverage = dict.fromkeys(rates, 1.0)
    about = "split task samples few rates coverage"
    rate = _row(about, "image_to_image", "edit", 30, True, rates, coverage)
    return _row("counts kinds rates no_rates", counts, {"task": 40}, [rate], None)


def _open_tasks(word: str) -> dict[str, Any]:
    names = "phrase samples share phrases different first_seen by_week elsewhere new_to"
    spelled, weeks = {word: 20, "a comic": 10}, {"2026-03-02": 21, "2026-03-16": 9}
    beside = {word: 0, "the release before": 10}
    groups = [_row(names, word, 30, 0.75, spelled, 2, "2026-03-04", weeks, beside, [word])]
    for at in range(25):
        rare = f"rare {word} {at}"
        groups.append(
            _row(names, rare, 1, 0.025, {rare: 1}, 1, None, {}, dict.fromkeys(beside, 0), [word])
        )
    about = "name prompts phrased untold"
    sets = [_row(about, word, 9, 8, None), _row(about, f"{word} 2", 9, 0, word)]
    compared = [*sets, _row(about, "the release before", 40, 40, None)]
    return _row("groups phrased undated compared", groups, 40, 2, compared)


def _map(word: str) -> dict[str, Any]:
    points = [_point("benchmark", at, 0.0, 0.3) for at in range(40)]
    points += [_point(word, at, 2.0, None) for at in range(60)]
    novel = _row("id prompt distance nearest_set nearest_prompt", "a", word, 0.8, word, word)
    near = _row("low median high", 0.2, 0.3, 0.4)
    names = "points explained nearest most_novel left_out"
    return _row(names, points, [0.2, 0.1], near, [novel], {})


def _point(name: str, at: int, beside: float, nearest: float | None) -> dict[str, Any]:
    x, y = beside + math.sin(at * 1.7) * (1 + at % 5), math.cos(at * 2.3) * (1 + at % 7)
    return _row("prompt_set id x y nearest", name, str(at), x, y, nearest)


def _day(at: int) -> dict[str, Any]:
    posts = max(0, 60 - 2 * at + 9 * (at % 4))
    date = f"2026-{3 + at // 31:02}-{1 + at % 31:02}"
    return _row("date since_release posts found came_along unknown", date, at, posts, posts, 0, 0)


def _step(stage: str, read: int, kept: int, lost: dict[str, int], word: str) -> dict[str, Any]:
    names = "stage rows_in kept reads makes lost headline"
    return _row(names, stage, read, kept, "posts", "posts", lost, word)
