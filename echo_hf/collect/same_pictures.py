"""Tell which pictures of one post are the same one, in one row or in several.

Two entries are the same picture when they agree in address and digest, or when one of them lacks
one of the two and they agree in the other. Bytes that differ under one address are two pictures:
an address may have been given another picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

Entry = Mapping[str, Any]


class _Name(NamedTuple):
    url: str | None
    sha256: str | None


def merge_pictures(rows: Sequence[Sequence[Entry]]) -> list[dict[str, Any]]:
    """Joins the pictures of several rows of one post.

    Args:
        rows: For each row its pictures, as `posts.pictures` holds them.

    Returns:
        Each picture once, in the order of the row that has most, the rest by digest and address;
        of several descriptions the longest. Those that could not be had, and have no address, come
        last: as many as the row that has most shows beyond those that are named.
    """
    fullest = min(rows, key=_fewest, default=[])
    every = [*fullest, *sorted((one for row in rows for one in row), key=_spelt)]
    named = [one for one in every if one["url"] is not None or one["sha256"] is not None]
    alt_texts = _alt_texts(named)
    pictures = [
        {"sha256": name.sha256, "url": name.url, "alt_text": alt_texts[name]}
        for name in _whole(_name(one) for one in named)
    ]
    # A picture that could not be read may still be described.
    bare = [one["alt_text"] for one in every if _name(one) == (None, None)]
    described = dict.fromkeys(text for text in bare if text is not None)
    # One that only another row has by name is not lost.
    room = len(fullest) - len(pictures) - len(described)
    lost = room if None in bare else 0
    unnamed = [{"sha256": None, "url": None, "alt_text": text} for text in described]
    return pictures + unnamed + [{"sha256": None, "url": None, "alt_text": None}] * lost


def distinct_pictures(pictures: Sequence[Entry]) -> list[dict[str, Any]]:
    """Joins the pictures of one row: equal bytes are one picture, and nothing less than equal is.

    Args:
        pictures: Pictures, as `posts.pictures` holds them.

    Returns:
        Each picture once, in order, with all its descriptions; of pictures without digest those
        with one address are one.
    """
    found: dict[object, dict[str, Any]] = {}
    for number, one in enumerate(pictures):
        key = one["sha256"] or (one["url"] and ("url", one["url"])) or number
        found[key] = _both(found[key], one) if key in found else dict(one)
    return list(found.values())


def _both(first: Entry, second: Entry) -> dict[str, Any]:
    texts = [one["alt_text"] for one in (first, second) if one["alt_text"]]
    return {
        **first,
        "sha256": first["sha256"] or second["sha256"],
        "url": first["url"] or second["url"],
        "alt_text": "\n".join(dict.fromkeys(texts)) or None,
    }


def _whole(given: Iterable[_Name]) -> list[_Name]:
    names = list(dict.fromkeys(given))
    whole: dict[_Name, list[_Name]] = {}
    for name in names:
        if None not in name:
            whole.setdefault(_Name(name.url, None), []).append(name)
            whole.setdefault(_Name(None, name.sha256), []).append(name)
    # In the place of half a name stand the whole ones that it is half of.
    return list(dict.fromkeys(full for name in names for full in whole.get(name, [name])))


def _alt_texts(named: Sequence[Entry]) -> dict[_Name, str | None]:
    group_of = _groups(named)
    longest: dict[_Name, str | None] = {}
    for one in named:
        group, text = group_of[_name(one)], one["alt_text"]
        longest[group] = max(longest.get(group), text, key=_by_length)
    return {name: longest[group] for name, group in group_of.items()}


def _groups(named: Sequence[Entry]) -> dict[_Name, _Name]:
    """For each name the one that stands for all that share, step by step, an address or digest."""
    names = dict.fromkeys(_name(one) for one in named)
    linked: dict[tuple[int, str], list[_Name]] = {}
    for name in names:
        for kind, value in enumerate(name):
            if value is not None:
                linked.setdefault((kind, value), []).append(name)
    found: dict[_Name, _Name] = {}
    for start in names:
        waiting = [start]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found[name] = start
                for kind, value in enumerate(name):
                    waiting.extend(linked.pop((kind, value), []) if value is not None else [])
    return found


def _name(entry: Entry) -> _Name:
    return _Name(entry["url"], entry["sha256"])


def _by_length(text: str | None) -> tuple[bool, int, str]:
    return text is not None, len(text or ""), text or ""


def _fewest(pictures: Sequence[Entry]) -> tuple[int, list[tuple[tuple[bool, str], ...]]]:
    return -len(pictures), [_spelt(one) for one in pictures]


def _spelt(entry: Entry) -> tuple[tuple[bool, str], ...]:
    values = (entry[name] for name in ("sha256", "url", "alt_text"))
    return tuple((value is not None, value or "") for value in values)
