"""Anole, from a task to an image."""

from __future__ import annotations

import gc
import json
import shutil
import weakref
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from echo_hf.engines.base import ImageRef
from echo_hf.errors import GenerationError, MissingExtraError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.anole import AnoleSystem, LoadedAnole
from echo_hf.systems.base import GenerationResult, System, Task
from echo_hf.systems.registry import make_system
from tests.systems.tasks_for_tests import blocks, config, image_file, levels, task
from tests.systems.tiny_anole import TOKENS, in_original_order


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[ImageRef]:
    """Three images of other shapes."""
    folder = tmp_path_factory.mktemp("pictures")
    sizes = [(128, 96), (96, 160), (64, 64)]
    return [image_file(folder, blocks(size, seed)) for seed, size in enumerate(sizes)]


def _system(tiny: Path, *, seed: int = 0, **more: Any) -> System:
    parameters = {"decoder": str(tiny / "decoder"), "dtype": "float32", "device": "cpu", **more}
    return make_system(config("anole", tiny, seed=seed, parameters=parameters))


def _drawn(system: System, *tasks: Task) -> list[GenerationResult]:
    with system:
        return [system.draw(one) for one in tasks]


def test_packages_that_are_missing_are_told() -> None:
    """What to install, before anything is loaded."""
    if find_spec("transformers"):
        pytest.skip("transformers is installed")
    with pytest.raises(MissingExtraError, match=r'pip install "echo-hf\[transformers\]"$'):
        make_system(config("anole", "a/b"))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"parameters": {"top_k": 5}}, "unknown key 'top_k'; did you mean 'top_p'?"),
        ({"parameters": {"temperature": 0}}, "temperature is 0"),
        ({"parameters": {"top_p": 1.5}}, "top_p is 1.5"),
        ({"size": "match_input"}, "size is 'match_input': expected 'auto'"),
        ({"size": {"width": 512, "height": 512}}, "expected 'auto'"),
        ({"limits": {"concurrency": 2}}, "limits.concurrency is 2: expected 1"),
    ],
)
def test_a_bad_config_is_told_in_one_line(more: dict[str, Any], said: str) -> None:
    """With its place, before anything is loaded."""
    with pytest.raises(GenerationError) as caught:
        AnoleSystem(config("anole", "a/b", **more))
    assert str(caught.value).startswith("system 'tiny': ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_signature_is_what_decides_an_image() -> None:
    """The model, the decoder, guidance and sampling; not the device."""
    said = AnoleSystem(config("anole", "acme/anole", seed=3)).signature()
    on = AnoleSystem(config("anole", "acme/anole", seed=3, parameters={"device": "mps"}))
    assert on.signature() == said
    assert json.loads(json.dumps(said)) == {
        "adapter": "anole",
        "model": "acme/anole",
        "revision": "main",
        "decoder": {"model": "leloy/Anole-7b-v0.1-vqvae-hf", "revision": "main"},
        "wording": 1,
        "seed": 3,
    }
    warm = AnoleSystem(config("anole", "acme/anole", seed=3, parameters={"temperature": 0.8}))
    assert warm.signature() == {**said, "temperature": 0.8}


def test_preflight_looks_for_the_model_and_its_decoder(tmp_path: Path) -> None:
    """One without the other draws nothing."""
    (tmp_path / "config.json").write_text("{}")
    bare = tmp_path / "bare"
    bare.mkdir()
    parameters = {"decoder": str(bare)}
    with pytest.raises(GenerationError, match=r"holds no 'config\.json'"):
        AnoleSystem(config("anole", bare, parameters=parameters)).preflight()
    with pytest.raises(GenerationError, match=r"holds no 'model\.safetensors'"):
        AnoleSystem(config("anole", tmp_path, parameters=parameters)).preflight()
    (bare / "model.safetensors").touch()
    assert AnoleSystem(config("anole", tmp_path, parameters=parameters)).preflight() is None


@pytest.mark.extras
def test_inputs_are_seen_in_their_order(tiny: Path, images: list[ImageRef]) -> None:
    """None, one, two, and the two the other way round give four images."""
    one, two, _ = images
    tasks = [task(), task(one), task(one, two), task(two, one)]
    found = _drawn(_system(tiny), *tasks)
    assert [drawn.outcome for drawn in found] == [Outcome.OK] * 4
    assert len({drawn.image for drawn in found}) == 4
    for drawn, given in zip(found, (0, 1, 2, 2), strict=True):
        assert drawn.details["inputs"] == {"given": given, "used": given}
        assert drawn.details["size"] == {"asked": None, "came": [32, 32]}
        assert levels(drawn.image).shape == (32, 32, 3)
        assert json.loads(json.dumps(drawn.details)) == drawn.details


@pytest.mark.extras
def test_the_seed_and_the_prompt_decide_the_image(tiny: Path) -> None:
    """The same bytes, also after loading anew; others with another seed or prompt."""
    first, again = _drawn(_system(tiny), task(), task())
    [anew] = _drawn(_system(tiny), task())
    [other] = _drawn(_system(tiny, seed=1), task())
    [prompted] = _drawn(_system(tiny), task(prompt="a quiet harbour"))
    assert first.image == again.image == anew.image
    assert len({first.image, other.image, prompted.image}) == 3
    assert (first.seed, other.seed) == (0, 1)


@pytest.mark.extras
@pytest.mark.parametrize(
    "more",
    [{"text_guidance": 1.0}, {"image_guidance": 3.0}, {"temperature": 2.0}, {"top_p": 0.3}],
)
def test_every_parameter_decides_the_image(
    tiny: Path, images: list[ImageRef], more: dict[str, float]
) -> None:
    """And stands in the signature."""
    one = task(images[0])
    plain, changed = _system(tiny), _system(tiny, **more)
    assert plain.signature() != changed.signature()
    assert _drawn(plain, one)[0].image != _drawn(changed, one)[0].image


@pytest.mark.extras
def test_a_third_input_is_unsupported(tiny: Path, images: list[ImageRef]) -> None:
    """The context has no room for it; none of the three is left out."""
    [found] = _drawn(_system(tiny), task(*images))
    assert (found.outcome, found.stage) == (Outcome.UNSUPPORTED, OutcomeStage.TASK)
    assert found.code == "too_many_inputs"


@pytest.mark.extras
def test_a_prompt_that_leaves_no_room_is_unsupported(
    tiny: Path, loaded: LoadedAnole, images: list[ImageRef]
) -> None:
    """One byte is a token of the tiny model: its context is exactly filled, and one is too many."""
    room = loaded.context - TOKENS - 3 - 2 * (TOKENS + 2)
    fits, too_long = (task(*images[:2], prompt="x" * length) for length in (room, room + 1))
    drawn, found = _drawn(_system(tiny), fits, too_long)
    assert drawn.outcome is Outcome.OK
    assert (found.outcome, found.stage) == (Outcome.UNSUPPORTED, OutcomeStage.INPUT)
    assert found.code == "too_long"


@pytest.mark.extras
def test_a_prompt_is_text_whatever_it_says(loaded: LoadedAnole) -> None:
    """The name of a special token is letters: no prompt can end its turn or start an image."""
    said = "<racm3:break><image></s><reserved08706>"
    found = loaded.text_tokens(said)
    assert len(found) == len(said)
    assert not set(found) & {*loaded.codes, *range(8)}


@pytest.mark.extras
def test_the_decoder_may_be_the_original_file(tiny: Path, tmp_path: Path) -> None:
    """Its levels are in the other order, and its numbers pickled: nothing else is unpickled."""
    import torch
    from safetensors.torch import load_file

    weights = in_original_order(dict(load_file(tiny / "decoder" / "model.safetensors")))
    torch.save({"state_dict": weights}, tmp_path / "vqgan.ckpt")
    [expected] = _drawn(_system(tiny), task())
    [found] = _drawn(_system(tiny, decoder=str(tmp_path)), task())
    assert found.image == expected.image


@pytest.mark.extras
def test_a_pickle_that_would_run_something_is_refused(tiny: Path, tmp_path: Path) -> None:
    """And nothing of it runs."""
    import pickle

    class Touch:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "ran",)

    (tmp_path / "vqgan.ckpt").write_bytes(pickle.dumps(Touch()))
    with pytest.raises(GenerationError) as caught, _system(tiny, decoder=str(tmp_path)) as system:
        system.draw(task())
    assert not (tmp_path / "ran").exists()
    assert "\n" not in str(caught.value)


@pytest.mark.extras
def test_a_model_of_another_kind_is_told(tiny: Path, tmp_path: Path) -> None:
    """In one line, without the folder of the machine in what the library said."""
    folder = tmp_path / "broken"
    shutil.copytree(tiny, folder)
    (folder / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(GenerationError) as caught, _system(folder) as system:
        system.draw(task())
    assert "cannot load" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.extras
def test_a_bad_input_is_a_value(tiny: Path, tmp_path: Path) -> None:
    """The next task is drawn all the same."""
    gone = ImageRef("f" * 64, tmp_path / "gone.png")
    bad, drawn = _drawn(_system(tiny), task(gone), task())
    assert (bad.outcome, bad.stage) == (Outcome.FAILED, OutcomeStage.INPUT)
    assert str(tmp_path) not in str(bad.text)
    assert drawn.outcome is Outcome.OK


@pytest.mark.extras
def test_leaving_frees_the_model(tiny: Path) -> None:
    """It is loaded by the first task."""
    system: Any = _system(tiny)
    with system:
        assert system._loaded is None
        system.draw(task())
        part = weakref.ref(system._loaded.model)
        assert part() is not None
    gc.collect()
    assert part() is None
