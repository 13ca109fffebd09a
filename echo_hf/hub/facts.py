"""What a release says of itself that its rows do not say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from echo_hf.config_sections import Target
from echo_hf.hub.failed_calls import FailedCalls
from echo_hf.hub.measured import SampleCounts

Counts = Mapping[str, int | Mapping[str, int]]
LICENSE_NOTE = (
    "The posts and pictures belong to the people who published them, and this dataset passes on "
    "no right to them. Use them for research, and name the posts (`post_urls`) that you show."
)


@dataclass(frozen=True)
class ReleaseFacts:
    """Facts about a release, as the run that built it knows them.

    Attributes:
        name: Names the release, and its tag on the Hub.
        target: The model that people talk about.
        protocol: Whose arithmetic the run used: `published` or `corrected`.
        funnel: For each stage, in order, its counts: a number, or numbers by reason.
        provenance: For each stage its `digest`, the signature of its `engine` and the sha256 of
            its `prompt`, null where it has none.
        rules_built: Whether any stage's answers came from the `rules` engine.
        languages: Language codes of the posts, as the table of posts gives them.
        license: Identifier of the licence, as the Hub knows it.
        license_name: Name of the licence where that identifier is `other`.
        license_note: What the licence means, in Markdown.
        repository: Address of the dataset on the Hub, null while it has none.
        contact: Where to ask for the removal of a post, beside the repository's discussions.
        removed_categories: Categories that a sample may not be flagged with; null when unknown.
        citation: How to cite the dataset, in BibTeX; made from the other facts when null.
        measured: What was counted in the samples, by config; empty when nothing was.
        left_out: For each config, rows of the run that are not in the release, or lack their texts,
            by reason.
        rights: By platform whose terms forbid passing posts on, what permits it nevertheless.
        failed: For each stage with rows in quarantine, what failed, by reason.
        metadata_stripper: Version of what removed the metadata of its images; null where they are
            as they were posted and drawn.
    """

    name: str
    target: Target
    protocol: Literal["published", "corrected"] = "corrected"
    funnel: Mapping[str, Counts] = field(default_factory=dict)
    provenance: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rules_built: bool = False
    languages: tuple[str, ...] = ()
    license: str = "other"
    license_name: str = "posts-belong-to-their-authors"
    license_note: str = LICENSE_NOTE
    repository: str | None = None
    contact: str | None = None
    removed_categories: tuple[str, ...] | None = None
    citation: str | None = None
    measured: Mapping[str, SampleCounts] = field(default_factory=dict)
    left_out: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    rights: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, Mapping[str, FailedCalls]] = field(default_factory=dict)
    metadata_stripper: int | None = None
