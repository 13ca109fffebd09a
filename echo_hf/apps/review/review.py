"""Have people review the samples of a run in their browsers: `echo-hf review CONFIG --app`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from echo_hf._infra.atomic import complete
from echo_hf.apps.page import (
    ROUTE,
    AskedPage,
    Place,
    ShownImages,
    answer_of,
    check_installed,
    serve,
)
from echo_hf.apps.people import AppUsers, check_reachable, people_of
from echo_hf.apps.review.controller import ReviewController
from echo_hf.apps.review.page import Address, View, desk_page
from echo_hf.builder.build import RUNS, Pipeline, opened
from echo_hf.builder.review import Case, read_cases
from echo_hf.config.loading import Config
from echo_hf.curate.decisions import images_of
from echo_hf.curate.splits import Splits
from echo_hf.errors import ReviewError
from echo_hf.reasons import Reject


def desk_of(config: Config | Path | str, *, runs: Path | str = RUNS) -> ReviewController:
    with opened(config, runs, writes=False) as pipeline:
        cases = read_cases(pipeline)
        if not cases:
            raise ReviewError(f"{str(pipeline.folder.root)!r} has no sample to review")
        desk = ReviewController.of(cases, dict(_duplicates(pipeline)), pipeline.folder.root)
    desk.ledger.catch_up()  # what a killed server had not written any more
    return desk


def review(
    desk: ReviewController,
    *,
    place: Place,
    people: Iterable[str] = (),
    anyone: bool = False,
    ready: Callable[[str], None],
) -> None:
    """Serves the page until it is stopped; a decision is in the file before the page moves on."""
    check_installed("`echo-hf review --app`")
    admitted = people_of(people)
    check_reachable(place.host, admitted, anyone=anyone)
    from echo_hf.apps.page import look

    named = ShownImages.of(desk.images, digests_of(desk))
    known = dict(named.digests)
    images = ShownImages(desk.images, named.secret, known)

    def admit(view: View) -> None:
        # What a reviewer has just cut out was not there when the page was opened.
        cut = (*view.shown["input_images"], *view.shown["output_images"])
        known.update({images.address(one).removeprefix(ROUTE): one for one in cut})

    asked = page(desk, admitted, images.address, admit)
    serve(asked.blocks, images, admitted, place, ready, partial(look, STYLES))


def digests_of(desk: ReviewController) -> Iterator[str]:
    for case in desk.cases.values():
        yield from _of_case(case)
    for one in desk.ledger.decided().by_id.values():
        yield from one.changed.images if one.changed else ()


def _of_case(case: Case) -> Iterator[str]:
    yield from images_of(case.row)
    for post in case.context:
        yield from (one["sha256"] for one in post["pictures"] or () if one["sha256"])


def _duplicates(pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    file = complete(pipeline.folder.stage(Splits.name)) / "rejects.parquet"
    columns = ["id", "_reason", "_detail"]
    for row in pq.read_table(file, columns=columns).to_pylist() if file.exists() else ():
        if row["_reason"] == Reject.DUPLICATE_OF:
            yield row["id"], row["_detail"]


TITLE = "Review samples"
HERE = files(__package__ or "")
STYLES = HERE.joinpath("page.css")
SCRIPTS = (HERE.joinpath("boxes.js"), HERE.joinpath("page.js"))


def page(
    desk: ReviewController, people: AppUsers, address: Address, saved: Callable[[View], None]
) -> AskedPage:
    def shown(view: View, answer: int = 0) -> str:
        saved(view)
        return desk_page(view, address, answer)

    def opened(person: str) -> str:
        return shown(desk.view(person))

    def acted(person: str, said: Mapping[str, Any]) -> str:
        return shown(desk.act(person, said), answer_of(said))

    return AskedPage(TITLE, people, SCRIPTS, opened, acted)
