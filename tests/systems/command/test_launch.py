"""What a config's command is, found out without starting it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from echo_hf.errors import GenerationError
from echo_hf.systems.command import WORKERS, CommandSystem, hidden
from echo_hf.systems.registry import make_system
from tests.systems.command.commands_for_tests import command_config, task_of


def system_with(**parameters: Any) -> CommandSystem:
    """A system with these parameters and no others."""
    return CommandSystem(command_config().model_copy(update={"parameters": parameters}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a worker."""
    (tmp_path / "worker.py").write_text("print('hello')")
    return tmp_path


def test_the_adapter_is_found_by_its_name() -> None:
    """Without starting anything."""
    assert isinstance(make_system(command_config()), CommandSystem)


def test_preflight_starts_nothing(folder: Path) -> None:
    """It passes where all is there, though this worker would end at once."""
    system = system_with(command=[sys.executable, "worker.py"], folder=str(folder))
    assert system.preflight() is None
    with system, pytest.raises(GenerationError):
        system.draw(task_of("kite"))


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"folder": "nowhere"}, "no folder 'nowhere'"),
        ({"command": ["no-such-program"]}, "no program 'no-such-program'"),
        ({"command": ["env/bin/python", "worker.py"]}, "no program 'env/bin/python'"),
        ({"command": [sys.executable, "other.py"]}, "no script 'other.py'"),
        ({"pass_environment": ["NOT_SET_ANYWHERE"]}, "'NOT_SET_ANYWHERE' is not set"),
    ],
)
def test_preflight_says_what_is_missing(
    parameters: dict[str, Any], text: str, folder: Path
) -> None:
    """In one line, before anything is spent."""
    given = {"command": [sys.executable, "worker.py"], "folder": str(folder), **parameters}
    with pytest.raises(GenerationError) as error:
        system_with(**given).preflight()
    assert text in str(error.value)
    assert "\n" not in str(error.value)


def test_a_program_is_looked_for_from_the_folder_on(folder: Path) -> None:
    """As an environment beside the worker is."""
    (folder / "env/bin").mkdir(parents=True)
    (folder / "env/bin/python").symlink_to(sys.executable)
    system = system_with(command=["env/bin/python", "worker.py"], folder=str(folder))
    assert system.preflight() is None


def test_a_shipped_worker_has_a_short_name() -> None:
    """It stands for a file of the package, and a misspelt one for none."""
    system = system_with(command=[sys.executable, "worker:bagel"])
    assert system.preflight() is None
    assert (WORKERS / "bagel.py").is_file()
    with pytest.raises(GenerationError, match="unknown worker 'bagle'; did you mean 'bagel'"):
        system_with(command=[sys.executable, "worker:bagle"])


def test_the_signature_is_the_same_on_another_machine(tmp_path: Path) -> None:
    """Neither the folder nor that of the program goes into it."""
    signatures = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "worker.py").write_text("print('hello')")
        weights = f"/data/{name}/lumen.ckpt/"
        python = f"/{name}/bin/{'python' if name == 'one' else 'python3.12'}"
        system = system_with(
            command=[python, "worker.py", "--fast", "--weights", weights, f"--vae={weights}"],
            folder=str(tmp_path / name),
            environment={"WEIGHTS": weights},
            parameters={"adapters": [{"file": weights}]},
        )
        signatures.append(system.signature())
    assert signatures[0] == signatures[1]
    assert str(tmp_path) not in repr(signatures)
    assert "/data" not in repr(signatures)
    assert repr(signatures[0]).count("lumen.ckpt") == 4


@pytest.mark.parametrize(
    "changed",
    [
        {"command": [sys.executable, "worker.py", "--slow"]},
        {"parameters": {"steps": 31}},
        {"environment": {"STEPS": "5"}},
    ],
)
def test_what_decides_an_image_is_in_the_signature(changed: dict[str, Any], folder: Path) -> None:
    """Each of the parameters that may."""
    given = {
        "command": [sys.executable, "worker.py"],
        "folder": str(folder),
        "parameters": {"steps": 30},
    }
    assert system_with(**given).signature() != system_with(**{**given, **changed}).signature()


@pytest.mark.parametrize(
    "changed", [{"seed": 8}, {"model": "me/other"}, {"size": {"width": 64, "height": 64}}]
)
def test_so_is_the_rest_of_the_config(changed: dict[str, Any]) -> None:
    """Seed, model and size."""
    config = command_config()
    other = type(config)(**{**config.model_dump(), **changed})
    assert CommandSystem(config).signature() != CommandSystem(other).signature()


def test_an_edited_worker_is_noticed(folder: Path) -> None:
    """By its content; a system that was made before keeps its signature."""
    given = {"command": [sys.executable, "worker.py"], "folder": str(folder)}
    before = system_with(**given)
    first = before.signature()
    (folder / "worker.py").write_text("print('hallo')")
    assert system_with(**given).signature() != first
    assert before.signature() == first


@pytest.mark.parametrize(
    "ignored",
    [
        {"workers": 2},
        {"start_timeout_s": 5},
        {"most_restarts": 1},
        {"most_inputs": 3},
        {"pass_environment": ["HTTPS_PROXY"]},
        {"environment": {}},
    ],
)
def test_what_decides_no_image_is_not_in_the_signature(ignored: dict[str, Any]) -> None:
    """How hard the worker is worked."""
    given = {"command": [sys.executable]}
    assert system_with(**given).signature() == system_with(**given, **ignored).signature()


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({}, "command is missing"),
        ({"command": []}, "command is []"),
        ({"command": "python worker.py"}, "command is 'python worker.py'"),
        ({"command": ["python", "w.py\n"]}, "without control characters"),
        ({"command": ["python", "--api-key=sesame"]}, "no secret in a command"),
        ({"command": ["python", "http://me:sesame@host"]}, "no secret in a command"),
        ({"command": ["python"], "environment": {"GIT_TOKEN": "sesame"}}, "'GIT_TOKEN' is one"),
        ({"command": ["python"], "environment": {"A B": "x"}}, "environment"),
        ({"command": ["python"], "workers": 0}, "workers is 0"),
        ({"command": ["python"], "worker": 2}, "did you mean 'workers'"),
        ({"command": ["python"], "parameters": {"day": {1, 2}}}, "what JSON can hold"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, Any], text: str) -> None:
    """In one line."""
    with pytest.raises(GenerationError) as error:
        system_with(**parameters)
    assert text in str(error.value)
    assert "\n" not in str(error.value)


def test_a_key_in_the_environment_is_refused_with_the_config() -> None:
    """A config is kept beside its results."""
    with pytest.raises(ValidationError, match=r"environment\.OPENAI_API_KEY"):
        command_config(environment={"OPENAI_API_KEY": "sesame"})


def test_a_value_that_holds_another_is_hidden_whole() -> None:
    """Whatever the order of the names; what is no secret, or too short for one, is shown."""
    parent = {"A_KEY": "sesame", "B_TOKEN": "sesame-4711", "C_KEY": "1", "MODE": "quickly"}
    for names in (list(parent), list(parent)[::-1]):
        said = hidden(b"1 sesame-4711 sesame quickly", names, parent)
        assert said == b"1 $B_TOKEN $A_KEY quickly"
