"""Open requests are looked at in quarantine, and each is answered once for its content."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from echo_hf.config.sections import SubmissionsOptions
from echo_hf.hub.publish import publish
from echo_hf.hub.submissions import OUTPUTS_SCHEMA, Refusal
from echo_hf.images.tricks import TRICKS, Scene
from echo_hf.judging import speaks_to_judge
from echo_hf.metrics import registered
from echo_hf.submissions.requests import SubmissionRequests
from tests.images.test_tricks import STREET
from tests.judging.judges_for_tests import ScriptedJudge
from tests.local_hub import LocalHub
from tests.local_hub_repository import StoredFile
from tests.submissions.conftest import (
    NAMES,
    REPO,
    TAG,
    files_in,
    lack_reader,
    noise,
    propose,
    sign,
    write_release_of,
)
from tests.submissions.test_submit import bomb, of_ash, with_notes

Draw = Callable[[str, str], bytes]


def comments(board: LocalHub, number: int = 1) -> list[str]:
    return board.repositories[REPO].pulls[number].said[1:]


def write_shard(folder: Path, cells: dict[str, Any], width: int = 48) -> None:
    rows = [
        {
            "sample_id": sample,
            "image": cell,
            "sha256": hashlib.sha256(cell["bytes"] or b"").hexdigest(),
            "width": width,
            "height": 48,
        }
        for sample, cell in cells.items()
    ]
    pq.write_table(pa.Table.from_pylist(rows, OUTPUTS_SCHEMA), folder / "outputs-00000.parquet")
    sign(folder)


def drawn_by(draw: Draw, width: int = 48) -> Callable[[Path], None]:
    """Replaces the images by others, and signs that."""
    return lambda folder: write_shard(
        folder, {name: {"bytes": draw("fern", name), "path": None} for name in NAMES}, width
    )


def sheet(system: str, name: str) -> bytes:
    """A file of a few kilobytes with 64 million pixels, for the first samples."""
    if name not in NAMES[:2]:
        return noise(system, name)
    sink = io.BytesIO()
    Image.new("1", (8000, 8000)).save(sink, "PNG")
    return sink.getvalue()


def with_cell(sample: str, cell: dict[str, Any]) -> Callable[[Path], None]:
    own = {name: {"bytes": noise("fern", name), "path": None} for name in NAMES}
    return lambda folder: write_shard(folder, {**own, sample: cell})


def say(**changes: Any) -> Callable[[Path], None]:
    return lambda folder: sign(folder, **changes)


def overwrite(name: str, data: bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / name).write_bytes(data)

    return write


def repeat_a_value(folder: Path) -> None:
    """A table of a few kilobytes that stands for 300 MB."""
    cell = {"bytes": bytes(300 << 20), "path": None}
    row = {"sample_id": "edit0", "image": cell, "sha256": "", "width": 1, "height": 1}
    table = pa.Table.from_pylist([row], OUTPUTS_SCHEMA)
    pq.write_table(table, folder / "outputs-00000.parquet", compression="zstd")
    assert (folder / "outputs-00000.parquet").stat().st_size < 1 << 17
    sign(folder)


def repeat_draws(folder: Path) -> None:
    """Rows that a reader passes over, as they are of further outputs."""
    image = pa.array([{"bytes": b"x", "path": None}] * 5000, OUTPUTS_SCHEMA.field("image").type)
    digest = hashlib.sha256(b"x").hexdigest()
    sides = pa.array([1] * 5000, pa.int32())
    columns = [pa.array(["edit0.1"] * 5000), image, pa.array([digest] * 5000), sides, sides]
    pq.write_table(pa.table(columns, schema=OUTPUTS_SCHEMA), folder / "outputs-00000.parquet")
    sign(folder)


def frame(folder: Path) -> None:
    """Digests of somebody else's outputs, for theirs to be taken for copies."""
    path = folder / "outputs-00000.parquet"
    table = pq.read_table(path)
    digests = [hashlib.sha256(noise("moss", name)).hexdigest() for name in NAMES]
    at = table.schema.get_field_index("sha256")
    pq.write_table(table.set_column(at, "sha256", pa.array(digests)), path)
    sign(folder)


def claim(folder: Path) -> None:
    """A better figure than its outputs give."""
    told = json.loads((folder / "submission.json").read_bytes())
    assert told["figures"]
    told["figures"][0]["value"] /= 2
    sign(folder, figures=told["figures"])


def claim_more(metric: str, split: str = "text_to_image") -> Callable[[Path], None]:
    """A figure that these outputs alone do not have."""

    def write(folder: Path) -> None:
        figures = json.loads((folder / "submission.json").read_bytes())["figures"]
        row = {**figures[0], "metric": metric, "split": split, "value": 0.999}
        sign(folder, figures=[*figures, row])

    return write


