"""An engine is asked where drawn images lie, and its answers tell how it names places."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from echo_hf.builder.gold.boxes import INPUT, OUTPUT, SIZES, check_boxes
from echo_hf.config.checks import EngineChoice
from echo_hf.engines.base import Completion, ImageRef, Request, register
from echo_hf.engines.pixels import PixelBudget, fit_size
from echo_hf.errors import ConfigError
from tests.test_cli import echo_hf

KIND = "pointing"
Numbers = list[float]
# By hand, of a box in parts of the sides and the size of the image that was sent.
SCALES: dict[str, Callable[[int, int], Numbers]] = {
    "rel_1000": lambda *_: [1000] * 4,
    "rel_1": lambda *_: [1] * 4,
    "abs_resized": lambda wide, high: [wide, high] * 2,
}


def told(box: Sequence[float], size: Sequence[int], convention: str) -> Numbers:
    left, top, right, bottom = box
    if convention == "rel_1000_yx":
        return [1000 * top, 1000 * left, 1000 * bottom, 1000 * right]
    if convention == "half the pixels":
        return [number / 2 for number in told(box, size, "abs_resized")]
    if convention == "nowhere":
        return [3, 3, 9, 9]
    return [at * scale for at, scale in zip(box, SCALES[convention](*size), strict=True)]


@dataclass
class Pointing:
    """Draws boxes where the images are, a little off, and names them in its own way."""

    convention: str
    pixels: list[int] | None = None
    mutely: int = 0  # of how many images it says nothing
    stored = True
    asked: list[Request] = field(default_factory=list)

    def signature(self) -> Mapping[str, Any]:
        return {"kind": KIND, "model": "some-reader", "pixels": self.pixels, "way": self.convention}

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        for number, request in enumerate(requests):
            self.asked.append(request)
            (image,) = [one for one in request.messages[-1].parts if isinstance(one, ImageRef)]
            with Image.open(image.file) as opened:
                size = opened.size
            if self.pixels:
                size = fit_size(size, PixelBudget(*self.pixels))
            off = [
                [0.004 + left, top - 0.003, right, 0.002 + bottom]
                for left, top, right, bottom in (INPUT, OUTPUT)
            ]
            boxes = [[told(box, size, self.convention)] for box in off]
            said = {"prompt": "make it blue", "inputs": boxes[0], "outputs": boxes[1]}
            if number < self.mutely:
                said |= {"inputs": [], "outputs": []}
            yield number, Completion(json.dumps(said))

    def __enter__(self) -> Pointing:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def checked(engine: Pointing, folder: Path, **more: Any) -> Any:
    register(KIND)(lambda **_: engine)
    return check_boxes(engine=EngineChoice(kind=KIND, model="some-reader", **more), runs=folder)


@pytest.mark.parametrize("convention", [*SCALES, "rel_1000_yx"])
def test_the_convention_that_a_model_answers_in_is_told(convention: str, tmp_path: Path) -> None:
    """Whatever it was asked for: it was asked for thousandths with x first."""
    engine = Pointing(convention)
    found = checked(engine, tmp_path)
    assert found.convention == convention
    assert (found.asked, found.is_assumed) == ("rel_1000", True)
    assert (found.images, found.answered) == (3, 3)
    assert found.shared[convention] > 0.9
    assert max(share for name, share in found.shared.items() if name != convention) < 0.5
    assert {one.task for one in engine.asked} == {"screenshots"}


def test_pixels_are_those_of_the_image_that_the_engine_sends(tmp_path: Path) -> None:
    most = min(width * height for width, height in SIZES) // 4
    engine = Pointing("abs_resized", [28, 3136, most])
    assert checked(engine, tmp_path / "one").convention == "abs_resized"
    server = Pointing("half the pixels")  # one that resizes images, and does not say so
    assert checked(server, tmp_path / "two").convention is None


@pytest.mark.parametrize(
    "engine", [Pointing("nowhere"), Pointing("rel_1", mutely=2)], ids=["no", "mute"]
)
def test_what_fits_none_or_too_few_images_cannot_be_told(engine: Pointing, tmp_path: Path) -> None:
    assert checked(engine, tmp_path).convention is None


def test_what_its_config_says_is_what_it_is_asked_for(tmp_path: Path) -> None:
    found = checked(Pointing("rel_1"), tmp_path, coordinates="rel_1")
    assert (found.asked, found.is_assumed, found.convention) == ("rel_1", False, "rel_1")


def test_who_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="engine 'rules' of stage 'screenshots' is no model"):
        check_boxes(engine=EngineChoice(kind="rules"), runs=tmp_path)


def test_the_command_says_what_to_write(tmp_path: Path) -> None:
    register(KIND)(lambda **_: Pointing("rel_1000_yx"))
    given = ("check-engine", "--engine", KIND, "--model", "some-reader", "--boxes")
    shown = echo_hf(*given, cwd=tmp_path)
    assert "it answers in rel_1000_yx" in shown.stdout
    assert "next: coordinates: rel_1000_yx" in shown.stdout
    read = json.loads(echo_hf(*given, "--json", cwd=tmp_path).stdout)
    assert (read["convention"], read["answered"]) == ("rel_1000_yx", 3)
    refused = echo_hf(*given, "--stage", "roles", cwd=tmp_path)
    assert refused.returncode == 2
    assert "leave out --gold, --stage and --errors" in refused.stderr


def test_no_image_is_alike_in_two_conventions() -> None:
    """Where 1,000 is near a side, thousandths are pixels."""
    for size in SIZES:
        for side in size:
            assert abs(side / 1000 - 1) > 0.1
