"""Remove what says who people are: hash authors, mask personal data (ethics statement)."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import hmac
import json
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc
from datasets import List, Value

from echo_hf.collect.urls import index_sites
from echo_hf.config.loading import Config
from echo_hf.config.sections import Target
from echo_hf.curate.decisions import sample_images
from echo_hf.curate.personal_data import (
    KINDS,
    MIN_NAME,
    WORD,
    NameFinder,
    PersonalDataSpan,
    collect_names,
    find_personal_data,
    join_name,
    mask_text,
    read_run_names,
    strip_name,
)
from echo_hf.curate.provenance import add_sources
from echo_hf.errors import ConfigError, ImageError
from echo_hf.images.metadata import VERSION as STRIPPER
from echo_hf.images.metadata import MetadataKind, remove_metadata
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.result import StageStats
from echo_hf.pipeline.stage import BY_RULE, RowIssue, Stage, StageRows, join_digests, register
from echo_hf.reasons import NoticeReason
from echo_hf.samples.extract import TRASH
from echo_hf.samples.sample import SAMPLES_IN_CONTEXT, Finding, Review, Sample, sample_digest
from echo_hf.tables import SAMPLES, Column, Table


class PrivacyNotice(NoticeReason):
    """Notices about what says who people are."""

    NO_AUTHOR_KEY = "no_author_key", "ECHO_HF_AUTHOR_KEY is not set: all authors are left out"
    AUTHOR_IN_ADDRESS = "author_in_address", "the post's address names its author: there is no hash"
    MASKED_E_MAIL = "masked_e_mail", "an e-mail address in a comment or provenance is masked"
    MASKED_PHONE = "masked_phone", "a phone number in a comment or provenance is masked"
    MASKED_HANDLE = "masked_handle", "an account's name in a comment or provenance is masked"
    MASKED_CARD = "masked_card", "the number of a card in a comment or provenance is masked"
    MASKED_IBAN = "masked_iban", "the number of an account at a bank (IBAN) is masked likewise"
    MASKED_IP = "masked_ip", "the address of a machine (IP) in a comment or provenance is masked"
    MASKED_KEY = "masked_key", "a key to a service in a comment or provenance is masked"
    MASKED_UNSEARCHED = "masked_unsearched", "all after the first 12,000 characters is left out"
    REMOVED_EXIF = "removed_exif", "notes of a camera or a program were removed from an image"
    REMOVED_GPS = "removed_gps", "where it was taken was removed from an image"
    REMOVED_XMP = "removed_xmp", "notes in XML were removed from an image"
    REMOVED_IPTC = "removed_iptc", "caption and credit notes (IPTC) were removed from an image"
    REMOVED_COMMENT = "removed_comment", "a comment was removed from an image"
    REMOVED_TEXT = "removed_text", "named texts were removed from an image"
    REMOVED_OTHER = "removed_other", "a signature, thumbnail, further image or the like was removed"
    IMAGE_NOT_CLEANED = "image_not_cleaned", "metadata of an image stay; a person has to look at it"
    PERSONAL_DATA_IN_PROMPT = "personal_data_in_prompt", "it stays; a person has to look at it"


KEY_VARIABLE = "ECHO_HF_AUTHOR_KEY"
MIN_KEY_CHARACTERS = 16
AUTHOR_LENGTH = 16  # 64 bits: of a million authors two collide with a chance of 1 in 37 million
FINGERPRINT_CHARACTERS = 8
SEPARATOR = "\x1f"
# Platforms of many servers, where an account is a name and a server.
LIBRARIES = ("linkify-it-py", "phonenumbers", "python-stdnum")
MASK_NOTICES = {kind: PrivacyNotice[f"MASKED_{kind.upper().replace('-', '_')}"] for kind in KINDS}
REMOVED_NOTICES = {kind: PrivacyNotice[f"REMOVED_{kind.name}"] for kind in MetadataKind}
CLEANED_SAMPLES = Table(
    "samples",
    "one sample without what says who people are",
    ("id",),
    {
        **SAMPLES.columns,
        "cleaned_images": Column(
            List({"posted_sha256": Value("string"), "sha256": Value("string")}),
            "images of its posts whose metadata was removed: digest as posted, and without; null "
            "where the metadata cannot be removed and the sample does not have the image",
        ),
    },
)
# Fields of a provenance with texts of people or models, at any depth.
TEXT_FIELDS = frozenset({"earlier_prompt", "placeholder", "prompt_read", "template", "value"})


@dataclass(frozen=True)
class AuthorKey:
    """The secret with which authors are hashed. It is shown nowhere."""

    secret: bytes = field(repr=False)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self | None:
        """Read the key; return null where there is none."""
        secret = environment.get(KEY_VARIABLE, "").strip()
        if 0 < len(secret) < MIN_KEY_CHARACTERS:
            raise ConfigError(
                f"{KEY_VARIABLE} has {len(secret)} characters, expected at least "
                f"{MIN_KEY_CHARACTERS}: make one with `python -c 'import secrets; "
                "print(secrets.token_hex(32))'`, and keep it: with another key every author has "
                "another hash"
            )
        # Bytes that are not valid in the terminal's encoding are allowed in a secret.
        return cls(secret.encode("utf-8", "surrogateescape")) if secret else None

    @property
    def fingerprint(self) -> str:
        """8 hexadecimal characters that tell keys apart and say nothing about them."""
        return self._hash("fingerprint")[:FINGERPRINT_CHARACTERS]

    def hash_author(self, url: str, name: str | None) -> str | None:
        """Return the hash of an author, HMAC-SHA256 over the account."""
        account = normalize_account(url, name)
        return self._hash(account)[:AUTHOR_LENGTH] if account else None

    def _hash(self, text: str) -> str:
        return hmac.new(self.secret, text.encode(), hashlib.sha256).hexdigest()


def normalize_account(url: str, name: str | None) -> str | None:
    """Return an account in one spelling, with its platform or, where there are many, its server."""
    plain = unicodedata.normalize("NFKC", name or "").strip().removeprefix("@").casefold()
    site = index_sites().find(url)
    if site is not None and not site.federated:
        return f"{site.platform}{SEPARATOR}{plain}" if plain else None
    plain, _, server = plain.partition("@")
    return f"{server or urlsplit(url).netloc}{SEPARATOR}{plain}" if plain else None


@register
@dataclass(frozen=True)
class Privacy(Stage):
    """Names authors by keyed hashes, and masks personal data in comments and in the provenance.

    A prompt stays as it is, since masking would change the task: one with personal data waits for
    a person. What is found is told by kind and number, never by value. The posts around a sample
    end here. Images go on without metadata, and so under another digest, as does the sample then;
    a sample with one that cannot be cleaned keeps that one and waits for a person.

    Attributes:
        products: Names of accounts that are no person's, as `strip_name` gives them.
        key: What authors are hashed with; without one they are left out.
        images: Where the images are, and go without metadata; null to leave them as posted.
        authors: The names of all authors of the run's posts, as `read_run_names` gives them.
    """

    name: ClassVar[str] = "privacy"
    version: ClassVar[int] = 4
    after: ClassVar[str | None] = "safety"
    decides: ClassVar[Mapping[str, Sequence[str]]] = {
        BY_RULE: ("author", "prompt_sha256", "prompt_spans", "picture_sources", "review")
    }
    stays: ClassVar[bool] = True
    inputs: ClassVar[Table] = SAMPLES_IN_CONTEXT
    outputs: ClassVar[Table] = CLEANED_SAMPLES

    products: frozenset[str] = frozenset()
    key: AuthorKey | None = field(default=None, metadata={"digest": False})
    images: ImageStore | None = field(default=None, metadata={"digest": False})
    authors: frozenset[str] = field(default=frozenset(), repr=False, metadata={"digest": False})

    @functools.cached_property
    def _first_words(self) -> frozenset[str]:
        return frozenset(word[0] for word in map(WORD.match, self.authors) if word)

    @classmethod
    def from_config(cls, config: Config, images: ImageStore) -> Self:
        """Return the stage for the config's models and images, with the key in the environment.

        Raises:
            ConfigError: The key is too short to be a secret.
        """
        strips = config.stages.privacy.image_metadata == "strip"
        key = AuthorKey.from_environment(os.environ)
        return cls(product_accounts(config.target), key, images if strips else None)

    def in_run(self, root: Path) -> Self:
        """Return the stage with the names of all authors that the run knows."""
        return dataclasses.replace(self, authors=read_run_names(root))

    @classmethod
    def headline(cls, stats: Mapping[str, StageStats]) -> str | None:
        """Say how many samples have an author, and what was masked or removed."""
        totals = stats["privacy"]
        masks = sum(totals.noted.get(notice, 0) for notice in MASK_NOTICES.values())
        counts = {kind: totals.noted.get(notice, 0) for kind, notice in REMOVED_NOTICES.items()}
        removed = ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)
        return (
            f"{totals.tally.get('authors', 0):,} of {totals.kept:,} samples have a hashed author; "
            f"{masks:,} places masked; metadata removed from images: {removed or 'none'}"
        )

    def describe(self) -> dict[str, Any]:
        """Return what decides the result, with fingerprints of key, authors and libraries."""
        return {
            **super().describe(),
            "authors": join_digests(*sorted(self.authors)) if self.authors else None,
            "author_key": self.key.fingerprint if self.key else None,
            "libraries": {name: version(name) for name in LIBRARIES},
            "image_metadata": "keep" if self.images is None else f"strip, version {STRIPPER}",
        }

    def __call__(self, table: pa.Table) -> pa.Table:
        """Return the samples without their context."""
        rows = StageRows(self.outputs)
        clean = functools.cache(self._clean)  # the samples of a thread share its images
        for row, sample in enumerate(self.input_rows(table)):
            findings: list[Finding] = []
            cleaned = _clean_sample(sample, clean, findings)
            rows.keep(row, sample["id"], self._prepare_row(cleaned, findings))
            for notice, detail in findings:
                rows.add_issue(row, sample["id"], notice, detail)
        return rows.to_table()

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """Count the samples with an author, and those in use that wait for a person."""
        needs_review = pc.greater(pc.list_value_length(kept["review"]), 0)
        needs_review = pc.and_(needs_review, pc.not_equal(kept["quality"], TRASH))
        return {
            "authors": len(kept) - kept["author"].null_count,
            "to_review": pc.sum(needs_review.cast(pa.int64())).as_py() or 0,
        }

    def mask_columns(
        self, rows: pa.Table, columns: Iterable[str], names: Mapping[str, Iterable[str | None]]
    ) -> tuple[pa.Table, list[RowIssue]]:
        """Mask personal data in columns that a stage of another package adds.

        Args:
            rows: The columns, with the samples' `id`.
            columns: Those with texts of posts or images.
            names: The authors of the posts around each sample, by its id.
        """
        issues: list[RowIssue] = []
        ids = rows["id"].to_pylist()
        searches = {name: self._make_search(names.get(name, ())) for name in ids}
        for column in columns:
            values = rows[column].to_pylist()
            for number, (name, value) in enumerate(zip(ids, values, strict=True)):

                def mask(text: str, name: str = name, column: str = column) -> str:
                    spans = searches[name](text)
                    issues.extend(
                        RowIssue([name], MASK_NOTICES[kind], column) for *_, kind in spans
                    )
                    return mask_text(text, spans)

                values[number] = _map_texts(value, mask)
            at = rows.schema.get_field_index(column)
            field_ = rows.schema.field(at)
            rows = rows.set_column(at, field_, pa.array(values, field_.type))
        return rows, issues

    def _make_search(self, names: Iterable[str | None]) -> Callable[[str], list[PersonalDataSpan]]:
        """Return the search for personal data in the words of a thread with these authors."""
        nearby = NameFinder(map(join_name, collect_names(names, MIN_NAME)))

        def list_name_starts(text: str, words: Collection[str]) -> Collection[str]:
            has_thread_name = nearby.has_match(join_name(text.lower()))
            return words if has_thread_name else self._first_words.intersection(words)

        def search(text: str) -> list[PersonalDataSpan]:
            # In a thread its authors' names count in any spelling.
            return find_personal_data(
                text,
                self.products,
                lambda name: name in self.authors or join_name(name) in nearby,
                list_name_starts,
            )

        return search

    def _prepare_row(self, sample: Sample, findings: list[Finding]) -> dict[str, Any]:
        names = {post["url"]: post["author"] for post in sample["context"]}
        comment_urls = [comment["post_url"] for comment in sample["community_feedback"]]
        urls = [sample["post_urls"][0], *comment_urls]
        if self.key is None and any(map(names.get, urls)):
            findings.append((PrivacyNotice.NO_AUTHOR_KEY, None))
        search = self._make_search(names.values())

        def mask(text: str, place: str) -> str:
            spans = search(text)
            findings.extend((MASK_NOTICES[kind], place) for *_, kind in spans)
            return mask_text(text, spans)

        def mask_fields(part: dict[str, Any]) -> dict[str, Any]:
            for name in sorted(TEXT_FIELDS & part.keys()):
                if isinstance(part[name], str):
                    part[name] = mask(part[name], "provenance")
            return part

        author = self._hash_author(urls[0], names, findings)
        comments = []
        for post in sample["community_feedback"]:
            url = post["post_url"]
            texts = {name: mask(post[name], url) for name in ("feedback", "keyword") if post[name]}
            comments.append({**post, **texts, "author": self._hash_author(url, names, findings)})
        phrase = sample["task_phrase"] and mask(sample["task_phrase"], "task_phrase")
        counts = Counter(kind for *_, kind in search(sample["prompt"]))
        if counts:
            detail = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind])
            findings.append((PrivacyNotice.PERSONAL_DATA_IN_PROMPT, detail))
        provenance = json.loads(sample["provenance"], object_hook=mask_fields)
        released = {
            **{name: sample[name] for name in self.outputs.columns},
            "dehydrated": False,
            "author": author,
            "community_feedback": comments,
            "task_phrase": phrase,
            "review": [*sample["review"], *([Review.PERSONAL_DATA.value] if counts else [])],
            "provenance": json.dumps(provenance, sort_keys=True),
        }
        return add_sources(released, sample["context"])

    def _clean(self, digest: str) -> CleanedImage:
        return CleanedImage(digest) if self.images is None else clean_image(digest, self.images)

    def _hash_author(
        self, url: str, names: Mapping[str, str | None], findings: list[Finding]
    ) -> str | None:
        name = names.get(url)
        if self.key is None or name is None:
            return None
        # Addresses are published: one that contains the author's name would undo the hash.
        # A DID of Bluesky is no name, and is published with each of the account's posts.
        plain = "" if name.startswith("did:") else strip_name(name.lstrip("@").partition("@")[0])
        if plain and plain in map(strip_name, re.split(r"[/?#&=]", url)[3:]):
            findings.append((PrivacyNotice.AUTHOR_IN_ADDRESS, url))
            return None
        return self.key.hash_author(url, name)


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Change each text in a value of a column, which may be a list or a struct."""
    if isinstance(value, dict):
        return {name: _map_texts(part, change) for name, part in value.items()}
    if isinstance(value, list):
        return [_map_texts(part, change) for part in value]
    return change(value) if isinstance(value, str) else value


