"""A submission is read as it was written, and its list of files is checked before it is read."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from echo_hf.errors import SubmissionError
from echo_hf.hub import submissions
from echo_hf.hub.submissions import (
    MAX_BUNDLE_BYTES,
    MAX_TEXT_BYTES,
    Refusal,
    Submission,
    SubmittedImage,
    check_listing,
    iterate_outputs,
    read_submission,
    write_outputs,
)


def picture(number: int) -> bytes:
    sink = io.BytesIO()
    Image.new("RGB", (9, 7), (number, 5, 9)).save(sink, "PNG")
    return sink.getvalue()


def test_outputs_are_read_as_they_were_written_in_tables_of_limited_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submissions, "SHARD_BYTES", 1000)
    pictures = {f"sample{number:02}": picture(number) for number in range(40)}
    images = [
        SubmittedImage(name, data, hashlib.sha256(data).hexdigest(), (9, 7))
        for name, data in pictures.items()
    ]
    files = write_outputs(tmp_path / "fern", images)
    assert [file.path for file in files] == [f"outputs-0000{number}.parquet" for number in range(3)]
    written: dict[str, Any] = {"name": "fern", "model": "fern", "developer": "unknown"}
    written |= dict.fromkeys(("repo_id", "tag", "commit"))
    written |= {"manifest": "0" * 64, "echo_hf": "1", "samples": 40, "counts": {}, "figures": ()}
    submission = Submission(**written, files=files)
    submission = submission.model_copy(update={"digest": submission.compute_digest()})
    (tmp_path / "fern" / "submission.json").write_text(submission.model_dump_json(), "utf-8")
    assert read_submission(tmp_path / "fern", "fern") == submission
    assert [*iterate_outputs(tmp_path / "fern", submission)] == images


SHARD = "outputs-00000.parquet"


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ({SHARD: MAX_BUNDLE_BYTES - 9, "submission.json": 9}, None),
        ({SHARD: 1}, Refusal.UNREADABLE_BUNDLE),
        ({SHARD: MAX_BUNDLE_BYTES + 1}, Refusal.BUNDLE_TOO_LARGE),
        ({"submission.json": MAX_TEXT_BYTES + 1}, Refusal.BUNDLE_TOO_LARGE),
        ({f"outputs-{number:05}.parquet": 1 for number in range(34)}, Refusal.TOO_MANY_FILES),
        ({"../outputs-00000.parquet": 1}, Refusal.OTHER_FILES),
        ({"outputs-0.parquet": 1}, Refusal.OTHER_FILES),
        ({f"{SHARD}\n": 1}, Refusal.OTHER_FILES),
    ],
)
def test_names_and_sizes_are_checked_first(sizes: dict[str, int], reason: Refusal | None) -> None:
    if reason is None:
        check_listing("fern", sizes)
        return
    with pytest.raises(SubmissionError) as raised:
        check_listing("fern", sizes)
    assert raised.value.reason is reason
    assert "\n" not in str(raised.value)
