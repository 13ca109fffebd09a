"""The platform of the simulated year, as a plugin: a crawl asks it, and it says what is gone."""

from __future__ import annotations

import datetime
import json
import os
import urllib.request
from collections.abc import Mapping, Sequence

from echo_hf.collect.platforms.base import Question, Tariff
from echo_hf.collect.sources.base import Missing, Post
from tests.collect.platforms.simulated import Simulated, SimulatedSource, name_of

NAME, HOST, ADDRESS = "town", "https://town.example", "TOWN_ADDRESS"
FIRST_DAY = datetime.date(2025, 1, 6)
PAGE = 20


def date(day: int) -> datetime.date:
    return FIRST_DAY + datetime.timedelta(days=day)


class Town(Simulated):
    """The platform, free of charge; it can say what is gone."""

    name = NAME
    tariff = Tariff(0.0, None, PAGE)
    most_refreshed = 50

    def __enter__(self) -> Town:
        return self

    def get(self, path: str) -> str:
        address = f"{os.environ[ADDRESS]}/town{path}"
        with urllib.request.urlopen(address, timeout=20) as response:  # noqa: S310
            body: bytes = response.read()
        return body.decode()

    def around(self, posts: Sequence[Post]) -> Sequence[Question]:
        above = [name_of(post.parent_url) for post in posts if post.parent_url]
        below = [name_of(post.url) for post in posts]
        asked = [("posts", one) for one in above], [("replies", one) for one in below]
        return [Question(kind, (one,)) for some in asked for kind, one in some]

    def estimate(self, question: Question) -> int | None:  # noqa: ARG002
        return None

    def gone(self, urls: Sequence[str]) -> Mapping[str, Missing]:
        said = json.loads(self.get(f"/gone?ids={','.join(map(name_of, urls))}"))
        return dict.fromkeys((f"{HOST}/{one}" for one in said), Missing.DELETED)


class TownSource(SimulatedSource):
    name, host = NAME, HOST