class CleanedImage(NamedTuple):
    """A stored image without metadata."""

    sha256: str | None
    kinds: tuple[MetadataKind, ...] = ()
    problem: str = ""


def clean_image(digest: str, images: ImageStore) -> CleanedImage:
    """Store an image without metadata beside the posted one."""
    data = images.open(digest)
    try:
        cleaned, kinds = remove_metadata(data)
        return CleanedImage(images.put(cleaned) if kinds else digest, kinds)
    except ImageError as error:
        return CleanedImage(None, problem=str(error))


def _clean_sample(
    sample: Sample, clean: Callable[[str], CleanedImage], findings: list[Finding]
) -> dict[str, Any]:
    """Return the sample with its own and its posts' images replaced by those without metadata."""
    own_digests = sample_images(sample)
    digests = [image["sha256"] for post in sample["context"] for image in post["pictures"] or ()]
    cleaned: dict[str, str | None] = {}
    reasons: list[str] = []
    for digest in dict.fromkeys([*own_digests, *filter(None, digests)]):
        image = clean(digest)
        if image.sha256 is None and digest in own_digests:
            reasons = [Review.IMAGE_METADATA.value]
            findings.append((PrivacyNotice.IMAGE_NOT_CLEANED, f"{digest}: {image.problem}"))
        elif image.sha256 != digest:
            cleaned[digest] = image.sha256
        if digest in own_digests:
            findings.extend((REMOVED_NOTICES[kind], digest) for kind in image.kinds)
    lists = {
        # Images that differed only in metadata are equal now.
        name: list(dict.fromkeys(cleaned.get(digest) or digest for digest in sample[name]))
        for name in ("input_images", "output_images")
    }
    new_digest = sample["sample_digest"]
    if lists["input_images"] != sample["input_images"]:
        new_digest = sample_digest(sample["prompt"], lists["input_images"])
    return {
        **sample,
        **lists,
        "screenshot": cleaned.get(sample["screenshot"], sample["screenshot"]),
        "sample_digest": new_digest,
        "review": [*sample["review"], *reasons],
        "cleaned_images": [{"posted_sha256": old, "sha256": new} for old, new in cleaned.items()],
        "context": replace_with_cleaned(sample["context"], cleaned),
    }


def replace_with_cleaned(
    posts: Iterable[Mapping[str, Any]], cleaned: Mapping[str, str | None]
) -> list[dict[str, Any]]:
    """Return posts with their images replaced by the cleaned ones."""

    def replace_image(image: Mapping[str, Any]) -> dict[str, Any]:
        return {**image, "sha256": cleaned.get(image["sha256"], image["sha256"])}

    return [
        {**post, "pictures": list(map(replace_image, post["pictures"] or ()))} for post in posts
    ]


def product_accounts(target: Target) -> frozenset[str]:
    """Return the names of the accounts of the models that people talk about, and their makers."""
    names = (target.name, target.developer, target.chat_window, *target.aliases, *target.others)
    return frozenset(strip_name(name) for name in names if name)
