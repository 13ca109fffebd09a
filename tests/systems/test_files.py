"""Outputs that somebody made before."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from echo_hf.config.systems import SystemConfig
from echo_hf.errors import GenerationError
from echo_hf.images.store import MOST_BYTES
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult, Task
from echo_hf.systems.files import FilesSystem
from tests.images_for_tests import encoded, noise

PNG = encoded(noise((8, 6)), "PNG")
JPEG = encoded(noise((8, 6)), "JPEG")
SPLIT = "text_to_image"


def files_system(folder: Path, **parameters: Any) -> FilesSystem:
    """A system that replays a folder."""
    config = SystemConfig(
        name="lumen",
        adapter="files",
        developer="Northlight",
        status="replay",
        parameters={"folder": str(folder), **parameters},
    )
    return FilesSystem(config)


def draw(
    folder: Path, sample_id: str = "a1", split: str = SPLIT, **parameters: Any
) -> GenerationResult:
    """What a fresh system gives for a sample."""
    with files_system(folder, **parameters) as system:
        return system.draw(Task(sample_id, "0" * 64, split, "a kite"))


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    """The folder of one system's outputs in one split, as `autoeval` has it."""
    place = tmp_path / SPLIT / "lumen"
    place.mkdir(parents=True)
    return place


def write_manifest(place: Path, *lines: dict[str, Any]) -> None:
    """A manifest in a folder."""
    (place / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize(("suffix", "data"), [(".png", PNG), (".jpg", JPEG), (".JPEG", JPEG)])
def test_the_very_bytes_of_the_file_come_back(
    suffix: str, data: bytes, outputs: Path, tmp_path: Path
) -> None:
    """Whatever its suffix; nothing is written anew."""
    (outputs / f"a1{suffix}").write_bytes(data)
    drawn = draw(tmp_path)
    assert (drawn.outcome, drawn.image, drawn.stage) == (Outcome.OK, data, None)
    assert drawn.details == {"file": f"a1{suffix}"}


def test_the_folder_may_call_the_system_otherwise(tmp_path: Path) -> None:
    """`system` in place of the config's name."""
    (tmp_path / SPLIT / "4o").mkdir(parents=True)
    (tmp_path / SPLIT / "4o/a1.png").write_bytes(PNG)
    assert draw(tmp_path, system="4o").image == PNG
    assert draw(tmp_path).code == "no_file"


def test_each_split_has_its_own_outputs(outputs: Path, tmp_path: Path) -> None:
    """One id in two splits is two samples."""
    other = tmp_path / "image_to_image/lumen"
    other.mkdir(parents=True)
    (outputs / "a1.png").write_bytes(PNG)
    (other / "a1.jpg").write_bytes(JPEG)
    with files_system(tmp_path) as system:
        drawn = [
            system.draw(Task("a1", "0" * 64, split, "a kite")).image
            for split in (SPLIT, "image_to_image")
        ]
    assert drawn == [PNG, JPEG]


def test_the_layout_of_generated_outputs(tmp_path: Path) -> None:
    """A folder for each sample."""
    place = tmp_path / "lumen" / SPLIT / "a1"
    place.mkdir(parents=True)
    (place / "gen_0.png").write_bytes(PNG)
    (place / "gen_1.png").write_bytes(encoded(noise((4, 4)), "PNG"))
    assert draw(tmp_path, layout="generated").image == PNG
    assert draw(tmp_path, "a2", layout="generated").code == "no_file"
    assert draw(tmp_path, f"../{SPLIT}/a1", layout="generated").code == "no_file"


@pytest.mark.parametrize("name", ["a10.png", "a1.b.png", "a1", "A1.png", "a1.png/x"])
def test_another_ids_file_is_never_taken(name: str, outputs: Path, tmp_path: Path) -> None:
    """Nor one that begins alike."""
    (outputs / name).parent.mkdir(exist_ok=True)
    (outputs / name).write_bytes(PNG)
    drawn = draw(tmp_path)
    assert (drawn.outcome, drawn.image) == (Outcome.FAILED, None)


def test_a_missing_file_says_nothing_of_the_system(outputs: Path, tmp_path: Path) -> None:
    """`failed` is never scored, as the official evaluation skips such a sample."""
    (outputs / "a2.png").write_bytes(PNG)
    drawn = draw(tmp_path)
    assert (drawn.outcome, drawn.stage) == (Outcome.FAILED, OutcomeStage.REQUEST)
    assert drawn.code == "no_file"
    assert "'text_to_image/lumen/a1.png'" in str(drawn.text)


@pytest.mark.parametrize("sample_id", ["*", "a?", "[a]1", "../lumen/a1", "a1/../a1", "x" * 300])
def test_an_id_is_neither_a_pattern_nor_a_path(
    sample_id: str, outputs: Path, tmp_path: Path
) -> None:
    """It is somebody's text."""
    (outputs / "a1.png").write_bytes(PNG)
    assert draw(tmp_path, sample_id).code == "no_file"
    (outputs / "[a]1.png").write_bytes(PNG)
    assert draw(tmp_path, "[a]1").image == PNG


def test_two_files_of_one_sample_are_not_chosen_from(outputs: Path, tmp_path: Path) -> None:
    """Both are named; a text beside an image is no second image."""
    (outputs / "a1.png").write_bytes(PNG)
    (outputs / "a1.txt").write_text("made on Monday")
    assert draw(tmp_path).image == PNG
    (outputs / "a1.jpg").write_bytes(JPEG)
    drawn = draw(tmp_path)
    assert (drawn.outcome, drawn.stage) == (Outcome.FAILED, OutcomeStage.ANSWER)
    assert drawn.code == "several_files"
    assert "'a1.jpg', 'a1.png'" in str(drawn.text)


@pytest.mark.parametrize(
    ("name", "data"), [("a1.png", b"<html>"), ("a1.html", b"<html>"), ("a1.png", PNG[:-30])]
)
def test_a_file_that_is_no_image(name: str, data: bytes, outputs: Path, tmp_path: Path) -> None:
    """Is named in one line."""
    (outputs / name).write_bytes(data)
    drawn = draw(tmp_path)
    assert (drawn.outcome, drawn.code, drawn.image) == (Outcome.FAILED, "bad_picture", None)
    assert str(drawn.text).startswith(f"'{name}'")
    assert "\n" not in str(drawn.text)


def test_an_oversized_file_is_not_read(outputs: Path, tmp_path: Path) -> None:
    """However large it is; this one takes no room on the disk."""
    with (outputs / "a1.png").open("wb") as file:
        file.write(PNG)
        file.truncate(MOST_BYTES + 1)
    drawn = draw(tmp_path)
    assert drawn.code == "bad_picture"
    assert str(drawn.text) == f"'a1.png': more than {MOST_BYTES} bytes"


def test_links_do_not_lead_out_of_the_folder(outputs: Path, tmp_path: Path) -> None:
    """Inside they may lead anywhere."""
    secret = tmp_path.parent / f"{tmp_path.name}-secret.png"
    secret.write_bytes(PNG)
    (outputs / "a1.png").symlink_to(secret)
    (outputs / "a2.png").symlink_to(outputs / "kept.png")
    (outputs / "kept.png").write_bytes(PNG)
    (outputs / "a3.png").symlink_to("a3.png")
    assert draw(tmp_path, "a1").code == "outside"
    assert draw(tmp_path, "a2").image == PNG
    assert draw(tmp_path, "a3").code == "no_picture_file"


def test_a_pipe_is_not_waited_for(outputs: Path, tmp_path: Path) -> None:
    """Nor is a folder taken for a file."""
    os.mkfifo(outputs / "a1.png")
    (outputs / "a2.png").mkdir()
    assert draw(tmp_path, "a1").code == "no_regular_file"
    assert draw(tmp_path, "a2").code == "no_regular_file"


def test_a_signature_opens_only_what_may_be_an_image(outputs: Path, tmp_path: Path) -> None:
    """A pipe that a manifest names is not waited for, and nothing outside of the folder is read."""
    secret = tmp_path.parent / f"{tmp_path.name}-diary.png"
    secret.write_bytes(PNG)
    os.mkfifo(outputs / "pipe")
    (outputs / "link").symlink_to(secret)
    write_manifest(
        outputs, {"sample_id": "a1", "file": "pipe"}, {"sample_id": "a2", "file": "link"}
    )
    before = files_system(tmp_path).signature()
    secret.write_bytes(JPEG)
    assert files_system(tmp_path).signature() == before
    (outputs / "link").unlink()
    (outputs / "link").write_bytes(JPEG)
    assert files_system(tmp_path).signature() != before


def test_a_manifest_says_what_became_of_a_sample(outputs: Path, tmp_path: Path) -> None:
    """A refusal counts against a system, which a missing file does not."""
    refused = {
        "sample_id": "a1",
        "outcome": "refused",
        "stage": "output",
        "text": "No.",
        "code": "7",
    }
    drew = {"sample_id": "a2", "seed": 3, "revised_prompt": "a red kite", "model": "lumen-1"}
    elsewhere = {"sample_id": "a3", "file": "7/output.png", "cost_usd": 0.04}
    write_manifest(outputs, refused, drew, elsewhere, {"sample_id": "a4"})
    (outputs / "a1.png").write_bytes(JPEG)
    (outputs / "a2.png").write_bytes(PNG)
    (outputs / "7").mkdir()
    (outputs / "7/output.png").write_bytes(PNG)
    first, second, third, fourth, fifth = (
        draw(tmp_path, sample_id) for sample_id in ("a1", "a2", "a3", "a4", "a5")
    )
    assert (first.outcome, first.stage) == (Outcome.REFUSED, OutcomeStage.OUTPUT)
    assert (first.text, first.code, first.image) == ("No.", "7", None)
    assert first.details == {"files_not_used": ["a1.png"]}
    assert (second.image, second.seed, second.revised_prompt) == (PNG, 3, "a red kite")
    assert second.model_reported == "lumen-1"
    assert (third.image, third.cost_usd) == (PNG, 0.04)
    assert (fourth.outcome, fourth.stage) == (Outcome.FAILED, OutcomeStage.ANSWER)
    assert (fifth.outcome, fifth.stage) == (Outcome.FAILED, OutcomeStage.REQUEST)


def test_a_sample_that_a_retired_model_never_got_retires_no_other(
    outputs: Path, tmp_path: Path
) -> None:
    """Wherever the manifest says that it ended, this one was not asked."""
    write_manifest(outputs, {"sample_id": "a1", "outcome": "retired", "stage": "request"})
    assert draw(tmp_path).stage is OutcomeStage.PREFLIGHT


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('{"sample_id": "a2"', 'line 2 is b\'{"sample_id": "a2"\': expected a JSON object'),
        ('["a2"]', "expected a JSON object"),
        ('{"sample": "a2"}', "unknown key 'sample'; did you mean 'sample_id'"),
        ('{"outcome": "ok"}', "line 2: sample_id is missing"),
        ('{"sample_id": "a2", "outcome": "fine"}', "outcome is 'fine'"),
        ('{"sample_id": "a1"}', "is about 'a1', as an earlier one is"),
        ('{"sample_id": "a2", "file": "/etc/a.png"}', "below the folder of the manifest"),
        ('{"sample_id": "a2", "file": "../a.png"}', "below the folder of the manifest"),
    ],
)
def test_a_bad_line_of_a_manifest_is_named(
    line: str, text: str, outputs: Path, tmp_path: Path
) -> None:
    """Before anything is drawn, and by whatever is asked first."""
    (outputs / "manifest.jsonl").write_text(f'{{"sample_id": "a1"}}\n{line}\n')
    system = files_system(tmp_path)
    for ask in (system.preflight, lambda: draw(tmp_path), system.signature):
        with pytest.raises(GenerationError) as error:
            ask()
        assert text in str(error.value)
        assert "\n" not in str(error.value)


