"""Outputs that somebody made before."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from echo_hf.config.systems import SystemConfig
from echo_hf.errors import GenerationError
from echo_hf.images.store import MAX_IMAGE_BYTES
from echo_hf.systems.base import GenerationResult, OutcomeStage, Task
from echo_hf.systems.files import FilesSystem
from echo_hf.tables import Outcome
from tests.errors_for_tests import said_by
from tests.images_for_tests import encoded, noise

PNG = encoded(noise((8, 6)), "PNG")
JPEG = encoded(noise((8, 6)), "JPEG")
SPLIT = "text_to_image"


def system_of(folder: Path, **parameters: Any) -> FilesSystem:
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
    with system_of(folder, **parameters) as system:
        return system.draw(Task(sample_id, "0" * 64, split, "a kite"))


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    place = tmp_path / SPLIT / "lumen"
    place.mkdir(parents=True)
    return place


def put(place: Path, *names: str, data: bytes = PNG) -> None:
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)


def write_manifest(place: Path, *lines: dict[str, Any]) -> None:
    (place / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def outside(folder: Path, data: bytes = PNG) -> Path:
    secret = folder.parent / f"{folder.name}-secret.png"
    secret.write_bytes(data)
    return secret


# Where files lie.


def test_the_very_bytes_of_the_file_come_back(outputs: Path, tmp_path: Path) -> None:
    put(outputs, "a1.JPEG", data=JPEG)
    put(outputs, "a1.txt", data=b"made on Monday")
    drawn = draw(tmp_path)
    assert (drawn.outcome, drawn.image, drawn.stage) == (Outcome.OK, JPEG, None)
    assert drawn.details == {"file": "a1.JPEG"}


@pytest.mark.parametrize(
    ("given", "files", "none"),
    [
        ({"system": "4o"}, [f"{SPLIT}/4o/a1.png"], [f"{SPLIT}/lumen/a2.png", "a2.png"]),
        (
            {"layout": "generated"},
            [f"lumen/{SPLIT}/a1/gen_0.png"],
            [f"lumen/{SPLIT}/a1/gen_1.png", f"lumen/{SPLIT}/a2/gen_1.png"],
        ),
        ({"layout": "flat"}, ["a1.png"], [f"{SPLIT}/a2.png"]),
    ],
    ids=["autoeval", "generated", "flat"],
)
def test_each_layout_has_its_place(given: Any, files: list[str], none: Any, tmp_path: Path) -> None:
    put(tmp_path, *files)
    put(tmp_path, *none, data=JPEG)
    assert system_of(tmp_path, **given).preflight() is None
    assert draw(tmp_path, **given).image == PNG
    for other in ("a2", f"../{SPLIT}/a1"):
        assert draw(tmp_path, other, **given).code == "no_file"
    in_other_split = draw(tmp_path, "a1", "image_to_image", **given)
    assert in_other_split.image == (PNG if given == {"layout": "flat"} else None)


def test_another_ids_file_is_never_taken(outputs: Path, tmp_path: Path) -> None:
    """An id is neither a pattern nor a path."""
    put(outputs, "a10.png", "a1.b.png", "a1", "A1.png", "a2.png")
    drawn = draw(tmp_path)
    assert (drawn.outcome, drawn.stage, drawn.code) == ("failed", "request", "no_file")
    assert "'text_to_image/lumen/a1.png'" in str(drawn.text)
    for other in ("*", "a?", "[a]2", "../lumen/a2", "a2/../a2", "x" * 300):
        assert draw(tmp_path, other).code == "no_file"


def test_a_file_that_cannot_be_taken_is_named(outputs: Path, tmp_path: Path) -> None:
    put(outputs, "a1.png", "a1.jpg")
    put(outputs, "a2.png", "a3.html", data=b"<html>")
    put(outputs, "a4.png", data=PNG[:-30])
    with (outputs / "a5.png").open("wb") as file:
        file.write(PNG)
        file.truncate(MAX_IMAGE_BYTES + 1)
    two, *bad, large = (draw(tmp_path, f"a{number}") for number in range(1, 6))
    assert (two.outcome, two.stage, two.code) == ("failed", "answer", "several_files")
    assert "'a1.jpg', 'a1.png'" in str(two.text)
    for one, name in zip(bad, ("a2.png", "a3.html", "a4.png"), strict=True):
        assert (one.outcome, one.code, one.image) == ("failed", "bad_picture", None)
        assert str(one.text).startswith(f"'{name}'")
        assert "\n" not in str(one.text)
    assert large.text == f"'a5.png': more than {MAX_IMAGE_BYTES} bytes"


def test_links_and_pipes_lead_nowhere(outputs: Path, tmp_path: Path) -> None:
    (outputs / "a1.png").symlink_to(outside(tmp_path))
    (outputs / "a2.png").symlink_to(outputs / "kept.png")
    put(outputs, "kept.png")
    (outputs / "a3.png").symlink_to("a3.png")
    os.mkfifo(outputs / "a4.png")
    (outputs / "a5.png").mkdir()
    codes = [draw(tmp_path, f"a{number}").code for number in range(1, 6)]
    regular = "no_regular_file"
    assert codes == ["outside", None, "no_picture_file", regular, regular]


# Manifests and tables.


def test_a_manifest_says_what_became_of_a_sample(outputs: Path, tmp_path: Path) -> None:
    """A refusal counts against a system; one that a retired model never got retires no other."""
    write_manifest(
        outputs,
        {"sample_id": "a1", "outcome": "refused", "stage": "output", "text": "No.", "code": "7"},
        {"sample_id": "a2", "seed": 3, "revised_prompt": "a red kite", "model": "lumen-1"},
        {"sample_id": "a3", "file": "7/output.png", "cost_usd": 0.04},
        {"sample_id": "a4"},
        {"sample_id": "a5", "outcome": "retired", "stage": "request"},
    )
    put(outputs, "a1.png", "a2.png", "7/output.png")
    first, second, third, fourth, gone, last = (draw(tmp_path, f"a{n}") for n in range(1, 7))
    assert (first.outcome, first.stage) == (Outcome.REFUSED, OutcomeStage.OUTPUT)
    assert (first.text, first.code, first.image) == ("No.", "7", None)
    assert first.details == {"files_not_used": ["a1.png"]}
    assert (second.image, second.seed, second.revised_prompt) == (PNG, 3, "a red kite")
    assert second.model_reported == "lumen-1"
    assert (third.image, third.cost_usd) == (PNG, 0.04)
    assert (fourth.outcome, fourth.stage) == (Outcome.FAILED, OutcomeStage.ANSWER)
    assert (gone.outcome, gone.stage) == (Outcome.RETIRED, OutcomeStage.PREFLIGHT)
    assert (last.outcome, last.stage) == (Outcome.FAILED, OutcomeStage.REQUEST)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('{"sample_id": "a2"', 'line 2 is b\'{"sample_id": "a2"\': expected a JSON object'),
        ('{"sample": "a2"}', "unknown key 'sample'; did you mean 'sample_id'"),
        ('{"outcome": "ok"}', "line 2: sample_id is missing"),
        ('{"sample_id": "a2", "outcome": "fine"}', "outcome is 'fine'"),
        ('{"sample_id": "a1"}', "is about 'a1', as an earlier one is"),
        ('{"sample_id": "a2", "file": "/etc/a.png"}', "below the folder of the manifest"),
        ('{"sample_id": "a2", "file": "../a.png"}', "below the folder of the manifest"),
    ],
)
def test_a_bad_line_of_a_list_is_named(line: str, text: str, outputs: Path, tmp_path: Path) -> None:
    (outputs / "manifest.jsonl").write_text(f'{{"sample_id": "a1"}}\n{line}\n')
    system = system_of(tmp_path)
    for ask in (system.preflight, lambda: draw(tmp_path), system.signature):
        assert text in said_by(GenerationError, ask)


TABLE: dict[str, Any] = {"layout": "flat", "table": "images.csv"}


def test_a_table_alone_says_which_file_is_of_which_sample(tmp_path: Path) -> None:
    put(tmp_path, "x/7.png", "a2.png")
    text = "\ufeffpath,id,note\r\nx/7.png,a1,\r\n"
    (tmp_path / "images.csv").write_text(text, "utf-8", newline="")
    assert draw(tmp_path, "a1", **TABLE).image == PNG
    assert draw(tmp_path, "a2", **TABLE).code == "no_file"
    before = system_of(tmp_path, **TABLE).signature()
    put(tmp_path, "a2.png", data=JPEG)
    assert system_of(tmp_path, **TABLE).signature() == before
    put(tmp_path, "x/7.png", data=JPEG)
    assert system_of(tmp_path, **TABLE).signature() != before


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"sample,path\na1,x.png\n", "expected but not found: ['id']): expected a manifest, or"),
        (b"", "No columns to parse"),
        (b"id,path\na1,x.png\na1,y.png\n", "line 3 is about 'a1', as an earlier one is"),
        (b"id,path\na1,../x.png\n", "below the folder"),
        (b"id,path\n,x.png\n", "line 2: sample_id is ''"),
        (b"id,path\na1,\xff.png\n", "'utf-8' codec"),
        (b'id,path\na1,"x', "EOF inside string"),
        (None, "expected a manifest, or a CSV with the columns id and path"),
        ("link", "leads out of its folder"),
    ],
)
def test_a_table_that_cannot_be_read_is_one_line(data: Any, text: str, tmp_path: Path) -> None:
    put(tmp_path, "a.png")
    if isinstance(data, str):
        (tmp_path / "images.csv").symlink_to(outside(tmp_path, b"swordfish"))
    elif data is not None:
        put(tmp_path, "images.csv", data=data)
    said = said_by(GenerationError, draw, tmp_path, **TABLE)
    assert text in said
    assert "swordfish" not in said


# What a config says.


def test_preflight_wants_an_output(outputs: Path, tmp_path: Path) -> None:
    with pytest.raises(GenerationError, match=r"no file 'SPLIT/lumen/ID.png' in .*'text_to_image'"):
        system_of(tmp_path).preflight()
    with pytest.raises(GenerationError, match="which has nothing"):
        system_of(tmp_path / "nowhere").preflight()
    write_manifest(outputs, {"sample_id": "a1", "outcome": "refused"})
    assert system_of(tmp_path).preflight() is None
    (outputs / "manifest.jsonl").unlink()
    put(outputs, "a1.png")
    assert system_of(tmp_path).preflight() is None
    with pytest.raises(GenerationError, match="table goes with layout: flat"):
        system_of(tmp_path, table="images.csv")


def test_a_copied_folder_has_the_same_signature(outputs: Path, tmp_path: Path) -> None:
    put(outputs, "a1.png")
    shutil.copytree(tmp_path / SPLIT, tmp_path / "copy" / SPLIT, copy_function=shutil.copyfile)
    system = system_of(tmp_path)
    assert system.signature() == system_of(tmp_path / "copy").signature() == system.signature()
    assert str(tmp_path) not in repr(system.signature())
    put(tmp_path, f"{SPLIT}/other/a1.png", data=JPEG)
    assert system_of(tmp_path).signature() == system.signature()


def test_a_changed_folder_has_another_signature(outputs: Path, tmp_path: Path) -> None:
    put(outputs, "a1.png", "a2.png", "7/output.png")
    write_manifest(outputs, {"sample_id": "a3", "file": "7/output.png"})
    changes: list[Callable[[], object]] = [
        lambda: put(outputs, "a1.png", data=PNG[:-1] + b"\x00"),
        lambda: (outputs / "a1.png").rename(outputs / "a4.png"),
        lambda: put(outputs, "a5.png"),
        (outputs / "a4.png").unlink,
        lambda: put(outputs, "7/output.png", data=JPEG),
    ]
    seen = [system_of(tmp_path).signature()["files"]]
    for change in changes:
        change()
        seen.append(system_of(tmp_path).signature()["files"])
    assert len(set(seen)) == len(seen)


def test_a_signature_opens_only_what_may_be_an_image(outputs: Path, tmp_path: Path) -> None:
    secret = outside(tmp_path)
    os.mkfifo(outputs / "pipe")
    (outputs / "link").symlink_to(secret)
    write_manifest(
        outputs, {"sample_id": "a1", "file": "pipe"}, {"sample_id": "a2", "file": "link"}
    )
    before = system_of(tmp_path).signature()
    secret.write_bytes(JPEG)
    assert system_of(tmp_path).signature() == before
    (outputs / "link").unlink()
    put(outputs, "link", data=JPEG)
    assert system_of(tmp_path).signature() != before


@pytest.mark.parametrize(
    ("given", "file"),
    [
        ({}, f"{SPLIT}/lumen/a1.1.png"),
        ({"layout": "generated"}, f"lumen/{SPLIT}/a1/gen_1.png"),
        ({"layout": "flat"}, "a1.1.png"),
    ],
    ids=["autoeval", "generated", "flat"],
)
def test_another_draw_is_the_file_with_its_number(given: Any, file: str, tmp_path: Path) -> None:
    put(tmp_path, file)
    system, task = system_of(tmp_path, **given), Task("a1", "0" * 64, SPLIT, "a kite")
    assert system.draw(replace(task, draw=1)).image == PNG
    for draw in (0, 2, 11):
        missing = system.draw(replace(task, draw=draw))
        assert missing.code == "no_file"
        assert file.replace("1.png", f"{draw}.png") in str(missing.text) or not draw


def test_lines_of_a_manifest_have_a_draw(outputs: Path, tmp_path: Path) -> None:
    put(outputs, "x.png")
    lines = [{"sample_id": "a1", "file": "x.png"}]
    write_manifest(outputs, *lines, {**lines[0], "draw": 3, "outcome": "refused"})
    system, task = system_of(tmp_path), Task("a1", "0" * 64, SPLIT, "a kite")
    assert system.draw(task).outcome is Outcome.OK
    assert system.draw(replace(task, draw=3)).outcome is Outcome.REFUSED
    write_manifest(outputs, {**lines[0], "draw": 3}, {**lines[0], "draw": 3})
    with pytest.raises(GenerationError, match="about 'a1', draw 3, as an earlier one is"):
        system_of(tmp_path).draw(task)
