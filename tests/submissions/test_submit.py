"""Outputs of others become a pull request that holds what it says, or are refused in a line."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from echo_hf.errors import ConfigError, EchoError, SubmissionError
from echo_hf.hub.load import open_release
from echo_hf.hub.publish import publish
from echo_hf.hub.submissions import Refusal
from echo_hf.metrics import color_shift
from echo_hf.submissions import submit as submitting
from echo_hf.submissions.submit import SubmitResult, submit
from tests.errors_for_tests import said_by
from tests.hub.conftest import Command
from tests.judging.judges_for_tests import ScriptedJudge
from tests.local_hub import STRANGER, LocalHub
from tests.submissions.conftest import (
    EDITS,
    INPUTS,
    NAMES,
    REPO,
    SYSTEMS,
    TAG,
    files_in,
    folder_of,
    noise,
    propose,
    write_release_of,
)

PLACE = "submissions/v1/fern"


def test_a_stranger_proposes_what_the_folder_holds(
    board: LocalHub, command: Command, tmp_path: Path
) -> None:
    folder_of(tmp_path / "fern")
    given = f"fern={tmp_path / 'fern'}"
    known = ["--model", "mira/fern", "--code", "https://code.example/fern"]
    done = command("submit", f"{REPO}@{TAG}", "--images", given, *known, hub=board, token=STRANGER)
    assert (done.code, done.errors) == (0, "")
    repository = board.repositories[REPO]
    assert repository.open_pulls == {1: f"Submit fern to {TAG}"}
    before, after = repository.commits[repository.head].files, board.files(REPO, "refs/pr/1")
    assert after.keys() - before.keys() == {
        f"{PLACE}/submission.json",
        f"{PLACE}/outputs-00000.parquet",
    }
    told = json.loads(after[f"{PLACE}/submission.json"])
    (file,) = told["files"]
    data = after[f"{PLACE}/outputs-00000.parquet"]
    assert (file["bytes"], file["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    digest = told.pop("digest")
    canonical = json.dumps(told, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert digest == hashlib.sha256(canonical.encode()).hexdigest()
    assert (told["model"], told["commit"]) == ("mira/fern", repository.tags[TAG])
    rows = pq.read_table(io.BytesIO(data)).to_pylist()
    assert {row["sample_id"]: row["image"]["bytes"] for row in rows} == {
        name: noise("fern", name) for name in NAMES
    }
    (shift,) = (row for row in told["figures"] if row["metric"] == "color_shift")
    inputs = [[Image.open(io.BytesIO(one)) for one in INPUTS[name]] for name in EDITS]
    outputs = [Image.open(io.BytesIO(noise("fern", name))) for name in EDITS]
    assert shift["value"] == pytest.approx(color_shift(inputs, outputs, protocol="corrected").value)
    assert digest in repository.pulls[1].said[0]


def with_notes(system: str, name: str) -> bytes:
    """An image whose file says who made it."""
    notes, sink = PngInfo(), io.BytesIO()
    notes.add_text("parameters", "a fox, by Mira")
    Image.open(io.BytesIO(noise(system, name))).save(sink, "PNG", pnginfo=notes)
    return sink.getvalue()


def bomb(side: int = 60_000) -> bytes:
    """A file of a kilobyte that says it has 3,600 million pixels."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        )

    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(bytes(1000))), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def of_ash(count: int) -> Callable[[str, str], bytes]:
    """The first outputs are those of a system of the release, the others its own."""
    return lambda system, name: noise("ash" if NAMES.index(name) < count else system, name)


def dry(board: LocalHub, folder: Path) -> SubmitResult:
    return submit(f"{REPO}@{TAG}", f"fern={folder}", dry_run=True, api=board.api())


def test_what_stays_is_counted(board: LocalHub, tmp_path: Path) -> None:
    """Copies, samples without an output, files of no sample, a second draw, and metadata."""
    folder = folder_of(tmp_path / "fern", draw=of_ash(2), samples=NAMES[:-2])
    for name in ("word00", "word01"):
        (folder / f"{name}.png").write_bytes(with_notes("fern", name))
    (folder / "holiday.png").write_bytes(noise("fern", "holiday"))
    (folder / "word00.1.png").write_bytes(noise("fern", "again"))
    done = dry(board, folder)
    assert done.submission.counts == {
        "outputs": len(NAMES) - 2,
        "copied_output": 2,
        "metadata_text": 2,
        "not_submitted": 2,
        "no_such_sample": 1,
        "other_draw": 1,
    }
    assert done.checked.remarks["copied_output"] == NAMES[:2]  # type: ignore[index]
    assert board.repositories[REPO].pulls == {}


