"""Wheel and sdist are complete, and what a user installs runs away from the sources."""

from __future__ import annotations

import json
import subprocess
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.package.blocks import Environment
from tests.package.conftest import INSTALL, Quickstart, build, checked, empty_environment
from tests.stages_for_tests import ROOT

pytestmark = pytest.mark.package
LOADED = """
import json
from datasets import load_dataset
splits = ("image_to_image", "text_to_image", "analysis")
rows = {one: load_dataset("runs/quickstart/release", one, split="test") for one in splits}
sizes = [image.size for row in rows["image_to_image"] for image in row["input_images"]]
print(json.dumps({"rows": {one: len(each) for one, each in rows.items()}, "smallest": min(sizes)}))
"""
PLACES = """
import json, echo_hf, evaluate
from echo_hf.config.systems import shipped_config
evaluate.load(echo_hf.evaluate_module(), "win_rate")
print(json.dumps([echo_hf.__file__, echo_hf.evaluate_module(), str(shipped_config())]))
"""


def content(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel, by name."""
    with zipfile.ZipFile(wheel) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def files(folder: str) -> set[str]:
    """The files below a folder of the checkout, by their paths there."""
    found = (path for path in (ROOT / folder).rglob("*") if path.is_file())
    return {str(path.relative_to(ROOT)) for path in found if path.parent.name != "__pycache__"}


def test_an_index_would_take_both(wheel: Path) -> None:
    """Their metadata are valid, and the README can be shown."""
    both = [str(path) for path in wheel.parent.iterdir()]
    assert sorted(Path(one).suffix for one in both) == [".gz", ".whl"]
    checked("-m", "twine", "check", "--strict", *both)


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    """Code and data, the shipped configs and the card's template; no tests, no scripts."""
    about = f"echo_hf-{version('echo-hf')}.dist-info/"
    found = {name for name in content(wheel) if not name.startswith(about)}
    shipped = {f"echo_hf/{name}" for name in files("eval_configs")}

    assert found == files("echo_hf") | shipped | {"echo_hf/dataset_card/card.md"}
    assert {
        "echo_hf/py.typed",
        "echo_hf/config/config.schema.json",
        "echo_hf/eval_configs/quickstart.yaml",
        "echo_hf/hub/metric_space/echo.py",
        "echo_hf/quickstart/pictures/fox_teal.png",
    } <= found


def test_the_sdist_gives_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """Byte for byte what the checkout gives."""
    assert content(wheel) == content(build(tmp_path, "--wheel"))


def test_the_quickstart_runs_from_the_wheel(quickstart: Quickstart) -> None:
    """It says where the release and the report are, and writes nothing beside its runs."""
    printed = " ".join(quickstart.printed.split())
    assert "runs/quickstart/report/index.html" in printed
    assert (quickstart.folder / "runs/quickstart/report/index.html").is_file()
    assert [path.name for path in quickstart.folder.iterdir()] == ["runs"]


def check_release_loads(environment: Environment, quickstart: Quickstart) -> None:
    """As many rows of each split as the manifest says, with images that can be opened."""
    release = quickstart.folder / "runs/quickstart/release"
    configs = json.loads((release / "manifest.json").read_text("utf-8"))["configs"]
    done = environment.run(["python", "-c", LOADED], quickstart.folder)

    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout)
    assert loaded["rows"] == {name: configs[name]["rows"] for name in loaded["rows"]}
    assert min(loaded["smallest"]) > 0


def test_load_dataset_reads_the_release(installed: Environment, quickstart: Quickstart) -> None:
    check_release_loads(installed, quickstart)


@pytest.mark.parametrize("datasets_version", ["2.21", "3.6", "4.4"])
def test_older_versions_of_datasets_read_the_release(
    datasets_version: str, quickstart: Quickstart, tmp_path: Path
) -> None:
    """Whoever only loads a release needs neither this package nor a new `datasets`."""
    environment = empty_environment(tmp_path)
    command = [str(environment.bin / "python"), *INSTALL, f"datasets=={datasets_version}.*"]
    done = subprocess.run([*command, "pillow"], capture_output=True, text=True, check=False)
    if "No matching distribution" in done.stderr or "NewConnectionError" in done.stderr:
        pytest.skip(f"no index here has datasets {datasets_version}")
    assert done.returncode == 0, done.stderr
    check_release_loads(environment, quickstart)


def test_everything_is_found_in_the_installed_package(
    installed: Environment, tmp_path: Path
) -> None:
    """Nothing is read from the checkout: code, the metric, the shipped configs."""
    told = installed.run(["python", "-c", PLACES], tmp_path)

    assert told.returncode == 0, told.stderr
    for place in json.loads(told.stdout):
        assert Path(place).is_relative_to(installed.bin.parent)
