"""A metric of a plug-in with real networks, on the faces of two women in uniform.

Both pictures are in the public domain: scikit-image ships Eileen Collins by NASA, and matplotlib
Grace Hopper by the US Navy.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image, ImageOps

from echo_hf.errors import WeightsError
from echo_hf.metrics import MetricResult
from echo_hf.tables import OUTPUTS
from tests.judging import run_for_tests as small

pytestmark = pytest.mark.extras

PLUGIN = "dlib_face_plugin"
# "If the distance is less than 0.6": face_recognition.py among the examples of dlib.
SAME_PERSON = 0.6
COLLINS_FACE = (175, 76, 266, 167)  # left, top, right, bottom
HOPPER_FACE = (180, 139, 367, 326)


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, imported in a test, so that no other test knows its metric."""
    for name in ("dlib", "matplotlib", "skimage"):
        pytest.importorskip(name, reason="comes with locks/extras.txt")
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    return pytest.importorskip(PLUGIN)


@pytest.fixture
def collins() -> Image.Image:
    from skimage import data

    return Image.fromarray(data.astronaut())


@pytest.fixture
def hopper() -> Image.Image:
    from matplotlib.cbook import get_sample_data

    with Image.open(get_sample_data("grace_hopper.jpg", asfileobj=False)) as picture:
        return picture.convert("RGB")


@pytest.fixture
def coffee() -> Image.Image:
    """A picture without a face."""
    from skimage import data

    return Image.fromarray(data.coffee())


def measure(plugin: Any, inputs: Any, outputs: Any, **options: Any) -> MetricResult:
    settings = plugin.FaceDistance.Options(**options)
    names = [str(number) for number in range(len(outputs))]
    metric = plugin.FaceDistance(n_boot=0)
    result: MetricResult = metric.measure(
        inputs, outputs, protocol="corrected", options=settings, names=names
    )
    return result


def recolor(image: Image.Image) -> Image.Image:
    """Make an image warm, as the light of an evening does."""
    levels = np.asarray(image, float) * (1.15, 0.95, 0.7) + (10, 0, -5)
    return Image.fromarray(levels.clip(0, 255).astype(np.uint8))


def swap_channels(image: Image.Image) -> Image.Image:
    red, green, blue = image.split()
    return Image.merge("RGB", (green, blue, red))


def scale(image: Image.Image, factor: float) -> Image.Image:
    return ImageOps.scale(image, factor, Image.Resampling.LANCZOS)


