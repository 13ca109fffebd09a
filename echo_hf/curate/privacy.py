"""Leave out who people are: authors as keyed hashes, personal data masked (ethics statement)."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf.config import Config
from echo_hf.config_sections import Target
from echo_hf.context.sample_context import SAMPLES_IN_CONTEXT
from echo_hf.curate.accounts import SHORTEST_NAME, bare, names_in_run, names_of
from echo_hf.curate.author_key import AuthorKey
from echo_hf.curate.personal_data import KINDS, Found, masked, personal_data
from echo_hf.curate.sources import with_sources
from echo_hf.fingerprint import combined_fingerprint
from echo_hf.reasons import Notice, Review, Status
from echo_hf.stage import Stage
from echo_hf.stage_rows import StageRows
from echo_hf.tables import SAMPLES, Table

if TYPE_CHECKING:
    from echo_hf.pictures import PictureStore
    from echo_hf.stage_result import StageStats

LIBRARIES = ("linkify-it-py", "phonenumbers", "python-stdnum")
MASKED = {kind: Notice[f"MASKED_{kind.upper().replace('-', '_')}"] for kind in KINDS}
NOT_USED = "Trash"
# What people or models wrote on the way to a prompt, wherever it stands in a provenance.
WORDS = ("earlier_prompt", "placeholder", "prompt_read", "template", "value")
Sample = Mapping[str, Any]
Finding = tuple[Notice, str | None]
Search = Callable[[str], list[Found]]


@dataclass(frozen=True)
class Privacy(Stage):
    """Names authors by keyed hashes, and masks personal data in comments and in the provenance.

    A prompt stays as it is, since masking would change the task: one with personal data waits for
    a person. What is found is told by kind and number, never by value. The posts around a sample,
    with the names of their authors, end here.

    Attributes:
        products: Names of accounts that are no person's, as `bare` gives them.
        key: What authors are hashed with; without one they are left out.
        authors: What `names_of` the authors of the run's posts gives.
    """

    name: ClassVar[str] = "privacy"
    version: ClassVar[int] = 2
    inputs: ClassVar[Table] = SAMPLES_IN_CONTEXT
    outputs: ClassVar[Table] = SAMPLES

    products: frozenset[str] = frozenset()
    key: AuthorKey | None = field(default=None, metadata={"digest": False})
    authors: frozenset[str] = field(default=frozenset(), repr=False, metadata={"digest": False})

    @classmethod
    def from_config(cls, config: Config, pictures: PictureStore) -> Self:
        """The stage for the config's models, with the key that the environment holds.

        Raises:
            ConfigError: The key is too short to be a secret.
        """
        del pictures
        return cls(products_of(config.target), AuthorKey.from_environment(os.environ))

    def in_run(self, root: Path) -> Self:
        """The stage with the names of all authors that the run knows."""
        return dataclasses.replace(self, authors=names_in_run(root))

    @classmethod
    def headline(cls, stats: Mapping[str, StageStats]) -> str | None:
        """How many samples have an author, how much was masked, and what a person has to see."""
        one = stats["privacy"]
        masks = sum(one.noted.get(notice, 0) for notice in MASKED.values())
        return (
            f"{one.tally.get('authors', 0):,} of {one.kept:,} samples have a hashed author; "
            f"{masks:,} places masked; {one.tally.get('to_review', 0):,} samples to review"
        )

    def describe(self) -> dict[str, Any]:
        """As for any stage, with fingerprints of key and authors, and what finds personal data."""
        return {
            **super().describe(),
            "authors": combined_fingerprint(*sorted(self.authors)) if self.authors else None,
            "author_key": self.key.fingerprint if self.key else None,
            "libraries": {name: version(name) for name in LIBRARIES},
        }

    def __call__(self, table: pa.Table) -> pa.Table:
        """The samples without their context."""
        rows = StageRows(self.outputs)
        for row, sample in enumerate(self.input_rows(table)):
            findings: list[Finding] = []
            rows.keep(row, sample["id"], self._published(sample, findings))
            for notice, detail in findings:
                rows.say(row, sample["id"], Status.NOTED, notice, detail)
        return rows.table()

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """How many samples have an author, and how many of those in use wait for a person."""
        waiting = pc.greater(pc.list_value_length(kept["review"]), 0)
        waiting = pc.and_(waiting, pc.not_equal(kept["quality"], NOT_USED))
        return {
            "authors": len(kept) - kept["author"].null_count,
            "to_review": pc.sum(waiting.cast(pa.int64())).as_py() or 0,
        }

    def _published(self, sample: Sample, findings: list[Finding]) -> dict[str, Any]:
        names = {post["url"]: post["author"] for post in sample["context"]}
        primary, comments = sample["post_urls"][0], sample["community_feedback"]
        if self.key is None and any(map(names.get, (primary, *(c["post_url"] for c in comments)))):
            findings.append((Notice.NO_AUTHOR_KEY, None))
        near = names_of((post["author"] for post in sample["context"]), SHORTEST_NAME)

        def search(text: str) -> list[Found]:
            return personal_data(
                text, self.products, lambda name: name in self.authors or name in near
            )

        shown = {
            **{name: sample[name] for name in self.outputs.columns},
            "dehydrated": False,
            "author": self._author(primary, names, findings),
            "community_feedback": [self._comment(one, names, search, findings) for one in comments],
            "review": [*sample["review"], *_of_prompt(search(sample["prompt"]), findings)],
            "provenance": _provenance(sample["provenance"], search, findings),
        }
        return with_sources(shown, sample["context"])

    def _author(
        self, url: str, names: Mapping[str, str | None], findings: list[Finding]
    ) -> str | None:
        name = names.get(url)
        if self.key is None or name is None:
            return None
        if _is_in(name, url):
            findings.append((Notice.AUTHOR_IN_ADDRESS, url))
            return None
        return self.key.author(url, name)

    def _comment(
        self,
        said: Mapping[str, Any],
        names: Mapping[str, str | None],
        search: Search,
        findings: list[Finding],
    ) -> dict[str, Any]:
        url = said["post_url"]
        texts = {name: said[name] for name in ("feedback", "keyword") if said[name]}
        shown = {name: _masked(text, url, search, findings) for name, text in texts.items()}
        return {**said, **shown, "author": self._author(url, names, findings)}


def _provenance(text: str, search: Search, findings: list[Finding]) -> str:
    def shown(part: dict[str, Any]) -> dict[str, Any]:
        words = {name: part[name] for name in WORDS if isinstance(part.get(name), str)}
        return part | {
            name: _masked(said, "provenance", search, findings) for name, said in words.items()
        }

    return json.dumps(json.loads(text, object_hook=shown), sort_keys=True)


def _masked(text: str, place: str, search: Search, findings: list[Finding]) -> str:
    found = search(text)
    findings.extend((MASKED[kind], place) for *_, kind in found)
    return masked(text, found)


def _of_prompt(found: list[Found], findings: list[Finding]) -> list[str]:
    counts = Counter(kind for *_, kind in found)
    if not counts:
        return []
    told = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind])
    findings.append((Notice.PERSONAL_DATA_IN_PROMPT, told))
    return [Review.PERSONAL_DATA.value]


def _is_in(name: str, url: str) -> bool:
    """Whether an address, which is published, holds the name: one such row would undo the hash."""
    account = bare(name.lstrip("@").partition("@")[0])
    # Bluesky's own number of an account is no name, and published with each of its posts.
    if not account or name.startswith("did:"):
        return False
    return any(account == bare(part) for part in re.split(r"[/?#&=]", url)[3:])


def products_of(target: Target) -> frozenset[str]:
    """What the accounts of the models that people talk about, and of their makers, are called.

    Args:
        target: The model that people talk about, and those it is told apart from.

    Returns:
        Their names as `bare` gives them.

    Example:
        >>> target = Target(name="Lumen Image", developer="Northlight", released="2026-03-02")
        >>> sorted(products_of(target))
        ['lumenimage', 'northlight']
    """
    named = (target.name, target.developer, target.chat_window, *target.aliases, *target.others)
    return frozenset(bare(name) for name in named if name)
