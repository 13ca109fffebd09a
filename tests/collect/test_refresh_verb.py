"""`echo-hf refresh`: it says what is gone, and forgets it only when it is told to."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from echo_hf.builder.build import run_until
from echo_hf.cli import app
from echo_hf.collect.crawl import crawl_posts
from echo_hf.errors import RunError
from echo_hf.pipeline.run_folder import RunFolder
from tests.collect.platforms.crawling import HURRIED, config_of
from tests.collect.platforms.serving import Serve
from tests.collect.platforms.simulated import ENTRY_POINTS, World
from tests.progress_for_tests import Heard

HONEST = ENTRY_POINTS.replace(
    "tests.collect.platforms.simulated:Simulated\n", "tests.collect.test_refresh:Honest\n"
)


def test_it_asks_and_forgets_when_told_to(serve: Serve, tmp_path: Path) -> None:
    """Without --apply nothing changes; most posts gone needs another word; then they are gone."""
    about = tmp_path / "plugin" / "simulated-1.dist-info" / "entry_points.txt"
    about.write_text(HONEST)
    service, config, runs = serve(World.of(60, seed=1)), config_of(), tmp_path / "runs"
    folder = RunFolder(runs / config.name)
    crawl_posts(config, folder, Heard(), patience=HURRIED)
    run_until(config, "collect", runs=runs)
    file = tmp_path / "c.yaml"
    file.write_text(yaml.safe_dump(config.model_dump(mode="json", exclude_unset=True)))
    service.world.deleted |= set(service.world.posts)

    def says(*more: str) -> str:
        given = ["refresh", str(file), "--runs", str(runs), "--older-than", "0", *more]
        return CliRunner().invoke(app, given, catch_exceptions=False).output

    assert "deleted: removed by its author or the platform" in says()
    with pytest.raises(RunError, match="most posts of simulated are said to be gone"):
        says("--apply")
    assert (folder.root / "stages").exists()
    assert "forgotten:" in says("--apply", "--however-many")
    assert not (folder.root / "stages").exists()


@pytest.mark.parametrize("hours", ["-1", "nan", "inf", "1e300"])
def test_hours_that_are_none_are_refused(tmp_path: Path, hours: str) -> None:
    """Before any file is read."""
    given = ["refresh", str(tmp_path / "none.yaml"), "--older-than", hours]
    result = CliRunner().invoke(app, given, catch_exceptions=False)

    assert result.exit_code == 2
    assert "--older-than" in result.output
