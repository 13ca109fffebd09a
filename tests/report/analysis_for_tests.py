"""An analysis that a test states itself."""

from __future__ import annotations

import math
from typing import Any

from echo_hf.report.analysis.result import Analysis

MISSING = {"reason": "not_configured", "detail": "name a language model: analysis.perplexity"}
PARTS = (
    "diversity",
    "lengths",
    "languages",
    "near_duplicates",
    "perplexity",
    "tasks",
    "embedding_map",
    "failures",
    "word_cloud",
    "interaction",
    "activity",
    "funnel",
)
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 60 20"><text y="15">tint</text></svg>'


def estimate(value: float, room: float = 0.0) -> dict[str, Any]:
    """A number, with an interval where there is room for one."""
    ends = {"low": value - room, "high": value + room} if room else {}
    return {"value": value, **ends}


def analysis(**parts: Any) -> Analysis:
    """An analysis with the parts that are given, and every other one missing."""
    every = {name: {"found": found} for name, found in parts.items()}
    written = {
        "name": "invented",
        "toolkit": "0.1.0",
        "source": {"kind": "run"},
        "samples": 40,
        "sets": [],
        **dict.fromkeys(PARTS, MISSING),
        **every,
    }
    return Analysis.model_validate(written)


def every_part(word: str = "yellow tint") -> dict[str, Any]:
    """Every part, with a word of somebody's wherever there may be one."""
    post = {"post_url": f"https://example.org/{word}", "time": "2026-03-04T10:00:00Z", "text": word}
    return {
        "diversity": [_diversity("benchmark", 690.0, None), _diversity(word, 300.0, 2.3)],
        "lengths": [
            {
                "name": word,
                "characters": {"low": 40, "median": 80, "high": 200},
                "words": None,
                "words_of": 0,
            }
        ],
        "languages": [{"name": word, "prompts": {"en": 30, "ja": 9, "unknown": 1}}],
        "near_duplicates": [
            {
                "name": word,
                "prompts": 40,
                "clusters": 2,
                "in_clusters": 5,
                "share": 0.125,
                "largest": 3,
            }
        ],
        "perplexity": [_perplexity("benchmark", 61.0, None), _perplexity(word, 73.0, 1.2)],
        "tasks": _tasks(word),
        "embedding_map": _map(word),
        "failures": {
            "keywords": [
                {
                    "keyword": name,
                    "comments": 9 - at,
                    "samples": 7 - at,
                    "spellings": {name: 9 - at},
                    "by_month": {"2026-03": 9 - at},
                    "examples": [post],
                }
                for at, name in enumerate((word, "misspelt text", "layout"))
            ],
            "verdicts": {"failure": 24, "success": 30, "unasked": 2},
            "unnamed": 1,
            "untimed": 0,
        },
        "word_cloud": {"svg": SVG, "words": 3, "left_out": {}},
        "interaction": {
            "workarounds": [{"id": "a", "prompt": word, "failed": [word], "comment": post}],
            "probes": [{"id": "b", "prompt": word, "post": post, "comments": 3}],
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
    return {
        "name": name,
        "counted": 1000,
        "left_out": {},
        "unique": int(value),
        "at": 1000,
        "expected": estimate(value, 12.0),
        "deviation": 6.0,
        "ratio": None if ratio is None else estimate(ratio),
        "ratio_at": None if ratio is None else 1000,
        "most_common": [["make a", 12]],
    }


def _perplexity(name: str, value: float, ratio: float | None) -> dict[str, Any]:
    return {
        "name": name,
        "prompts": 40,
        "tokens": 2000,
        "left_out": {},
        "token_level": estimate(value, 3.0),
        "prompt_level": estimate(value * 2),
        "median": value,
        "ratio": None if ratio is None else estimate(ratio),
        "prompt_ratio": None,
    }


def _tasks(word: str) -> dict[str, Any]:
    count = {"task": "edit", "samples": 30, "share": 0.75, "in_references": {word: 0}}
    other = {"task": "restoration", "samples": 10, "share": 0.25, "in_references": {}}
    rate = {
        "split": "image_to_image",
        "task": "edit",
        "samples": 30,
        "few": True,
        "rates": {"anole_two": estimate(0.7, 0.1), "bravo": estimate(0.3, 0.1)},
        "coverage": {"anole_two": 1.0, "bravo": 1.0},
    }
    return {
        "counts": [{**count, "absent_from": [word]}, {**other, "absent_from": []}],
        "kinds": {"task": 40},
        "rates": [rate],
        "no_rates": None,
    }


def _map(word: str) -> dict[str, Any]:
    near = [_point("benchmark", at, 0.0, 0.3) for at in range(40)]
    far = [_point(word, at, 2.0, None) for at in range(60)]
    return {
        "points": [*near, *far],
        "explained": [0.2, 0.1],
        "nearest": {"low": 0.2, "median": 0.3, "high": 0.4},
        "most_novel": [
            {
                "id": "a",
                "prompt": word,
                "distance": 0.8,
                "nearest_set": word,
                "nearest_prompt": word,
            }
        ],
        "left_out": {},
    }


def _point(name: str, at: int, beside: float, nearest: float | None) -> dict[str, Any]:
    x, y = beside + math.sin(at * 1.7) * (1 + at % 5), math.cos(at * 2.3) * (1 + at % 7)
    return {"prompt_set": name, "id": str(at), "x": x, "y": y, "nearest": nearest}


def _day(at: int) -> dict[str, Any]:
    posts = max(0, 60 - 2 * at + 9 * (at % 4))
    return {
        "date": f"2026-{3 + at // 31:02}-{1 + at % 31:02}",
        "since_release": at,
        "posts": posts,
        "found": posts,
        "came_along": 0,
        "unknown": 0,
    }


def _step(stage: str, read: int, kept: int, lost: dict[str, int], word: str) -> dict[str, Any]:
    return {
        "stage": stage,
        "rows_in": read,
        "kept": kept,
        "reads": "posts",
        "makes": "posts",
        "lost": lost,
        "headline": word,
    }
