"""What may not be published is refused in one line that says what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest

from echo_hf.curate.decisions import Changes, Decision, append_decisions
from echo_hf.errors import HubError, ReleaseError
from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.publish import check_names, check_publishable
from echo_hf.hub.release import Release, write_release
from echo_hf.images.store import ImageStore
from tests.hub.conftest import Samples


def having(release: Release, **values: Any) -> Release:
    """The same release with other values in its manifest."""
    return Release(release.path, release.manifest.model_copy(update=values))


def test_an_ordinary_release_may_be_published(release: Release) -> None:
    """Built with a model, screened, and with nothing left to review."""
    check_publishable(release)


def test_open_reviews_are_always_refused(release: Release) -> None:
    """Nothing that can be passed along lets them through; the message is the command."""
    with pytest.raises(ReleaseError, match="has 3 samples that a person") as raised:
        check_publishable(having(release, open_reviews=3), allow_rules=True, allow_unscreened=True)
    assert f"`echo-hf review {release.path}`" in str(raised.value)


@pytest.mark.parametrize(
    ("values", "option"),
    [({"rules_built": True}, "allow_rules"), ({"unscreened": 7}, "allow_unscreened")],
)
def test_what_is_doubtful_has_to_be_allowed(
    release: Release, values: dict[str, Any], option: str
) -> None:
    """The one option that allows it is named, and the other one does not."""
    other = {"allow_rules", "allow_unscreened"} - {option}
    for allowed in ({}, dict.fromkeys(other, True)):
        with pytest.raises(ReleaseError, match=f"--{option.replace('_', '-')}"):
            check_publishable(having(release, **values), **allowed)
    check_publishable(having(release, **values), **{option: True})


@pytest.fixture
def reviewed(tmp_path: Path, samples: Samples, images: ImageStore, facts: ReleaseFacts) -> Release:
    """A release in the folder of its run, with two samples of one digest each."""
    rows = samples({"sample_digest": "as built"}, {"sample_digest": "another"})
    return write_release(tmp_path / "run" / "release", {"analysis": rows}, images, facts)


Said = Literal["keep", "remove", "flag", "withdraw"]


def decided(release: Release, *said: Said, digest: str = "as built") -> None:
    """Writes down what a reviewer said, one after the other, of the first sample."""
    append_decisions(
        release.path.parent / "review.jsonl",
        [
            Decision(id="sample0", sample_digest=digest, decision=each, reasons=("personal_data",))
            for each in said
        ],
    )


def test_what_was_removed_since_the_build_is_refused(reviewed: Release) -> None:
    """A reviewer has looked at it after it was built: whatever is allowed, it is built again."""
    check_publishable(reviewed)
    decided(reviewed, "keep", "remove")
    with pytest.raises(ReleaseError, match=r"'sample0' .* was removed in review since .*: build"):
        check_publishable(reviewed, allow_rules=True, allow_unscreened=True)


@pytest.mark.parametrize(
    ("said", "digest"),
    [(("keep",), "as built"), (("remove", "keep"), "as built"), (("remove",), "older")],
)
def test_other_decisions_are_in_nobodys_way(
    reviewed: Release, said: tuple[Said, ...], digest: str
) -> None:
    """Kept, kept after all, or removed with another prompt or other inputs."""
    decided(reviewed, *said, digest=digest)
    check_publishable(reviewed)


@pytest.mark.parametrize("said", ["flag", "withdraw"])
def test_what_was_opened_since_the_build_is_refused(reviewed: Release, said: Said) -> None:
    """Somebody wants it looked at, or nobody has any more; once it is kept it may go."""
    decided(reviewed, "keep", said)
    with pytest.raises(ReleaseError, match=r"'sample0' .* was opened in review since .*: build"):
        check_publishable(reviewed, allow_rules=True, allow_unscreened=True)
    decided(reviewed, "keep")
    check_publishable(reviewed)


def edited(release: Release, quality: str | None, said: str = "edit") -> Decision:
    """Writes down that a reviewer changed the first sample, or did not."""
    changes = Changes.model_validate({"quality": quality, "sample_digest": "e" * 64})
    made = Decision.model_validate(
        {"id": "sample0", "sample_digest": "as built", "decision": said, "reasons": ()}
        | {"changes": changes if quality else None}
    )
    append_decisions(release.path.parent / "review.jsonl", [made])
    return made


def test_what_was_changed_since_the_build_is_refused(reviewed: Release) -> None:
    """The release has the sample as it was before; another one's change is in nobody's way."""
    edited(reviewed, "Analysis")
    with pytest.raises(ReleaseError, match=r"'sample0' .* was changed in review since .*: build"):
        check_publishable(reviewed, allow_rules=True, allow_unscreened=True)
    edited(reviewed, None, "withdraw")
    check_publishable(reviewed)


def test_a_release_with_the_change_may_be_published(
    tmp_path: Path, samples: Samples, images: ImageStore, facts: ReleaseFacts
) -> None:
    """Until the change is withdrawn, made anew, or the changed sample is removed."""
    made = Changes.model_validate({"quality": "Analysis", "sample_digest": "e" * 64})
    told = json.dumps({"review": {"digest": made.fingerprint}})
    rows = samples({"sample_digest": "e" * 64, "provenance": told})
    release = write_release(tmp_path / "run" / "release", {"analysis": rows}, images, facts)
    edited(release, "Analysis", "keep")
    check_publishable(release)
    for quality, said, what in (
        ("Benchmark", "edit", "changed"),
        (None, "withdraw", "changed"),
        (None, "remove", "removed"),
    ):
        edited(release, quality, said)
        with pytest.raises(ReleaseError, match=f"was {what} in review"):
            check_publishable(release)


def test_a_file_that_cannot_be_read_is_named(reviewed: Release) -> None:
    """Nobody can say whether it holds what was removed; one line says which file it is."""
    decided(reviewed, "remove")
    (reviewed.path / "analysis/test-00000-of-00001.parquet").write_bytes(b"no rows")
    with pytest.raises(ReleaseError, match=r"cannot read '.*00001\.parquet' .*: build again"):
        check_publishable(reviewed)


@pytest.mark.parametrize("repo_id", ["echo", "a/b/c", "", "a b/c", "org/na--me", "org/", "/x"])
def test_what_is_no_repository_is_refused(repo_id: str) -> None:
    """A repository has an owner and a name, in the Hub's letters."""
    with pytest.raises(HubError, match="expected one like"):
        check_names(repo_id, "v1")


NO_TAGS = ["", "main", "refs", "a b", "a..b", "v1.", "v1.lock", "-v", "v/1", "v:1", "é", "a" * 101]


@pytest.mark.parametrize("tag", [*NO_TAGS, "0123456789abcdef" * 2 + "01234567"])
def test_what_is_no_tag_is_refused(tag: str) -> None:
    """Neither what Git would not take, nor what would be taken for a branch or a commit."""
    with pytest.raises(HubError, match="is not a name of a tag"):
        check_names("org/echo", tag)


@pytest.mark.parametrize("tag", ["v1", "gpt-4o-2025-03", "20250325", "1.0_b", "a" * 100])
def test_a_tag_is_a_plain_name(tag: str) -> None:
    """Letters, digits, dots, dashes, underscores."""
    check_names("org/echo", tag)
