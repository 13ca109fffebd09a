"""Take an answer of Mastodon apart into posts that stand alone.

A status says what it answers by a number that only its own server understands. Addresses outlive
servers' numbers, so that each status is given the address of the one it answers, where the same
answer holds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from echo_hf.collect.fields import Fields
from echo_hf.collect.sources.x_pages import name_of

LISTS = ("statuses", "ancestors", "descendants")
Json = Mapping[str, Any]


def is_page(document: Any) -> bool:
    """Whether a JSON document holds statuses, and is none itself."""
    is_list = isinstance(document, list)
    return is_list or (
        isinstance(document, dict)
        and "uri" not in document
        and not {*LISTS, "about"}.isdisjoint(document)
    )


def taken_apart(page: Any) -> Iterator[Any]:
    """Takes an answer apart.

    Args:
        page: A list of statuses, the answer to a search, or what stands around a status; the last
            may be wrapped with `about`, the number and the address of that status.

    Yields:
        Statuses, those of a tree marked by `_included`, each with `_parent`, the address of what it
        answers where that is known; `_edge`, the address of the status asked about and of its
        parent; `_missing`, the address of one that is gone; or what was wrong, under `_findings`.
    """
    fields = Fields(page if isinstance(page, dict) else {"statuses": page})
    about = Fields(fields.object("about"), fields.findings, "about.")
    around = Fields(fields.object("context"), fields.findings, "context.") if about.record else None
    holder = around or fields
    found = [one for name in LISTS for one in _statuses(holder, name)]
    addresses = {name_of(one.get("id")): address_of(one) for one in found if isinstance(one, dict)}
    addresses[name_of(about.record.get("id"))] = about.text("url")
    for one in found:
        yield _linked(one, addresses, "statuses" not in holder.record)
    yield from _edge(about, holder, addresses)
    if fields.findings:
        yield {"_findings": [finding.detail for finding in fields.findings]}


def address_of(status: Json) -> Any:
    """What a status is called everywhere, or else on its own server."""
    uri = status.get("uri")
    return uri if isinstance(uri, str) and uri.startswith("http") else status.get("url")


def _statuses(holder: Fields, name: str) -> list[Any]:
    given = holder.record.get(name)
    # What is no status is rejected one by one, with its place.
    return given if isinstance(given, list) else [dict(one) for one in holder.objects(name)]


def _linked(status: Any, addresses: Mapping[str | None, Any], included: bool) -> Any:
    if not isinstance(status, dict):
        return status
    answers = name_of(status.get("in_reply_to_id"))
    parent = addresses.get(answers) if answers is not None else None
    return {**status, "_parent": parent, "_included": included}


def _edge(about: Fields, around: Fields, addresses: Mapping[str | None, Any]) -> Iterator[Any]:
    if not about.record:
        return
    if "ancestors" not in around.record:
        yield {"_missing": about.text("url"), "id": about.record.get("id")}
        return
    above = around.objects("ancestors")
    if above:
        parent = addresses.get(name_of(above[-1].get("id")))
        yield {"_edge": about.text("url"), "id": about.record.get("id"), "_parent": parent}