def test_preflight_wants_an_output(outputs: Path, tmp_path: Path) -> None:
    """A single file of a single split is enough, and so is a manifest."""
    with pytest.raises(GenerationError, match=r"no file 'SPLIT/lumen/ID.png' in .*'text_to_image'"):
        files_system(tmp_path).preflight()
    with pytest.raises(GenerationError, match="no folder"):
        files_system(tmp_path / "nowhere").preflight()
    write_manifest(outputs, {"sample_id": "a1", "outcome": "refused"})
    assert files_system(tmp_path).preflight() is None
    (outputs / "manifest.jsonl").unlink()
    (outputs / "a1.png").write_bytes(PNG)
    assert files_system(tmp_path).preflight() is None
    with pytest.raises(GenerationError, match=r"no file 'lumen/SPLIT/ID/gen_0\.png'"):
        files_system(tmp_path, layout="generated").preflight()


def test_a_copied_folder_has_the_same_signature(outputs: Path, tmp_path: Path) -> None:
    """On any machine, and each time."""
    (outputs / "a1.png").write_bytes(PNG)
    shutil.copytree(tmp_path / SPLIT, tmp_path / "copy" / SPLIT, copy_function=shutil.copyfile)
    system = files_system(tmp_path)
    assert system.signature() == files_system(tmp_path / "copy").signature() == system.signature()
    assert str(tmp_path) not in repr(system.signature())