def test_a_sample_that_is_not_asked_for_is_no_strange_one(
    eyes: ScriptedJudge, tmp_path: Path
) -> None:
    """Such as one whose words a platform keeps to itself."""
    release = write_release_of(tmp_path, SYSTEMS, "lumen", dehydrated=[NAMES[4]])
    folder = folder_of(tmp_path / "fern", samples=NAMES[:-1])
    (folder / "else.png").write_bytes(noise("fern", "else"))
    done = submit(str(release), f"fern={folder}", dry_run=True)
    counts = {"outputs": len(NAMES) - 2, "not_submitted": 1}
    assert done.submission.counts == {**counts, "unasked_sample": 1, "no_such_sample": 1}
    assert done.checked.left_out == {"dehydrated": 1}


def spoil(folder: Path, data: bytes) -> None:
    (folder / f"{NAMES[0]}.png").write_bytes(data)


def link_out(folder: Path) -> None:
    (folder.parent / "secret.png").write_bytes(noise("fern", "secret"))
    (folder / f"{NAMES[0]}.png").unlink()
    (folder / f"{NAMES[0]}.png").symlink_to(folder.parent / "secret.png")


def repeat(folder: Path) -> None:
    for name in NAMES[:3]:
        (folder / f"{name}.png").write_bytes(noise("fern", "same"))


def flood(folder: Path) -> None:
    for number in range(10_000):
        (folder / f"more{number}.png").touch()


HOSTILE: dict[str, tuple[Callable[[Path], None], Refusal, str]] = {
    "a bomb": (lambda folder: spoil(folder, bomb()), Refusal.FLAWED, "1 output cannot be used"),
    "words": (lambda folder: spoil(folder, b"no image"), Refusal.FLAWED, "cannot be used (edit0"),
    "a link": (link_out, Refusal.FLAWED, "it leads out of its folder"),
    "10,000 files": (flood, Refusal.TOO_MANY_FILES, "expected at most 24"),
    "too few": (
        lambda folder: [(folder / f"{name}.png").unlink() for name in NAMES[:5]],  # type: ignore[return-value]
        Refusal.TOO_FEW,
        "outputs of 19 of 24 samples",
    ),
    "one image": (repeat, Refusal.FLAWED, "3 of 24 outputs are one image for several samples"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_no_submission_is_refused_in_a_line(
    board: LocalHub, tmp_path: Path, kind: str
) -> None:
    spoils, reason, said = HOSTILE[kind]
    folder = folder_of(tmp_path / "fern")
    spoils(folder)
    with pytest.raises(SubmissionError) as raised:
        submit(f"{REPO}@{TAG}", f"fern={folder}", api=board.api())
    assert raised.value.reason is reason
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
    assert board.repositories[REPO].pulls == {}


def test_outputs_of_another_system_are_refused(board: LocalHub, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "fern", draw=of_ash(3))
    assert "3 of 24 outputs are those of other systems" in said_by(
        SubmissionError, dry, board, folder
    )


def test_outputs_that_only_look_like_another_systems_are_refused(
    board: LocalHub, tmp_path: Path
) -> None:
    """Another size and format: no byte is the same."""
    folder = folder_of(tmp_path / "fern")
    for name in NAMES[:3]:
        image = Image.open(io.BytesIO(noise("ash", name)))
        image.resize((96, 96), Image.Resampling.BICUBIC).save(
            folder / f"{name}.png", "JPEG", quality=90
        )
    said = said_by(SubmissionError, dry, board, folder)
    assert "3 of 24 outputs are those of other systems" in said
    assert "edit0: ash" in said


def test_images_of_another_tag_are_refused(
    board: LocalHub, tmp_path: Path, publish_old: None
) -> None:
    """Whatever sample they were made for."""
    shifted = dict(zip(NAMES, (*NAMES[1:], NAMES[0]), strict=True))
    folder = folder_of(tmp_path / "fern", draw=lambda _, name: noise("dogwood", shifted[name]))
    said = said_by(SubmissionError, dry, board, folder)
    assert "24 of 24 outputs are those of other systems or releases" in said
    assert "'dogwood' of v0" in said


def saved_as(data: bytes, form: str, **options: Any) -> bytes:
    sink = io.BytesIO()
    Image.open(io.BytesIO(data)).save(sink, form, **options)
    return sink.getvalue()


def test_images_of_another_tag_are_known_however_they_are_saved(
    board: LocalHub, tmp_path: Path, publish_old: None
) -> None:
    """Without a loss for whatever sample; with some loss for the same one."""
    shifted = dict(zip(NAMES, (*NAMES[1:], NAMES[0]), strict=True))

    def lossless(_: str, name: str) -> bytes:
        return saved_as(noise("dogwood", shifted[name]), "WEBP", lossless=True)

    def lossy(_: str, name: str) -> bytes:
        return saved_as(noise("elm", name), "JPEG", quality=95, subsampling=0)

    for draw, system in ((lossless, "dogwood"), (lossy, "elm")):
        folder = folder_of(tmp_path / system, draw=draw)
        said = said_by(SubmissionError, dry, board, folder)
        assert "24 of 24 outputs are those of other systems or releases" in said
        assert f"'{system}' of v0" in said


def test_images_of_a_merged_submission_are_known_however_they_are_saved(
    board: LocalHub, bundle: Path, tmp_path: Path
) -> None:
    board.repositories[REPO].merge(propose(board, files_in(bundle)))
    again = folder_of(
        tmp_path / "again",
        draw=lambda _, name: saved_as(noise("fern", name), "WEBP", lossless=True),
    )
    said = said_by(SubmissionError, submit, f"{REPO}@{TAG}", f"moss={again}", api=board.api())
    assert "24 of 24 outputs are those of other systems" in said
    assert "submission 'fern' to 'v1'" in said


def test_beyond_a_limit_images_of_others_are_known_by_their_bytes_alone(
    board: LocalHub, tmp_path: Path, publish_old: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submitting, "MAX_KNOWN_BYTES", 0)
    folder = folder_of(
        tmp_path / "fern",
        draw=lambda _, name: saved_as(noise("dogwood", name), "WEBP", lossless=True),
    )
    assert dry(board, folder).checked.passed_over == 1
    said = said_by(SubmissionError, dry, board, folder_of(tmp_path / "moss", "dogwood"))
    assert "'dogwood' of v0" in said


def test_a_refused_output_is_none(board: LocalHub, tmp_path: Path) -> None:
    """Its maker says so in a manifest: it counts as one that is left out."""
    folder = folder_of(tmp_path / "fern", samples=NAMES[2:])
    lines = [
        {"sample_id": NAMES[0], "outcome": "refused", "text": "I would rather not."},
        {"sample_id": NAMES[1], "outcome": "no_image"},
    ]
    (folder / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert dry(board, folder).submission.counts == {"outputs": len(NAMES) - 2, "not_submitted": 2}


@pytest.fixture
def publish_old(board: LocalHub, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    release = write_release_of(tmp_path / "old", ("dogwood", "elm"), "lumen-old")
    publish(release, REPO, "v0", api=board.api(), allow_unscreened=True)


@pytest.mark.parametrize("name", ["<b>fern</b>", "../fern", "Fern", "f" * 65, "fern\n", "@mira"])
def test_a_name_that_is_no_folder_is_refused(board: LocalHub, tmp_path: Path, name: str) -> None:
    folder = folder_of(tmp_path / "images", samples=NAMES[:1])
    said_by(EchoError, submit, f"{REPO}@{TAG}", f"{name}={folder}", api=board.api())
    assert board.repositories[REPO].pulls == {}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"code": "http://code.example"}, "code is 'http://code.example'"),
        ({"code": "https://mira:secret@code.example"}, "leave it out"),
        ({"model": "hf_" + "a" * 34}, "model with a key in it: leave it out"),
        ({"developer": "a\x1b[2Jb"}, "expected words without control"),
    ],
)
def test_what_is_public_holds_no_secret(
    board: LocalHub, tmp_path: Path, given: dict[str, str], said: str
) -> None:
    folder = folder_of(tmp_path / "fern")
    assert said in said_by(
        ConfigError, submit, f"{REPO}@{TAG}", f"fern={folder}", api=board.api(), **given
    )


