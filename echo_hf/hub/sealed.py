"""The sealed samples of a run: its private folder, what a release keeps out, and their proofs."""

from __future__ import annotations

import errno
import hashlib
import json
import secrets
import shutil
import stat
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, concatenate_datasets
from pydantic import ValidationError

from echo_hf._infra.atomic import find_complete, replace_file
from echo_hf._infra.parquet import read_parquet
from echo_hf._infra.regular_file import read_regular
from echo_hf._infra.text import one_line
from echo_hf.collect.takedown import ORIGINS_FILE, hash_url, read_origins
from echo_hf.config.checks import Section
from echo_hf.curate.splits import ANALYSIS, BENCHMARKS
from echo_hf.errors import ReleaseError, RunError
from echo_hf.hub.commitments import (
    Opening,
    Reveal,
    Seal,
    Sha256,
    build_tree,
    choose_sealed,
    find_path,
    hash_leaf,
    is_drawn,
    make_salt,
)
from echo_hf.hub.facts import SAMPLE_CONFIGS, UNKNOWN, ReleaseFacts, SampleCounts, count_samples
from echo_hf.hub.manifest import MANIFEST, PROOFS, canonical_json, read_manifest, read_openings
from echo_hf.hub.redistribution import iterate_post_urls, list_images
from echo_hf.hub.release import (
    Release,
    is_complete,
    iterate_rows,
    read_config_rows,
    read_release,
    read_release_facts,
    unpack_release,
    verify_release,
    write_release,
)
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.tables import SAMPLES, Row, arrow_rows

SEALED_FOLDER = "sealed"
KEY_FILE, RECORD_FILE, COMMITMENTS = "key", "drawn.json", "commitments"
KEY_BYTES = 32
MAX_RECORD_BYTES, MAX_COMMITMENT_BYTES = 1 << 28, 1 << 30
LINK_COLUMNS = (
    *("id", "post_id", "post_urls", "community_feedback", "prompt_spans", "picture_sources"),
    *("input_images", "output_images", "screenshot"),
)
OTHER_RELEASES = ""  # stands among samples for all samples of other releases
FROM_COPY = "bring it back from a copy"


class OtherSamples(NamedTuple):
    """The samples of another release, and their posts."""

    ids: Collection[str]
    urls: Collection[str]


class SealedRecord(Section):
    """The samples that are sealed, those that were public, and the roots that were revealed.

    `key` is the digest of the key that drew them, `releases` are the posts of other releases that
    the config names or named, as hashes.
    """

    key: Sha256
    sealed: tuple[str, ...]
    public: tuple[str, ...]
    revealed: Mapping[str, Reveal] = {}
    releases: Mapping[str, tuple[str, ...]] = {}


class CommittedRow(Section):
    """A row under a root; one that was forgotten is its leaf alone."""

    leaf: str
    salt: str | None = None
    row: Mapping[str, Any] | None = None

    @property
    def is_intact(self) -> bool:
        """Return whether the leaf is that of the row."""
        if self.row is None or self.salt is None:
            return self.row is None and self.salt is None
        return hash_leaf(bytes.fromhex(self.salt), canonical_json(self.row)).hex() == self.leaf


class TagCounts(NamedTuple):
    """How many rows a tag had sealed, and how many of these have a proof here, or are proven."""

    rows: int
    openings: int
    proven: int


class ProofCounts(NamedTuple):
    """How many revealed rows are the ones that were sealed, and how many are left out here."""

    proven: int
    dehydrated: int
    tags: Mapping[str, TagCounts]


@dataclass(frozen=True)
class Division:
    """The samples of a release and the sealed ones, and what its manifest says of both."""

    public: Mapping[str, Dataset]
    sealed: Mapping[str, Dataset]
    urls: frozenset[str] = frozenset()  # of all posts of what is kept out
    kept_out: int = 0
    seal: Seal | None = None
    revealed: Mapping[str, Reveal] = field(default_factory=dict)
    openings: tuple[Opening, ...] = ()

    def add_facts(self, facts: ReleaseFacts) -> ReleaseFacts:
        """Return the facts of the public release."""
        counts = {"sealed": self.kept_out} if self.kept_out else {}
        left_out = {**facts.left_out, **({ANALYSIS: counts} if counts else {})}
        return replace(
            facts,
            sealed=self.seal,
            revealed=self.revealed,
            openings=self.openings,
            left_out=left_out,
        )