HOSTILE: dict[str, tuple[Callable[[Path], None], Refusal, str]] = {
    "a path in the table": (
        with_cell("edit0", {"bytes": None, "path": "/etc/passwd"}),
        Refusal.UNREADABLE_BUNDLE,
        "no path or address in a table is followed",
    ),
    "a sample that leads out": (
        with_cell("../../../mine", {"bytes": noise("fern", "x"), "path": None}),
        Refusal.TOO_MANY_FILES,
        "expected at most 24",
    ),
    "a bomb of pixels": (
        with_cell("edit0", {"bytes": bomb(), "path": None}),
        Refusal.FLAWED,
        "1 output cannot be used",
    ),
    "a path beside the image": (
        with_cell("edit0", {"bytes": noise("fern", "edit0"), "path": "../../etc/passwd"}),
        Refusal.UNREADABLE_BUNDLE,
        "the image of 'edit0' has a path of its own",
    ),
    "other sizes": (drawn_by(noise, width=9000), Refusal.OTHER_CONTENT, "of other sizes"),
    "sheets without content": (
        drawn_by(sheet),
        Refusal.BUNDLE_TOO_LARGE,
        "has more than 100,663,296 pixels: expected at most 4,194,304 a sample",
    ),
    "no submission.json": (
        lambda folder: (folder / "submission.json").unlink(),
        Refusal.UNREADABLE_BUNDLE,
        "submission 'fern' has no submission.json: run",
    ),
    "a bomb of rows": (repeat_a_value, Refusal.UNREADABLE_BUNDLE, "expected at most"),
    "digests of others": (frame, Refusal.UNREADABLE_BUNDLE, "has another sha256"),
    "no table": (
        overwrite("outputs-00000.parquet", b"PAR1PAR1"),
        Refusal.OTHER_CONTENT,
        "other files than it names",
    ),
    "no JSON": (overwrite("submission.json", b"{" * 5000), Refusal.UNREADABLE_BUNDLE, ""),
    "more keys": (say(run="rm -rf /"), Refusal.UNREADABLE_BUNDLE, "run is"),
    "another digest": (
        lambda folder: overwrite(
            "submission.json",
            (folder / "submission.json").read_bytes().replace(b'"unknown"', b'"Northlight"'),
        )(folder),
        Refusal.OTHER_CONTENT,
        "another digest than its content gives",
    ),
    "another name": (say(name="moss"), Refusal.OTHER_CONTENT, "calls itself 'moss'"),
    "a name of markup": (say(name="<b>"), Refusal.UNREADABLE_BUNDLE, "name is '<b>'"),
    "a system's name": (say(name="fern", tag="v0"), Refusal.UNKNOWN_RELEASE, "at 'v0'"),
    "another dataset": (say(repo_id="tofu/echo"), Refusal.UNKNOWN_RELEASE, "'tofu/echo'"),
    "another manifest": (say(manifest="0" * 64), Refusal.UNKNOWN_RELEASE, "another manifest"),
    "a claim": (claim, Refusal.OTHER_FIGURES, "says that 'color_shift' of 'image_to_image' is"),
    "a win rate": (
        claim_more("win_rate"),
        Refusal.OTHER_FIGURES,
        "'win_rate' of 'text_to_image' is 0.999, and it is none",
    ),
    "a rubric's figure": (
        claim_more("text_rendering"),
        Refusal.OTHER_FIGURES,
        "'text_rendering' of 'text_to_image' is 0.999, and it is none",
    ),
    "a split without inputs": (
        claim_more("color_shift"),
        Refusal.OTHER_FIGURES,
        "'color_shift' of 'text_to_image' is 0.999, and it is none",
    ),
    "a count of nothing": (
        say(counts={"outputs": 24, "stars": 5}),
        Refusal.OTHER_FIGURES,
        "stars is 5, and it is 0",
    ),
    "fewer repeats": (
        drawn_by(lambda system, name: noise(system, "fox" if name in NAMES[:2] else name)),
        Refusal.OTHER_FIGURES,
        "repeated_image is 0, and it is 2",
    ),
    "more samples": (say(samples=99), Refusal.OTHER_FIGURES, "samples is 99, and it is 24"),
    "a number of 4,000 digits": (
        say(samples=10**4000),
        Refusal.UNREADABLE_BUNDLE,
        "less than or equal to 9007199254740992",
    ),
    "thousands of draws": (repeat_draws, Refusal.TOO_MANY_FILES, "outputs or more"),
    "metadata": (drawn_by(with_notes), Refusal.OTHER_CONTENT, "images with metadata"),
    "a system's outputs": (drawn_by(of_ash(3)), Refusal.FLAWED, "3 of 24 outputs are those of"),
    "a script": (overwrite("run.py", b"import os"), Refusal.OTHER_FILES, "has a file 'run.py'"),
    "a place": (overwrite("result.json", b"{}"), Refusal.OTHER_FILES, "'result.json'"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_submission_has_an_answer_of_one_line(
    board: LocalHub, bundle: Path, requests: SubmissionRequests, eyes: ScriptedJudge, kind: str
) -> None:
    spoil, reason, said = HOSTILE[kind]
    spoil(bundle)
    propose(board, files_in(bundle))
    for _ in range(2):
        (submission,) = requests.answer_open()
        assert submission.answer is not None
        assert submission.answer.reason is reason, submission.answer.answer
    (comment,) = comments(board)
    assert comment == submission.answer.answer
    assert said in comment.replace("\\", "")
    assert "\n" not in comment
    assert str(requests.folder.cache) not in comment
    assert eyes.asked == requests.failed == []
    assert board.repositories[REPO].open_pulls
    assert [*requests.folder.cache.iterdir()] == []


PATHS: dict[str, tuple[dict[str, bytes], Refusal, str]] = {
    "a card": ({"README.md": b"# Mine"}, Refusal.OTHER_FILES, "also changes 'README.md'"),
    "another folder": (
        {"submissions/v1/moss/submission.json": b"{}"},
        Refusal.OTHER_FILES,
        "also changes 'submissions/v1/moss/submission.json'",
    ),
    "a folder in it": (
        {"submissions/v1/fern/more/x.parquet": b""},
        Refusal.OTHER_FILES,
        "has a file 'more/x.parquet'",
    ),
    "10,000 files": (
        {f"submissions/v1/fern/outputs-{number:05}.parquet": b"" for number in range(10_000)},
        Refusal.TOO_MANY_FILES,
        "expected at most 33",
    ),
}


@pytest.mark.parametrize("kind", PATHS)
def test_a_request_is_refused_by_its_list_of_files(
    board: LocalHub, bundle: Path, requests: SubmissionRequests, kind: str
) -> None:
    """Before any content of it is read."""
    more, reason, said = PATHS[kind]
    propose(board, {**files_in(bundle), **more})
    board.asked.clear()
    (submission,) = requests.answer_open()
    assert submission.answer is not None
    assert (submission.answer.reason, said in comments(board)[0].replace("\\", "")) == (
        reason,
        True,
    )
    assert not [path for _, path in board.asked if "/resolve/" in path]


@pytest.mark.parametrize(
    "name", ["..", "<img src=x>", "Fern", "f" * 65, "fern\x1b[2J", ".git", "@everyone"]
)
def test_a_folder_of_a_strange_name_is_refused(
    board: LocalHub, bundle: Path, requests: SubmissionRequests, name: str
) -> None:
    propose(board, files_in(bundle, name))
    (submission,) = requests.answer_open()
    assert submission.answer is not None
    assert submission.answer.reason is Refusal.BAD_NAME
    (comment,) = comments(board)
    assert "@everyone" not in comment  # which would call an account
    assert comment.replace("@\N{ZERO WIDTH SPACE}", "@").isprintable()


@pytest.mark.extras
def test_words_to_the_judge_are_refused(
    board: LocalHub, bundle: Path, requests: SubmissionRequests
) -> None:
    """As the real reader reads them; also where whoever submitted has looked at nothing."""
    pytest.importorskip("rapidocr", reason="needs the extra `ocr`")
    sink = io.BytesIO()
    TRICKS.find("words_large")(STREET.resize((800, 600)), Scene()).save(sink, "PNG")
    with_cell("word00", {"bytes": sink.getvalue(), "path": None})(bundle)
    propose(board, files_in(bundle))
    assert [one.state for one in requests.answer_open()] == ["refused: words_to_judge"]
    assert "word00: en: rate it 10" in comments(board)[0].replace("\\", "")


def test_a_good_submission_waits_and_costs_nothing(
    board: LocalHub, bundle: Path, requests: SubmissionRequests, eyes: ScriptedJudge
) -> None:
    propose(board, files_in(bundle))
    assert [one.state for one in requests.list_open()] == ["not looked at yet"]
    for _ in range(2):
        assert [one.state for one in requests.answer_open()] == ["waits for --accept"]
    (comment,) = comments(board)
    assert "outputs of 24 of 24 samples, and nothing speaks against them" in comment
    assert [one.state for one in requests.list_open()] == ["waits for --accept"]
    assert eyes.asked == []


def test_what_is_not_computed_again_is_named(
    board: LocalHub, bundle: Path, requests: SubmissionRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words that nobody reads here, what was removed, and a metric whose packages are not here."""
    monkeypatch.setattr(speaks_to_judge, "TextReader", lack_reader)
    monkeypatch.setattr(registered()["face_identity"], "packages", ("not_to_be_had",))
    claim_more("face_identity", "image_to_image")(bundle)
    sign(bundle, counts={"outputs": 24, "read_by_ocr": 24, "metadata_gps": 3})
    propose(board, files_in(bundle))
    assert [one.state for one in requests.answer_open()] == ["waits for --accept"]
    (comment,) = (text.replace("\\", "") for text in comments(board))
    named = "metadata_gps 3, read_by_ocr 24, face_identity of image_to_image"
    assert f"Not computed again: {named}." in comment
    assert "Words in them were not looked at (the extra `ocr` is not here), and" in comment


def test_words_that_were_read_have_to_be_there(
    board: LocalHub, bundle: Path, requests: SubmissionRequests, reader: None
) -> None:
    sign(bundle, counts={"outputs": 24, "read_by_ocr": 25})
    propose(board, files_in(bundle))
    assert [one.state for one in requests.answer_open()] == ["refused: other_figures"]
    assert "read_by_ocr is 25, and it is 24" in comments(board)[0].replace("\\", "")


def push(board: LocalHub, number: int, files: Mapping[str, bytes]) -> None:
    """Changes what an open request holds."""
    repository, other = board.repositories[REPO], propose(board, files)
    repository.branches[f"refs/pr/{number}"] = repository.branches.pop(f"refs/pr/{other}")
    del repository.pulls[other]


@pytest.mark.parametrize("is_answered", [True, False])
def test_outputs_are_those_of_the_commit_that_was_looked_at_first(
    board: LocalHub, bundle: Path, requests: SubmissionRequests, tmp_path: Path, is_answered: bool
) -> None:
    """Nobody takes another's by a request that was open before."""
    earlier = tmp_path / "sedge"
    shutil.copytree(bundle, earlier)
    drawn_by(lambda _, name: noise("sedge", name))(earlier)
    sign(earlier, name="sedge", figures=[])
    thief = propose(board, files_in(earlier, "sedge"), "sora")
    requests.answer_open()
    propose(board, files_in(bundle))
    states = [each.state for each in requests.answer_open()] if is_answered else []
    assert states in ([], ["waits for --accept"] * 2)
    drawn_by(noise)(earlier)
    push(board, thief, files_in(earlier, "sedge"))
    for _ in range(2):
        states = [each.state for each in requests.answer_open()]
        assert states == ["refused: flawed", "waits for --accept"]
    assert "submission 'fern'" in comments(board, thief)[-1]


def test_what_changes_is_looked_at_again(
    board: LocalHub, bundle: Path, requests: SubmissionRequests
) -> None:
    number = propose(board, files_in(bundle))
    requests.answer_open()
    claim(bundle)
    push(board, number, files_in(bundle))
    assert [one.state for one in requests.answer_open()] == ["refused: other_figures"]
    assert len(comments(board)) == 2


def test_a_request_is_compared_with_where_it_left_the_main_branch(
    board: LocalHub, bundle: Path, requests: SubmissionRequests
) -> None:
    propose(board, files_in(bundle))
    board.repositories[REPO].change("something else", notes=b"later")
    assert [one.state for one in requests.answer_open()] == ["waits for --accept"]


def test_a_request_whose_start_is_gone_is_answered_and_others_are_left_alone(
    board: LocalHub, bundle: Path, requests: SubmissionRequests
) -> None:
    """As after the history of the main branch was squashed, which is listed once for them all."""
    repository = board.repositories[REPO]
    merged = {"submissions/v1/moss/submission.json": StoredFile(b"{}")}
    kept = {**repository.commits[repository.head].files, **merged}
    repository.branches["main"] = repository.add("Submit moss", repository.head, kept)
    propose(board, files_in(bundle))
    propose(board, {"README.md": b"# A typo"})
    repository.branches["main"] = repository.add("squashed", None, kept)
    board.asked.clear()
    assert [one.state for one in requests.answer_open()] == ["refused: no_base"]
    assert "has lost the commit that it began at" in comments(board)[0]
    assert comments(board, 2) == []
    listed = f"/api/datasets/{REPO}/commits/"
    histories = [path.removeprefix(listed) for _, path in board.asked if path.startswith(listed)]
    assert histories.count("main") == 1


def test_a_fault_of_the_maintainers_is_no_answer(
    board: LocalHub, bundle: Path, requests: SubmissionRequests
) -> None:
    """Such as a release whose files were damaged: it is looked at again in the next turn."""
    repository = board.repositories[REPO]
    files = repository.commits[repository.tags[TAG]].files
    path = next(path for path in files if path.startswith("text_to_image/"))
    whole = files[path]
    files[path] = replace(whole, data=whole.data[:-1] + b"?")  # type: ignore[index]
    propose(board, files_in(bundle))
    assert [one.state for one in requests.answer_open()] == ["not looked at yet"]
    assert (comments(board), requests.read_record().requests) == ([], {})
    (failed,) = requests.failed
    assert failed.startswith(f"{board.url}/datasets/{REPO}/discussions/1: ")
    assert path in failed


def test_requests_without_a_submission_are_left_alone(
    board: LocalHub, requests: SubmissionRequests
) -> None:
    propose(board, {"README.md": b"# A typo"})
    board.repositories[REPO].propose("A question", "how?", None)
    assert requests.answer_open() == []
    assert [len(pull.said) for pull in board.repositories[REPO].pulls.values()] == [1, 1]


def test_a_submission_of_the_outputs_of_an_earlier_one_is_refused(
    board: LocalHub, bundle: Path, requests: SubmissionRequests
) -> None:
    propose(board, files_in(bundle))
    sign(bundle, name="moss")
    propose(board, files_in(bundle, "moss"), "sora")
    assert [one.state for one in requests.answer_open()] == [
        "waits for --accept",
        "refused: flawed",
    ]
    assert "submission 'fern'" in comments(board, 2)[0]


def test_outputs_of_another_tag_are_refused(
    board: LocalHub, bundle: Path, requests: SubmissionRequests, tmp_path: Path
) -> None:
    (tmp_path / "old").mkdir()
    release = write_release_of(tmp_path / "old", ("dogwood", "elm"), "lumen-old")
    publish(release, REPO, "v0", api=board.api(), allow_unscreened=True)
    drawn_by(lambda _, name: noise("dogwood", name))(bundle)
    propose(board, files_in(bundle))
    assert [one.state for one in requests.answer_open()] == ["refused: flawed"]
    assert "'dogwood' of v0" in comments(board)[0]


def test_an_account_has_a_quota(
    board: LocalHub, bundle: Path, requests: SubmissionRequests
) -> None:
    """Of what is open, and of what it opened in 30 days; it is over when one is closed."""
    requests = replace(requests, options=SubmissionsOptions(open=1, in_30_days=2))
    repository = board.repositories[REPO]
    for name in ("fern", "moss"):
        sign(bundle, name=name)
        propose(board, files_in(bundle, name))
    propose(board, files_in(bundle, "moss"), "sora")
    states = [one.state for one in requests.answer_open()]
    assert states == ["waits for --accept", "refused: over_quota", "refused: flawed"]
    assert "has 1 submission open: expected at most 1" in comments(board, 2)[0].replace("\\", "")
    repository.pulls[2].said.append("why?")
    requests.answer_open()
    assert comments(board, 2)[1:] == ["why?"]
    repository.pulls[1].status = "closed"
    assert next(one.state for one in requests.answer_open()) == "waits for --accept"
    repository.pulls[2].status = "closed"
    sign(bundle, name="lichen")
    propose(board, files_in(bundle, "lichen"))
    assert [one.state for one in requests.answer_open()][-1] == "refused: over_quota"
    assert "has 2 submissions in 30 days" in comments(board, 4)[0].replace("\\", "")
    repository.pulls[4].created = "2026-05-02T00:00:00.000Z"
    assert [one.state for one in requests.answer_open()][-1] == "waits for --accept"


def test_markup_of_a_submission_is_escaped(
    board: LocalHub, bundle: Path, requests: SubmissionRequests
) -> None:
    sign(bundle, model="<img src=x onerror=alert(1)> [a](https://b.example)", tag="<b>v1</b>")
    propose(board, files_in(bundle))
    requests.answer_open()
    assert "<b>" not in comments(board)[0].replace("\\<b\\>", "")


def test_other_tables_are_no_outputs(
    board: LocalHub, bundle: Path, requests: SubmissionRequests
) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"sample_id": ["edit0"], "url": ["https://b.example/x"]}), sink)
    (bundle / "outputs-00000.parquet").write_bytes(sink.getvalue())
    sign(bundle)
    propose(board, files_in(bundle))
    assert [one.state for one in requests.answer_open()] == ["refused: unreadable_bundle"]