def test_a_folder_takes_no_submission(release: Path, tmp_path: Path) -> None:
    """It only says what would become of one, or writes it."""
    folder = folder_of(tmp_path / "fern")
    said = said_by(ConfigError, submit, str(release), f"fern={folder}")
    assert "add --to FOLDER or --dry-run" in said
    assert submit(str(release), f"fern={folder}", dry_run=True).submission.repo_id is None
    done = submit(str(release), f"fern={folder}", to=tmp_path / "to")
    assert done.path == tmp_path / "to" / "fern"
    assert {path.name for path in done.path.iterdir()} == {
        "submission.json",
        "outputs-00000.parquet",
    }


def test_a_name_that_was_merged_is_taken(board: LocalHub, bundle: Path, tmp_path: Path) -> None:
    board.repositories[REPO].merge(propose(board, files_in(bundle)))
    folder = folder_of(tmp_path / "other", "other")
    said = said_by(SubmissionError, submit, f"{REPO}@{TAG}", f"fern={folder}", api=board.api())
    assert "has 'submissions/v1/fern' already" in said
    again = folder_of(tmp_path / "again")
    said = said_by(SubmissionError, submit, f"{REPO}@{TAG}", f"moss={again}", api=board.api())
    assert "24 of 24 outputs are those of other systems" in said
    assert "submission 'fern'" in said


def test_a_later_release_keeps_submissions_and_is_none_itself(
    board: LocalHub, bundle: Path, tmp_path: Path
) -> None:
    repository = board.repositories[REPO]
    repository.merge(propose(board, files_in(bundle)))
    (tmp_path / "later").mkdir()
    release = write_release_of(tmp_path / "later", ("dogwood", "elm"), "lumen")
    publish(release, REPO, "v2", api=board.api(), allow_unscreened=True)
    assert board.files(REPO, "v2").keys() >= files_in(bundle).keys()
    read = open_release(f"{REPO}@v2", board.api())
    assert {*read.datasets["outputs"]["system"]} == {"dogwood", "elm"}