class SealedSamples:
    """The private folder of a run's sealed samples; nobody else may read it."""

    def __init__(self, run: RunFolder) -> None:
        self.run, self.folder = run, RunFolder(run.root / SEALED_FOLDER)
        self.root = self.folder.root

    def divide(
        self,
        samples: Mapping[str, Dataset],
        share: float,
        other_releases: Iterable[tuple[str, OtherSamples]] = (),
    ) -> Division:
        """Divide the samples of a build into those of the release and the sealed ones.

        Samples and posts of other releases are public. The draw is written down before anything
        else, so that a killed build draws no other one.
        """
        record = self.read_record()
        if not share and record is None:
            return Division(samples, {})
        key = self._open_key()
        benchmark = {name for split in BENCHMARKS for name in samples[split]["id"]}
        links, drawn = dict[str, frozenset[str]](), set[str]()
        public, releases = self.list_public(record), dict(record.releases if record else {})
        for reference, other in other_releases:
            public.update(other.ids)
            releases[reference] = tuple(sorted(set(map(hash_url, other.urls))))
        posted = frozenset().union(*releases.values())
        for name in (ANALYSIS, *BENCHMARKS):
            for row in iterate_rows(samples[name], columns=LINK_COLUMNS):
                sources = (source["sha256"] for source in row["picture_sources"] or ())
                urls = {*filter(None, iterate_post_urls(row))}
                shared = {*urls, *list_images(row), *sources}
                links[row["id"]] = frozenset(filter(None, shared | posted & {*map(hash_url, urls)}))
                if row["id"] in benchmark and is_drawn(key, row["post_id"] or row["id"], share):
                    drawn.add(row["id"])
        kept_out = choose_sealed(
            {**links, OTHER_RELEASES: posted},
            drawn,
            {*public, OTHER_RELEASES},
            record.sealed if record else (),
        )
        self._write_record(
            SealedRecord(
                key=hashlib.sha256(key).hexdigest(),
                sealed=sorted(kept_out.union(record.sealed if record else ()) - public),
                public=sorted(public | (links.keys() - kept_out)),
                revealed=self.list_revealed(record),
                releases=releases,
            )
        )
        division = self._divide(samples, kept_out)
        keys = frozenset(key for name in kept_out for key in links[name])
        return replace(division, urls=keys)  # no digest is an address

    def _divide(self, samples: Mapping[str, Dataset], kept_out: Collection[str]) -> Division:
        names = pa.array(sorted(kept_out), pa.string())

        def select(dataset: Dataset, *, is_sealed: bool) -> Dataset:
            mask = pc.is_in(arrow_rows(dataset, ["id"])["id"], names).to_numpy()
            return dataset.select(np.flatnonzero(mask == is_sealed))

        public = {name: select(dataset, is_sealed=False) for name, dataset in samples.items()}
        sealed = {name: select(samples[name], is_sealed=True) for name in BENCHMARKS}
        if not any(map(len, sealed.values())):
            sealed = {}
        revealed = self.list_revealed(self.read_record())
        return Division(
            public,
            sealed,
            kept_out=len(samples[ANALYSIS]) - len(public[ANALYSIS]),
            seal=self._commit(sealed) if sealed else None,
            revealed=revealed,
            openings=self._prove(revealed, public) if revealed else (),
        )

    def write(
        self,
        division: Division,
        tables: Mapping[str, Dataset],
        facts: ReleaseFacts,
        images: ImageStore,
        processes: int = 1,
    ) -> None:
        """Write the private release of the sealed samples, whose rows each have their proof."""
        if division.seal is None:
            if self.has_release:  # under another name nobody takes what is left for a release
                gone = find_complete(self.folder.release).rename(self.root / ".release.partial")
                shutil.rmtree(gone)
            return
        seal = division.seal.model_copy(update={"private": True})
        private = {"": Reveal(root=seal.root, rows=sum(seal.rows.values()))}
        for rows in division.sealed.values():
            for row in iterate_rows(rows, columns=SAMPLES.images):
                for digest in list_images(row):
                    self.folder.images.take(images, digest)
        write_release(
            self.folder.release,
            {**division.sealed, **tables},
            self.folder.images,
            replace(facts, sealed=seal, openings=self._prove(private, division.sealed)),
            processes=processes,
        )
        self.close_to_others()

    @property
    def has_release(self) -> bool:
        """Return whether samples are sealed now."""
        return find_complete(self.folder.release).exists()

    def is_complete(self, division: Division) -> bool:
        """Return whether the private release is the one of a division."""
        folder = find_complete(self.folder.release)
        if division.seal is None:
            return not self.has_release
        if not is_complete(folder):
            return False
        seal = read_manifest(folder).sealed
        return seal is not None and seal.root == division.seal.root

    def close_to_others(self) -> None:
        """Let nobody but the owner read the folder."""
        if self.root.exists():
            self.close_folder()
        for path in self.root.rglob("*"):
            with suppress(FileNotFoundError):  # a temporary file
                _set_mode(path, 0o700 if path.is_dir() else 0o600)

    def close_folder(self) -> None:
        """Let nobody but the owner look into the folder, whatever the modes of its files."""
        _set_mode(self.root, 0o700)

    def read_record(self) -> SealedRecord | None:
        """Read which samples are sealed; null where none ever was."""
        path = self.root / RECORD_FILE
        if not path.exists():
            if any(self.root.glob(f"{COMMITMENTS}/*")) or self._is_promised():
                raise RunError(
                    f"{str(path)!r} is missing, which says what is sealed: {FROM_COPY} of "
                    f"{str(self.root)!r}; without it nothing is released"
                )
            return None
        try:
            text = read_regular(path, self.root, max_bytes=MAX_RECORD_BYTES)
            record = SealedRecord.model_validate_json(text)
        except (OSError, ValidationError):
            record = None
        if record is None or (self.has_release and not record.sealed):
            raise RunError(f"{str(path)!r} does not say what is sealed: {FROM_COPY}")
        return record

    def list_public(self, record: SealedRecord | None) -> set[str]:
        """Return the samples that a release of the run has or had."""
        public = set(record.public) if record else set[str]()
        if record is None:  # of releases that are gone, such as by a takedown
            public.update(read_origins(self.run.root / ORIGINS_FILE)["sample_id"].to_pylist())
        for folder in (self.run.release, self.run.previous):
            for name in SAMPLE_CONFIGS:
                for file in sorted(find_complete(folder).glob(f"{name}/*.parquet")):
                    public.update(read_parquet(file, columns=["id"])["id"].to_pylist())
        return public

    def list_revealed(self, record: SealedRecord | None) -> dict[str, Reveal]:
        """Return the tags whose rows were revealed, also by a run that was killed since."""
        revealed = dict(record.revealed) if record else {}
        folder = find_complete(self.run.release)
        return revealed | (
            dict(read_manifest(folder).revealed) if (folder / MANIFEST).exists() else {}
        )

    def read_commitment(self, root: str) -> tuple[CommittedRow, ...]:
        """Read the rows under a root, in the order of its leaves."""
        path = self._find_commitment(root)
        try:
            lines = read_regular(path, self.root, max_bytes=MAX_COMMITMENT_BYTES).splitlines()
            rows = tuple(map(CommittedRow.model_validate_json, lines))
            leaves = [bytes.fromhex(row.leaf) for row in rows]
            if build_tree(leaves)[-1][0].hex() != root or not all(row.is_intact for row in rows):
                raise ValueError("its rows are not those of its root")
        except FileNotFoundError:
            raise RunError(
                f"no rows with root {root!r} in {str(path.parent)!r}: expected the run that the "
                f"tag was published from, or {FROM_COPY}"
            ) from None
        except (OSError, ValueError, IndexError) as error:
            raise RunError(
                f"{str(path)!r} has changed ({one_line(error)[:200]}): {FROM_COPY}"
            ) from None
        return rows

    def open_row(self, root: str, sample_id: str) -> tuple[Row, Opening]:
        """Return a committed row with its proof, to show it alone to somebody."""
        rows = self.read_commitment(root)
        levels = build_tree([bytes.fromhex(each.leaf) for each in rows])
        for number, each in enumerate(rows):
            if each.row and each.salt and each.row["id"] == sample_id:
                path = find_path(levels, number)
                opening = Opening(tag="", root=root, id=sample_id, salt=each.salt, path=path)
                return each.row, opening
        raise RunError(
            f"sample {sample_id!r} is not under root {root!r}: expected one that was sealed then "
            "and is not forgotten"
        )

    def forget(self, samples: Collection[str], urls: Collection[str]) -> int:
        """Take samples and posts out of what was committed to; count them. Their leaves stay."""
        if (record := self.read_record()) is None:
            return 0
        gone, forgotten, count = {*samples}, {*urls}, 0
        for path in sorted(self.root.glob(f"{COMMITMENTS}/*.jsonl")):
            rows = self.read_commitment(path.stem)
            left_rows = [
                each
                if not each.row
                or (
                    each.row["id"] not in gone and forgotten.isdisjoint(iterate_post_urls(each.row))
                )
                else CommittedRow(leaf=each.leaf)
                for each in rows
            ]
            if cleared := sum(
                each.row is not other.row for each, other in zip(rows, left_rows, strict=True)
            ):
                self._write_commitment(path, left_rows)
                count += cleared
        left: dict[str, Any] = {
            name: tuple(each for each in getattr(record, name) if each not in gone)
            for name in ("sealed", "public")
        }
        hashes = set(map(hash_url, urls))
        left["releases"] = {
            reference: tuple(each for each in posts if each not in hashes)
            for reference, posts in record.releases.items()
        }
        self._write_record(record.model_copy(update=left))
        return count

    def reveal(self, tag: str, root: str) -> Release:
        """Move the samples under the root of a tag into the public release, with their proofs.

        The public release decides: a killed reveal has moved all of them, or none. What is left to
        do then is done by the next one, or by a build.
        """
        committed = self.read_commitment(root)
        opened = {row.row["id"] for row in committed if row.row}
        folder = read_release(self.run.release)
        private = read_release(self.folder.release) if self.has_release else None
        for release in filter(None, (folder, private)):
            verify_release(release.path)
        (self.run.root / "release.built").unlink(missing_ok=True)
        for stray in self.root.glob(".reveal.*"):  # of a killed one
            shutil.rmtree(stray)
        # Here nobody else reads it, and by its name a takedown knows it.
        with TemporaryDirectory(".partial", ".reveal.", self.root) as place:
            store, own = ImageStore(Path(place) / "public"), ImageStore(Path(place) / "sealed")
            public = unpack_release(folder, store)
            sealed = unpack_release(private, own) if private else {}
            for file in own.root.glob("*/*"):
                store.take(own, file.name)
            left = {name: _select(rows, opened, is_in=False) for name, rows in sealed.items()}
            samples = {name: left.pop(name) for name in BENCHMARKS if name in left}
            samples = samples if any(map(len, samples.values())) else {}
            seal = self._commit(samples) if samples else None
            facts = read_release_facts(folder)
            if tag not in facts.revealed:
                count = len(public[ANALYSIS])
                public = self._add_rows(public, sealed, opened)
                counts = dict(facts.left_out.get(ANALYSIS, {}))
                counts["sealed"] = counts.get("sealed", 0) + count - len(public[ANALYSIS])
                revealed = {**facts.revealed, tag: Reveal(root=root, rows=len(committed))}
                facts = replace(
                    facts,
                    sealed=seal,
                    revealed=revealed,
                    openings=self._prove(revealed, public),
                    measured=self._measure(public) or facts.measured,
                    left_out={**facts.left_out, ANALYSIS: counts},
                )
                folder = write_release(self.run.release, public, store, facts)
            if private is not None:
                division = Division(public, samples, seal=seal)
                self.write(division, left, read_release_facts(private), store)
        if self.folder.answers.exists():  # nobody is asked again for what is known of them
            urls = [each.row["post_urls"] or () for each in committed if each.row]
            with closing(self.run.open_store()) as answers:
                answers.take(self.folder.answers, {url for own in urls for url in own})
        if (record := self.read_record()) is not None:
            update = {
                "sealed": tuple(name for name in record.sealed if name not in opened),
                "public": tuple(sorted({*record.public, *opened})),
                "revealed": folder.manifest.revealed,
            }
            self._write_record(record.model_copy(update=update))
        return folder

    def _add_rows(
        self, public: Mapping[str, Dataset], sealed: Mapping[str, Dataset], opened: Collection[str]
    ) -> dict[str, Dataset]:
        """Add the opened samples to the public ones, in the order in which the stages have them."""
        path = self.run.stage_folder("splits") / "kept.parquet"
        ids = read_parquet(path, columns=["id"])["id"].to_pylist() if path.exists() else []
        order = {name: number for number, name in enumerate(ids)}
        added = {name: _select(sealed[name], opened) for name in sealed if name in BENCHMARKS}
        if not added:
            return dict(public)
        added[ANALYSIS] = concatenate_datasets(list(added.values()))
        datasets = dict(public)
        for name, rows in added.items():
            rows = concatenate_datasets([public[name], rows])
            places = [order.get(sample, len(order)) for sample in rows["id"]]
            datasets[name] = rows.select(sorted(range(len(rows)), key=places.__getitem__))
        return datasets

    def _measure(self, samples: Mapping[str, Dataset]) -> dict[str, SampleCounts]:
        """Count the samples by the posts of the run; nothing where those are gone."""
        path = self.run.stage_folder("collect") / "kept.parquet"
        columns = ["url", "lang", "platform", "author"]
        if not path.exists():
            return {}
        return count_samples(samples, Dataset(read_parquet(path, columns=columns)))

    def _open_key(self) -> bytes:
        """Read the key of the draw, or make one where nothing is sealed yet."""
        path, advice = self.root / KEY_FILE, f"{FROM_COPY}; another key would draw other samples"
        try:
            key = bytes.fromhex(read_regular(path, self.root, max_bytes=1000).decode())
            if len(key) != KEY_BYTES:
                raise ValueError(f"{len(key)} bytes, expected {KEY_BYTES}")
            record = self.read_record()
            if record is not None and record.key != hashlib.sha256(key).hexdigest():
                raise ValueError("another one than what is sealed was drawn by")
            return key
        except FileNotFoundError:
            if (self.root / RECORD_FILE).exists():
                raise RunError(f"{str(path)!r} is missing: {advice}") from None
        except (OSError, ValueError) as error:
            raise RunError(f"{str(path)!r} is no key ({one_line(error)}): {advice}") from None
        self.root.mkdir(parents=True, exist_ok=True)
        key = secrets.token_bytes(KEY_BYTES)
        self._write_text(path, key.hex() + "\n")
        return key

    def _is_promised(self) -> bool:
        """Return whether a release says that samples are sealed, or holds them."""
        folder = find_complete(self.run.release)
        try:
            public = (folder / MANIFEST).exists() and read_manifest(folder).sealed is not None
        except ReleaseError:  # it is written again, unless something here was sealed
            public = self.root.exists()
        return public or self.has_release

    def _write_record(self, record: SealedRecord) -> None:
        self._write_text(self.root / RECORD_FILE, record.model_dump_json(indent=1) + "\n")

    def _write_text(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        for folder in {self.root, path.parent}:
            folder.chmod(0o700)
        with replace_file(path) as partial:
            partial.touch(0o600)
            partial.write_text(text, "utf-8")

    def _commit(self, sealed: Mapping[str, Dataset]) -> Seal:
        """Write down the rows with their salts under their root, and return what is said of it."""
        key, families, committed = self._open_key(), Counter[str](), list[CommittedRow]()
        for dataset in sealed.values():
            for row in iterate_rows(dataset):
                content = canonical_json(row)
                salt = make_salt(key, content)
                leaf = hash_leaf(salt, content).hex()
                plain = json.loads(content)
                committed.append(CommittedRow(leaf=leaf, salt=salt.hex(), row=plain))
                families[row["task"] or UNKNOWN] += 1
        committed.sort(key=lambda each: each.leaf)  # says nothing of the order of the rows
        root = build_tree([bytes.fromhex(each.leaf) for each in committed])[-1][0].hex()
        if not (path := self._find_commitment(root)).exists():
            self._write_commitment(path, committed)
        rows = {name: len(dataset) for name, dataset in sealed.items()}
        return Seal(root=root, rows=rows, task_families=dict(sorted(families.items())))

    def _find_commitment(self, root: str) -> Path:
        return self.root / COMMITMENTS / f"{root}.jsonl"

    def _write_commitment(self, path: Path, rows: Iterable[CommittedRow]) -> None:
        texts = (canonical_json(each.model_dump(exclude_defaults=True)) for each in rows)
        self._write_text(path, "".join(f"{text.decode()}\n" for text in texts))

    def _prove(
        self, roots: Mapping[str, Reveal], samples: Mapping[str, Dataset]
    ) -> tuple[Opening, ...]:
        """Return the proofs of the samples that are now as they were under the roots of tags."""
        contents = {
            row["id"]: canonical_json(row)
            for name in BENCHMARKS
            for row in iterate_rows(samples[name])
        }
        openings = []
        for tag, reveal in roots.items():
            rows = self.read_commitment(reveal.root)
            levels = build_tree([bytes.fromhex(each.leaf) for each in rows])
            for number, each in enumerate(rows):
                if each.row and canonical_json(each.row) == contents.get(each.row["id"]):
                    openings.append(
                        Opening(
                            tag=tag,
                            root=reveal.root,
                            id=each.row["id"],
                            salt=each.salt or "",
                            path=find_path(levels, number),
                        )
                    )
        return tuple(openings)


def _set_mode(path: Path, mode: int) -> None:
    if stat.S_IMODE(path.stat().st_mode) == mode:
        return
    try:
        path.chmod(mode)
    except OSError as error:
        # A mounted bucket may have no modes: whoever may read it is said elsewhere.
        if error.errno not in (errno.ENOTSUP, errno.ENOSYS, errno.EPERM):
            raise


def _select(dataset: Dataset, samples: Collection[str], *, is_in: bool = True) -> Dataset:
    """Select the rows about samples, or the others."""
    name = "id" if "id" in dataset.column_names else "sample_id"
    mask = [(sample in samples) == is_in for sample in dataset[name]]
    return dataset.select(np.flatnonzero(mask))


class _Digests(ImageStore):
    """Computes the digests of images, and keeps none."""

    def put(self, data: bytes, max_pixels: int = 0) -> str:
        del max_pixels
        return hashlib.sha256(data).hexdigest()


def check_openings(
    release: Release, configs: Sequence[str] = (ANALYSIS, *BENCHMARKS)
) -> ProofCounts:
    """Check that the revealed rows of a release are the ones that were sealed.

    A row whose words or images are left out cannot be checked, and is counted.

    Raises:
        ReleaseError: A row is another one than was sealed; of all configs, or there is none.
    """
    openings, proven, dehydrated = dict[str, list[Opening]](), set[str](), set[str]()
    proofs = read_openings(release.path, release.manifest)
    for opening in proofs:
        openings.setdefault(opening.id, []).append(opening)
    for config in configs if openings else ():
        if config not in release.manifest.configs or config not in SAMPLE_CONFIGS:
            continue
        for row in read_config_rows(release, config, _Digests(release.path)):
            if row["id"] not in openings:
                continue
            if row["dehydrated"]:
                dehydrated.add(row["id"])
            elif all(opening.proves(canonical_json(row)) for opening in openings[row["id"]]):
                proven.add(row["id"])
            else:
                raise ReleaseError(
                    f"release {str(release.path)!r}: sample {row['id']!r} is not the one that was "
                    f"sealed in {openings[row['id']][0].tag!r}: download it again, or ask its owner"
                )
    if len(configs) > 1 and (lost := openings.keys() - proven - dehydrated):
        raise ReleaseError(
            f"release {str(release.path)!r}: {PROOFS} has a proof of {min(lost)!r}, which is no "
            "sample of it: download it again"
        )
    tags = dict[str, TagCounts]()
    for tag, reveal in release.manifest.revealed.items():
        own = [opening.id for opening in proofs if opening.tag == tag]
        tags[tag] = TagCounts(reveal.rows, len(own), len(proven.intersection(own)))
    return ProofCounts(len(proven), len(dehydrated), tags)
