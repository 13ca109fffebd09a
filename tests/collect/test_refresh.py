"""Posts that are gone on their platform are found, once, and leave the run with `forget`."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from echo_hf.builder.build import run_until
from echo_hf.builder.refresh import (
    REFRESH_LEDGER_FILE,
    PlatformRefresh,
    RefreshEnd,
    RefreshLedger,
    refresh,
)
from echo_hf.builder.takedown import forget
from echo_hf.cli import app
from echo_hf.cli.build_view import format_refreshed
from echo_hf.collect.crawl import Patience, crawl_posts
from echo_hf.collect.crawl_ledger import CRAWL_LEDGER_FILE, read_stored_pages
from echo_hf.collect.platforms.base import PLATFORMS, Question, Tariff
from echo_hf.collect.sources.base import Missing
from echo_hf.config.loading import Config
from echo_hf.errors import PlatformError, RunError
from echo_hf.pipeline.run_folder import RunFolder
from tests.collect.platforms.crawling import HURRIED, Serve, config_of
from tests.collect.platforms.simulated import HOST, NAME, Service, Simulated, World, path_of
from tests.progress_for_tests import Heard

AT_ONCE = 7
NOW = datetime.timedelta(0)
MORNING = datetime.datetime(2026, 3, 2, 8, tzinfo=datetime.UTC)
ONE_DAY = {"days": 20, "window": "20d", "terms": ["lumen"]}
Crawled = tuple[Service, Config, list[str]]


class Honest(Simulated):
    tariff = Tariff(usd_per_post=0.0)
    most_refreshed = AT_ONCE

    def gone(self, urls: Sequence[str]) -> Mapping[str, Missing]:
        page = json.loads(self.get(path_of(Question("posts", tuple(names(urls))), None)))
        gone = [f"{HOST}/{one['id']}" for one in page["posts"] if one.get("gone")]
        return dict.fromkeys(gone, Missing.DELETED)


class Dear(Honest):
    tariff = Tariff(usd_per_post=0.01)


class Local(Honest):
    def can_tell(self, url: str) -> bool:
        return int(url.rpartition("p")[2]) % 2 == 0


def names(urls: Sequence[str]) -> list[str]:
    return [url.rpartition("/")[2] for url in urls]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def crawled(serve: Serve, runs: Path) -> Crawled:
    service = serve(World.of(120, seed=3))
    config = config_of(phases=[ONE_DAY])
    crawl_posts(config, RunFolder(runs / config.name), Heard(), patience=HURRIED)
    run_until(config, "collect", runs=runs)
    kept = pq.read_table(runs / config.name / "stages" / "collect" / "kept.parquet")
    return service, config, kept["url"].to_pylist()


def asked(config: Config, runs: Path, watch: Heard | None = None, **more: Any) -> PlatformRefresh:
    make = more.pop("platform", Honest)
    given = {"patience": HURRIED, **more}
    (one,) = refresh(config, watch or Heard(), runs=runs, make=lambda _: make(), **given).platforms
    return one


def test_what_is_deleted_is_found_in_batches_and_not_asked_about_twice_in_a_day(
    crawled: Crawled, runs: Path
) -> None:
    service, config, urls = crawled
    service.world.deleted.update(names(urls)[:5])
    watch = Heard()
    one = asked(config, runs, watch)
    before = service.requests

    assert one.gone == dict.fromkeys(urls[:5], "deleted")
    assert (one.posts, one.asked, one.fresh, one.left) == (len(urls), len(urls), 0, 0)
    assert [done for _, done, *_ in watch.steps] == [
        min(at + AT_ONCE, len(urls)) for at in range(0, len(urls), AT_ONCE)
    ]
    assert watch.steps[-1] == (NAME, len(urls), f"{NAME}: 5 posts are gone", len(urls))
    again = asked(config, runs)
    assert (again.asked, again.fresh, set(again.gone)) == (0, len(urls), set(urls[:5]))
    assert service.requests == before
    service.world.deleted.clear()
    anew = asked(config, runs, older_than=NOW)
    assert (anew.asked, anew.gone) == (len(urls), {})


def test_it_goes_on_where_it_was_stopped(crawled: Crawled, runs: Path) -> None:
    service, config, urls = crawled
    service.world.deleted.update(names(urls)[:3])
    stops_at = service.requests + 3

    def stop(number: int) -> None:
        service.faults = {"/posts": 500} if number >= stops_at else {}

    service.before = stop
    with pytest.raises(
        PlatformError, match=r"simulated does not answer .*: the same command resumes"
    ):
        asked(config, runs, patience=Patience(attempts=2, backoff_s=0.001))
    service.before, service.faults = lambda _: None, {}
    one = asked(config, runs)

    assert one.fresh % AT_ONCE == 0
    assert 0 < one.fresh < len(urls)
    assert one.asked + one.fresh == len(urls)
    assert set(one.gone) == set(urls[:3])


def test_what_a_platform_cannot_tell_counts_as_unknown(crawled: Crawled, runs: Path) -> None:
    _, config, urls = crawled
    even = sum(int(name.removeprefix("p")) % 2 == 0 for name in names(urls))
    for asked_now in (even, 0):
        one = asked(config, runs, platform=Local)

        assert (one.asked, one.fresh) == (asked_now, even - asked_now)
        assert (one.unknown, one.left) == (len(urls) - even, 0)
        assert f"{len(urls) - even:,} it can say nothing about" in "".join(format_refreshed(one))


def test_nobody_is_paid_unasked_or_asked_in_vain(crawled: Crawled, runs: Path) -> None:
    service, config, urls = crawled
    none = asked(config, runs, platform=Simulated)
    assert (none.end, none.gone, none.left) == (RefreshEnd.CANNOT_SAY, {}, len(urls))
    before = service.requests
    for budget, paid in ((0.0, 0), (0.15, 15)):
        one = asked(config, runs, platform=Dear, budget_usd=budget)
        assert (one.asked, one.left, one.end) == (paid, len(urls) - paid, RefreshEnd.NOT_PAID)
        assert paid or service.requests == before
    assert one.cost_usd == pytest.approx(0.15)
    rest = asked(config, runs, platform=Dear, budget_usd=float("inf"))
    assert (rest.asked, rest.fresh, rest.end) == (len(urls) - 15, 15, RefreshEnd.ALL_ASKED)


def test_when_nearly_all_are_gone_something_else_is_wrong(crawled: Crawled, runs: Path) -> None:
    service, config, urls = crawled
    for lost, is_doubtful in ((urls[:-5], True), (urls[:5], False)):
        service.world.deleted = set(names(lost))
        assert asked(config, runs, older_than=NOW).is_doubtful is is_doubtful


def test_what_is_gone_leaves_the_run_and_stays_out(crawled: Crawled, runs: Path) -> None:
    _, config, urls = crawled
    folder = runs / config.name
    kept = folder / "stages" / "collect" / "kept.parquet"
    before = {row["url"]: row["text"] for row in pq.read_table(kept).to_pylist() if row["text"]}
    chosen = list(before)[:4]
    taken = forget(chosen, config, runs=runs)
    bodies = "".join(one.body for one in read_stored_pages(folder / CRAWL_LEDGER_FILE, NAME))

    assert (taken.posts, taken.unknown) == (4, ())
    assert taken.pages > 0
    assert not any(f'"post {name}"' in bodies for name in names(chosen))
    run_until(config, "collect", runs=runs)
    after = {row["url"]: row["text"] for row in pq.read_table(kept).to_pylist() if row["text"]}
    assert after == {url: text for url, text in before.items() if url not in chosen}
    assert asked(config, runs).posts == len(set(urls) - set(chosen))


def test_before_anything_is_collected_it_says_what_to_do(runs: Path, serve: Serve) -> None:
    serve(World.of(3, seed=0))
    with pytest.raises(RunError, match=r"no collected posts in .*: run `echo-hf collect`"):
        asked(config_of(), runs)


def test_the_record_names_no_post(tmp_path: Path) -> None:
    urls = [f"https://a.example/secret{number}" for number in range(3)]
    later = MORNING + datetime.timedelta(hours=1)
    with RefreshLedger(tmp_path / REFRESH_LEDGER_FILE) as record:
        record.record_answers("web", urls[:2], {urls[0]: Missing.PROTECTED}, MORNING)
        assert record.select_due(urls, MORNING) == urls[2:]
        assert record.select_due(urls, later) == urls
        record.record_answers("web", urls[:1], {}, later)
        record.record_answers("web", urls[1:], {urls[1]: Missing.DELETED}, later)
        assert record.read_gone(urls) == {urls[1]: Missing.DELETED}

    assert not any(b"secret" in file.read_bytes() for file in tmp_path.iterdir())


def test_it_asks_and_forgets_when_told_to(crawled: Crawled, runs: Path, tmp_path: Path) -> None:
    service, config, urls = crawled
    PLATFORMS.register(NAME)(Honest)
    file, stages = tmp_path / "c.yaml", runs / config.name / "stages"
    file.write_text(yaml.safe_dump(config.model_dump(mode="json", exclude_unset=True)))
    service.world.deleted.update(names(urls))

    def says(*more: str) -> str:
        given = ["refresh", str(file), "--runs", str(runs), "--older-than", "0", *more]
        return CliRunner().invoke(app, given, catch_exceptions=False).output

    assert "deleted: removed by its author or the platform" in says()
    with pytest.raises(RunError, match="most posts of simulated are said to be gone"):
        says("--apply")
    assert stages.exists()
    assert "forgotten:" in says("--apply", "--however-many")
    assert not stages.exists()


@pytest.mark.parametrize("hours", ["-1", "nan"])
def test_hours_that_are_none_are_refused(tmp_path: Path, hours: str) -> None:
    given = ["refresh", str(tmp_path / "none.yaml"), "--older-than", hours]
    result = CliRunner().invoke(app, given, catch_exceptions=False)

    assert result.exit_code == 2
    assert "--older-than" in result.output
