"""A run is scored by real networks, a tiny ViT and a tiny pack of faces, by its config."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import yaml
from PIL import Image

from echo_hf.judging.score import score
from echo_hf.tables import OUTPUTS
from tests.judging.run_for_tests import output, put, root, run, write
from tests.metrics.test_ocr_accuracy import written
from tests.metrics.tiny_face_pack import cosine, drawn, write_pack
from tests.metrics.vit_for_tests import TINY, distance_of, weights_of, write_vit

pytestmark = pytest.mark.extras
REASON = "needs torch, transformers, onnx and insightface: see `make test-extras`"
for package in ("torch", "transformers", "onnx", "insightface"):
    pytest.importorskip(package, reason=REASON)

FACE = ((250, 90, 20), (240, 110, 30), (230, 60, 10), (255, 120, 40))
OTHER = ((250, 20, 60), (240, 90, 10), (255, 10, 20), (230, 60, 90))


def encoded(image: Image.Image) -> bytes:
    sink = io.BytesIO()
    image.save(sink, "PNG")
    return sink.getvalue()


@pytest.mark.filterwarnings("ignore:Please import from onnx:DeprecationWarning")
def test_networks_named_beside_the_config_measure_every_system(tmp_path: Path) -> None:
    """Numbers by hand; the file can be read as JSON, and names no folder of this machine."""
    given, made = drawn({(1, 1): FACE}), drawn({(1, 2): OTHER})
    config = run(tmp_path, {"portrait": [encoded(given)]}, ())
    weights = weights_of(TINY)
    write_vit(tmp_path / "vit", TINY, weights)
    write_pack(tmp_path / "faces")
    settings = yaml.safe_load(config.read_text("utf-8"))
    settings["metrics"] = {
        "structure_distance": {"model": "vit", "layer": 2, "size": TINY.side, "device": "cpu"},
        "face_identity": {"pack": "faces", "det_size": 128},
    }
    config.write_text(yaml.safe_dump(settings), "utf-8")
    images = {"copy": given, "other": made}
    rows = [
        output("portrait", system, [encoded(given)], image=put(tmp_path, encoded(image)))
        for system, image in images.items()
    ]
    write(tmp_path, OUTPUTS, rows)

    score(config, runs=tmp_path / "runs", n_boot=20)

    text = (root(tmp_path) / "results.json").read_text("utf-8")
    values = {(row["metric"], row["system"]): row["value"] for row in json.loads(text)["results"]}
    assert values["face_identity", "copy"] == pytest.approx(1, abs=1e-5)
    assert values["face_identity", "other"] == pytest.approx(cosine(FACE, OTHER), abs=1e-2)
    assert values["structure_distance", "copy"] == pytest.approx(0, abs=1e-9)
    expected = distance_of(weights, TINY, 2, given, made)
    assert values["structure_distance", "other"] == pytest.approx(expected, abs=1e-5)
    assert str(tmp_path) not in text


def test_text_is_read_where_a_config_asks_for_it(tmp_path: Path) -> None:
    """Of what the prompt quotes, one system drew all, the other a word."""
    pytest.importorskip("rapidocr", reason="needs the extra `ocr`")
    words = 'a sign that says "OPEN UNTIL MIDNIGHT"'
    config = run(tmp_path, {}, [words])
    settings = yaml.safe_load(config.read_text("utf-8"))
    settings["metrics"] = {"ocr_accuracy": {"min_confidence": 0.4}}
    config.write_text(yaml.safe_dump(settings), "utf-8")
    drawings = {"whole": ["OPEN UNTIL", "MIDNIGHT"], "part": ["MIDNIGHT"]}
    rows = [
        output(words, system, image=put(tmp_path, encoded(written(lines))))
        for system, lines in drawings.items()
    ]
    write(tmp_path, OUTPUTS, rows)
    results = score(config, runs=tmp_path / "runs", n_boot=0).results
    read = {row.system: row for row in results if row.metric == "ocr_accuracy"}
    assert read["whole"].value == 1
    assert read["part"].value == pytest.approx(8 / 17)  # letters of the string
    definition = read["whole"].definition
    assert isinstance(definition, dict)
    assert definition["min_confidence"] == 0.4