EDITS: dict[str, Callable[[Image.Image], Image.Image]] = {
    "recolored": recolor,
    "other channels": swap_channels,
    "gray": lambda image: image.convert("L"),
    "half the size": lambda image: scale(image, 0.5),
    "enlarged": lambda image: scale(image, 1.6),
    "mirrored": ImageOps.mirror,
    "all at once": lambda image: ImageOps.mirror(scale(recolor(image), 0.6)),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_face_stays_nearer_to_itself_than_to_another_person(
    plugin: Any,
    edit: Callable[[Image.Image], Image.Image],
    collins: Image.Image,
    hopper: Image.Image,
) -> None:
    for person, other in ((collins, hopper), (hopper, collins)):
        result = measure(plugin, [[person], [person]], [edit(person), edit(other)])
        same, different = result.per_sample
        assert same is not None
        assert different is not None
        assert 0 < same < SAME_PERSON < different
        assert result.value == pytest.approx((same + different) / 2)


def test_another_face_in_the_same_clothes_is_another_person(
    plugin: Any, collins: Image.Image, hopper: Image.Image
) -> None:
    """The detector also takes a patch of the suit for a face, which no edit here changes."""
    left, top, right, bottom = COLLINS_FACE
    output = collins.copy()
    output.paste(hopper.crop(HOPPER_FACE).resize((right - left, bottom - top)), (left, top))
    careful, careless = (
        measure(plugin, [[collins]], [output], least_score=score).value for score in (0.5, 0)
    )
    assert careful is not None
    assert careless is not None
    assert careless < SAME_PERSON < careful


def test_the_nearest_pair_of_several_faces_counts(
    plugin: Any, collins: Image.Image, hopper: Image.Image, coffee: Image.Image
) -> None:
    both = Image.new("RGB", (1024, 600))
    both.paste(collins, (0, 0))
    both.paste(hopper, (512, 0))
    result = measure(plugin, [[coffee, hopper], [both]], [both, recolor(hopper)])
    assert all(value is not None and value < SAME_PERSON for value in result.per_sample)


def test_without_two_faces_there_is_a_reason(
    plugin: Any, collins: Image.Image, coffee: Image.Image
) -> None:
    inputs = [[coffee], [collins], [collins], [None], [collins]]
    outputs = [recolor(collins), coffee, None, collins, b"no image"]
    result = measure(plugin, inputs, outputs)
    assert [missing and str(missing.reason) for missing in result.reasons] == [
        "no_face_in_input",
        "no_face_in_output",
        "missing_output",
        "no_input",
        "bad_output",
    ]
    assert (result.value, result.n, result.coverage) == (None, 0, 0)


def test_faces_too_small_are_found_in_an_image_of_twice_the_size(
    plugin: Any, collins: Image.Image
) -> None:
    pictures = [[collins]], [scale(collins, 0.5)]
    without, doubled = (measure(plugin, *pictures, doublings=times) for times in (0, 1))
    assert [str(missing.reason) for missing in without.reasons if missing] == ["no_face_in_output"]
    assert doubled.n == 1


def test_weights_are_known_by_their_bytes(plugin: Any, tmp_path: Path) -> None:
    for content in (None, b"other"):
        if content is not None:
            (tmp_path / plugin.LANDMARKS).write_bytes(content)
        with pytest.raises(WeightsError, match="install face-recognition-models") as refusal:
            plugin.check_weights(tmp_path)
        assert "\n" not in str(refusal.value)


def test_no_code_of_the_package_of_networks_runs(
    plugin: Any, collins: Image.Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, plugin.SHIPPED_IN, raising=False)
    plugin.load_networks.cache_clear()
    assert measure(plugin, [[collins]], [ImageOps.mirror(collins)]).n == 1
    assert plugin.SHIPPED_IN not in sys.modules


def encode(image: Image.Image) -> bytes:
    sink = io.BytesIO()
    image.save(sink, "PNG")
    return sink.getvalue()


@pytest.mark.usefixtures("plugin")
def test_a_config_that_names_the_module_has_the_metric(
    collins: Image.Image, hopper: Image.Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One system edits two people, the other makes each the other."""
    monkeypatch.delitem(sys.modules, PLUGIN)  # as at the first import, which registers it
    people = {"eileen": collins, "grace": hopper}
    inputs = {name: [encode(picture)] for name, picture in people.items()}
    config = small.run(tmp_path, inputs, ())
    settings = yaml.safe_load(config.read_text("utf-8"))
    settings |= {"plugins": [PLUGIN], "metrics": {"face_distance": {"least_score": 0.4}}}
    config.write_text(yaml.safe_dump(settings), "utf-8")
    pictures = {
        ("keeps", "eileen"): recolor(collins),
        ("keeps", "grace"): recolor(hopper),
        ("swaps", "eileen"): ImageOps.mirror(hopper),
        ("swaps", "grace"): ImageOps.mirror(collins),
    }
    rows = [
        small.output(name, system, inputs[name], image=small.put(tmp_path, encode(picture)))
        for (system, name), picture in pictures.items()
    ]
    small.write(tmp_path, OUTPUTS, rows)
    shown = small.called(tmp_path, "score")
    assert shown.exit_code == 0, shown.output
    assert "face_distance ↓" in small.page_of(tmp_path)
    results = json.loads((small.root(tmp_path) / "results.json").read_text("utf-8"))["results"]
    measured = {row["system"]: row for row in results if row["metric"] == "face_distance"}
    assert measured["keeps"]["value"] < SAME_PERSON < measured["swaps"]["value"]
    assert measured["keeps"]["definition"]["least_score"] == 0.4
    assert measured["keeps"]["definition"]["versions"].keys() >= {
        "dlib-bin",
        "face-recognition-models",
    }