@pytest.mark.parametrize("change", ["replaced", "renamed", "added", "removed", "named"])
def test_a_changed_folder_has_another_signature(change: str, outputs: Path, tmp_path: Path) -> None:
    """A replaced file of the same size and time, too; and one that only a manifest names."""
    (outputs / "7").mkdir()
    for path in (outputs / "a1.png", outputs / "a2.png", outputs / "7/output.png"):
        path.write_bytes(PNG)
    write_manifest(outputs, {"sample_id": "a3", "file": "7/output.png"})
    before = files_system(tmp_path).signature()
    if change == "replaced":
        (outputs / "a1.png").write_bytes(PNG[:-1] + b"\x00")
    elif change == "renamed":
        (outputs / "a1.png").rename(outputs / "a4.png")
    elif change == "added":
        (outputs / "a4.png").write_bytes(PNG)
    elif change == "removed":
        (outputs / "a1.png").unlink()
    else:
        (outputs / "7/output.png").write_bytes(JPEG)
    assert files_system(tmp_path).signature() != before


def test_another_systems_files_do_not_change_the_signature(outputs: Path, tmp_path: Path) -> None:
    """Its outputs would be drawn anew for nothing."""
    (outputs / "a1.png").write_bytes(PNG)
    before = files_system(tmp_path).signature()
    (tmp_path / SPLIT / "other").mkdir()
    (tmp_path / SPLIT / "other/a1.png").write_bytes(JPEG)
    assert files_system(tmp_path).signature() == before


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"layout": "flta"}, "layout is 'flta'"),
        ({"folders": "x"}, "did you mean 'folder'"),
        ({"table": "images.csv"}, "table goes with layout: flat"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, Any], text: str, tmp_path: Path) -> None:
    """In one line."""
    with pytest.raises(GenerationError) as error:
        files_system(tmp_path, **parameters)
    assert text in str(error.value)


