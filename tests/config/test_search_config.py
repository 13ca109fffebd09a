"""What a config may say of a search, and how it is told what is wrong."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from echo_hf.config.collection import Span
from echo_hf.config.collection import phase_spans as spans
from echo_hf.config.loading import load_config, parse_config
from echo_hf.errors import ConfigError

ROOT = Path(__file__).resolve().parent.parent.parent
RELEASED = datetime.date(2025, 3, 25)
PHASE = {"window": "1d", "terms": ["a"]}
# Figure D.1 of the paper; its "40" is how text recognition reads "4o".
BROAD = {"4o", "gpt", "gpt-4o", "openai", "chatgpt"}
NARROW = {
    "create image",
    "gpt image",
    "4o image",
    "prompt share",
    "gpt prompt",
    "4o prompt",
    "create image gpt",
    "image gen",
    "生成",
    "画像",
}


def parsed(search: Any, **entry: Any) -> Any:
    """The search of a config with this one."""
    config = parse_config(
        {
            "name": "c",
            "target": {"name": "A", "developer": "B", "released": RELEASED},
            "posts": [{"source": "x", "search": search, **entry}],
            "engines": {"text": {"kind": "rules"}},
        },
        "c.yaml",
    )
    return config.posts[0].search


def test_the_config_of_the_paper_has_its_terms() -> None:
    """Broad terms in daily windows for two weeks, then narrow ones in weekly windows, on X."""
    config = load_config(ROOT / "eval_configs" / "gpt4o_release.yaml")
    (entry,) = config.posts
    assert entry.search is not None
    first, second = entry.search.phases

    assert (entry.source, config.target.released) == ("x", RELEASED)
    assert (set(first.terms), first.window, first.days) == (BROAD, "1d", 14)
    assert (set(second.terms), second.window) == (NARROW, "7d")


def test_the_config_of_a_current_model_asks_two_platforms_in_several_languages() -> None:
    """Terms that are not written in Latin letters, and terms limited to languages."""
    config = load_config(ROOT / "eval_configs" / "nano_banana_2_1_release.yaml")
    found = {entry.source: entry.search for entry in config.posts}

    assert set(found) == {"bluesky", "x"}
    assert all(search and len(search.phases) == 2 for search in found.values())
    assert any(not term.isascii() for one in found.values() if one for term in one.phases[0].terms)
    assert {code for s in found.values() if s for p in s.phases for code in p.languages} > {"ja"}


def test_phases_follow_each_other() -> None:
    """The first begins with the release; one with a start of its own may overlap others."""
    search = parsed(
        {
            "phases": [
                {**PHASE, "days": 14},
                {**PHASE, "until": "2025-06-30"},
                {**PHASE, "start": "2025-03-25"},
            ]
        }
    )

    assert spans(search.phases, RELEASED) == [
        Span(RELEASED, datetime.date(2025, 4, 8)),
        Span(datetime.date(2025, 4, 8), datetime.date(2025, 6, 30)),
        Span(RELEASED, None),
    ]


@pytest.mark.parametrize(
    ("search", "said"),
    [
        ({"phases": []}, "at least 1 item"),
        ({"phases": [{"window": "1d"}]}, "terms is missing"),
        ({"phases": [{"terms": ["a"]}]}, "window is missing"),
        ({"phases": [{**PHASE, "window": "1w"}]}, "window is '1w': expected a number of days"),
        ({"phases": [{**PHASE, "window": "0d"}]}, "such as 1d or 7d"),
        ({"phases": [{**PHASE, "terms": ["a", "a"]}]}, "'a' is there twice"),
        ({"phases": [{**PHASE, "languages": ["Japanese"]}]}, "two letters of ISO 639-1"),
        ({"phases": [{**PHASE, "days": 2, "until": "2025-04-01"}]}, "expected one of them"),
        ({"phases": [{**PHASE, "until": "2025-03-25"}]}, "expected a day after its start, 2025-03"),
        ({"phases": [PHASE, PHASE]}, "phases.1 begins where the phase before ends"),
        ({"phases": [{**PHASE, "untl": 1}]}, "unknown key in posts.0.search.phases.0 'untl'; did"),
        ({"phases": [PHASE], "budgt": {}}, "did you mean 'budget'?"),
        ({"phases": [PHASE], "budget": {"usd": 0}}, "greater than 0"),
        ({"phases": [PHASE], "budget": {"usd": float("inf")}}, "finite"),
        ({"phases": [PHASE], "expand": {"rounds": -1}}, "greater than or equal to 0"),
        ({"phases": [{**PHASE, "days": 10**10}]}, "phases.0.days is 10000000000: expected"),
        ({"phases": [{**PHASE, "days": 10**7}]}, "phases.0.days is 10000000: expected"),
        ({"phases": [PHASE], "token": "abc"}, "unknown key in posts.0.search 'token'"),
    ],
    ids=str,
)
def test_a_mistake_is_one_line(search: Any, said: str) -> None:
    """With the place, the value, and what was expected."""
    with pytest.raises(ConfigError) as caught:
        parsed(search)

    assert said in str(caught.value)
    assert str(caught.value).startswith("c.yaml: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"source": "blusky"}, "unknown platform 'blusky'; did you mean 'bluesky'?"),
        ({"source": "jsonl"}, "unknown platform 'jsonl'"),
        ({"path": "posts.jsonl"}, "has path and search: expected a file, or a platform"),
        ({"keywords": ["a"]}, "has keywords and search"),
    ],
    ids=str,
)
def test_a_platform_is_named_and_no_file(entry: Any, said: str) -> None:
    """A search belongs to a platform, and posts that are asked for lie in no file."""
    with pytest.raises(ConfigError, match=r"posts\.0") as caught:
        parsed({"phases": [PHASE]}, **entry)

    assert said in str(caught.value)


def test_a_platform_has_one_search() -> None:
    """Budgets count by platform: two searches would share theirs without saying so."""
    entry = {"source": "x", "search": {"phases": [PHASE]}}
    data = yaml.safe_load((ROOT / "eval_configs" / "gpt4o_release.yaml").read_text("utf-8"))
    with pytest.raises(ConfigError, match=r"posts.1: 'x' is searched twice"):
        parse_config({**data, "posts": [entry, entry]}, "c.yaml")