def test_a_flat_folder_has_the_images_of_all_splits(tmp_path: Path) -> None:
    """Named by sample id, whatever their suffix; nothing below it is looked at."""
    (tmp_path / "a1.png").write_bytes(PNG)
    (tmp_path / "a2.JPEG").write_bytes(JPEG)
    (tmp_path / SPLIT).mkdir()
    (tmp_path / SPLIT / "a3.png").write_bytes(PNG)
    assert files_system(tmp_path, layout="flat").preflight() is None
    assert draw(tmp_path, "a1", layout="flat").image == PNG
    assert draw(tmp_path, "a2", "image_to_image", layout="flat").image == JPEG
    assert draw(tmp_path, "a3", layout="flat").code == "no_file"


@pytest.mark.parametrize("text", ["id,path\na1,x/7.png\n", "\ufeffpath,id,note\r\nx/7.png,a1,\r\n"])
def test_a_table_alone_says_which_file_is_of_which_sample(text: str, tmp_path: Path) -> None:
    """A file that is named by an id beside it is not taken; columns stand in any order."""
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "7.png").write_bytes(PNG)
    (tmp_path / "a2.png").write_bytes(PNG)
    (tmp_path / "images.csv").write_text(text, "utf-8", newline="")
    options = {"layout": "flat", "table": "images.csv"}
    assert draw(tmp_path, "a1", **options).image == PNG
    assert draw(tmp_path, "a2", **options).code == "no_file"
    before = files_system(tmp_path, **options).signature()
    (tmp_path / "a2.png").write_bytes(JPEG)
    assert files_system(tmp_path, **options).signature() == before
    (tmp_path / "x" / "7.png").write_bytes(JPEG)
    assert files_system(tmp_path, **options).signature() != before


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"sample,path\na1,x.png\n", "has the columns ['sample', 'path']: expected id and path"),
        (b"", "has the columns None: expected id and path"),
        (b"id,path\na1,x.png\na1,y.png\n", "line 3 is about 'a1', as an earlier one is"),
        (b"id,path\na1,../x.png\n", "below the folder"),
        (b"id,path\na1,/x.png\n", "below the folder"),
        (b"id,path\n,x.png\n", "line 2: sample_id is ''"),
        (b"id,path\na1,\xff.png\n", "as a CSV: 'utf-8' codec"),
        (b'id,path\na1,"' + b"x" * 200_000, "as a CSV: field larger"),
        (None, "expected a CSV with the columns id and path"),
    ],
)
def test_a_table_that_cannot_be_read_is_one_line(
    data: bytes | None, text: str, tmp_path: Path
) -> None:
    """Before anything is drawn."""
    (tmp_path / "a.png").write_bytes(PNG)
    if data is not None:
        (tmp_path / "images.csv").write_bytes(data)
    system = files_system(tmp_path, layout="flat", table="images.csv")
    with pytest.raises(GenerationError) as error:
        system.draw(Task("a1", "0" * 64, SPLIT, "a kite"))
    assert text in str(error.value)
    assert "\n" not in str(error.value)


def test_a_table_or_manifest_is_not_read_out_of_its_folder(tmp_path: Path) -> None:
    """A link to another file gives none of its words away."""
    folder, secret = tmp_path / "images", tmp_path / "secret.txt"
    folder.mkdir()
    secret.write_text("swordfish", "utf-8")
    (folder / "images.csv").symlink_to(secret)
    system = files_system(folder, layout="flat", table="images.csv")
    with pytest.raises(GenerationError, match="leads out of its folder") as error:
        system.draw(Task("a1", "0" * 64, SPLIT, "a kite"))
    assert "swordfish" not in str(error.value)
