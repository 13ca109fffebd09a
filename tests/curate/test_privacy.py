"""Authors as keyed hashes, and samples without what says who people are."""

from __future__ import annotations

import hmac
import json
import re
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from echo_hf.builder.build import build
from echo_hf.config.loading import parse_config
from echo_hf.config.sections import Target
from echo_hf.config.systems import shipped_config
from echo_hf.curate.privacy import KEY_VARIABLE, AuthorKey, Privacy, product_accounts
from echo_hf.errors import ConfigError
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.samples.sample import sample_digest
from echo_hf.tables import SAMPLES
from tests.images.test_image_metadata import saved
from tests.samples_for_tests import CONFIG_DATA, dataset, kept, noted, post, sample, table, url

PHRASE = "an invented key of a test"
WORDS = ("author", "post_urls", "prompt", "community_feedback", "provenance")
STAGE = Privacy(frozenset({"lumen"}), AuthorKey(PHRASE.encode()))
CONTEXT = [
    post(0, -1, "prompt", author="ana"),
    post(1, 0, "@ana wow, mail me: bo@example.org", author="bo"),
    post(2, 0, "so good", author=None),
]
SAMPLE = sample(CONTEXT, [0], [1, 2])


def made(*rows: dict[str, Any], stage: Privacy = STAGE) -> list[dict[str, Any]]:
    return list(stage(table(*rows)).to_pylist())


def hashed(name: str, platform: str = "x") -> str:
    return hmac.digest(PHRASE.encode(), f"{platform}\x1f{name}".encode(), "sha256").hex()[:16]


def test_authors_are_hashed_and_comments_masked() -> None:
    """By hand: each comment has its author's hash, what it said has no names, the rest stays."""
    judged = {**SAMPLE["community_feedback"][1], "keyword": "ignores @bo"}
    before = {**SAMPLE, "community_feedback": [SAMPLE["community_feedback"][0], judged]}
    rows = made(before)
    (row,) = kept(rows)
    first, second = row["community_feedback"]

    assert row["author"] == hashed("ana")
    assert (first["author"], second["author"]) == (hashed("bo"), None)
    assert [first["feedback"], second["feedback"]] == ["[handle] wow, mail me: [e-mail]", "so good"]
    assert second["keyword"] == "ignores [handle]"
    masked = [("masked_handle", url(1)), ("masked_e_mail", url(1)), ("masked_handle", url(2))]
    assert noted(rows) == masked
    sources = {"prompt_sha256", "prompt_spans", "picture_sources", "dehydrated"}
    untouched = set(SAMPLES.columns) - {"author", "community_feedback", *sources}
    assert {name: row[name] for name in untouched} == {name: SAMPLE[name] for name in untouched}


def test_a_prompt_with_personal_data_waits_for_a_person() -> None:
    """It stays as it is; what was to be reviewed for another reason still is."""
    prompt = "@lumen, a card for Noor, noor@example.org, @noor, @noor_k, +1 650-253-0000"
    given_ = {"prompt": prompt, "community_feedback": [], "review": ["may_show_minor"]}
    rows = made({**SAMPLE, **given_})
    (row,) = kept(rows)

    assert (row["prompt"], row["review"]) == (prompt, ["may_show_minor", "personal_data"])
    assert noted(rows) == [("personal_data_in_prompt", "1 e-mail, 1 phone, 2 handle")]


def test_authors_of_the_run_are_known_by_their_bare_names() -> None:
    context = [post(0, -1, "prompt", author="painter"), post(1, 0, "wow", author="art")]
    said = "so good mira_draws, a painter of art by pain-ter"
    near = sample(context, [0], [1])
    near["community_feedback"][0]["feedback"] = said
    far = {**near, "context": [{**one, "author": "bo"} for one in near["context"]]}
    stage = Privacy(STAGE.products, STAGE.key, authors=frozenset({"mira_draws"}))
    shown = [
        kept(made({**one, "prompt": "as mira_draws paints"}, stage=stage))[0] for one in (near, far)
    ]

    assert [one["community_feedback"][0]["feedback"] for one in shown] == [
        "so good [handle], a [handle] of art by [handle]",
        "so good [handle], a painter of art by pain-ter",
    ]
    assert [one["review"] for one in shown] == [["personal_data"]] * 2


def test_the_run_s_authors_are_those_of_all_posts_that_it_collected(tmp_path: Path) -> None:
    folder = tmp_path / "stages" / "collect"
    folder.mkdir(parents=True)
    assert STAGE.in_run(tmp_path).authors == frozenset()
    nobody_known = STAGE.in_run(tmp_path).digest()
    authors = pa.table({"author": ["Mira_Draws", None, "art"]})
    pq.write_table(authors, folder / "kept.parquet")
    knows = STAGE.in_run(tmp_path)

    assert knows.authors == {"mira_draws"}
    assert knows.digest() != nobody_known
    assert "mira" not in json.dumps(knows.describe())


def test_two_images_that_differ_in_their_metadata_alone_are_one(tmp_path: Path) -> None:
    store = ImageStore(tmp_path)
    plain, other = (store.put(saved("JPEG", **more)) for more in ({}, {"comment": "x"}))
    shown = {"input_images": [plain, other], "output_images": [], "context": []}
    rows = made({**SAMPLE, **shown}, stage=Privacy(STAGE.products, STAGE.key, store))
    (row,) = kept(rows)

    assert row["input_images"] == [plain]
    assert row["sample_digest"] == sample_digest(SAMPLE["prompt"], [plain])
    assert row["cleaned_images"] == [{"posted_sha256": other, "sha256": plain}]
    assert ("removed_comment", other) in noted(rows)


def test_what_led_to_the_prompt_is_masked_as_well() -> None:
    made_by = {"digest": "650253000065025300006502530000", "engine": {"model": "org/@model"}}
    blanks = [{"placeholder": "[@noor]", "value": "bo@example.org"}]
    given_ = {
        "extract": made_by,
        "roles": {**made_by, "template": "[@noor] and a fox", "blanks": blanks},
        "screenshots": {**made_by, "prompt_read": "call +1 650-253-0000", "inset": 10},
    }
    rows = made({**SAMPLE, "community_feedback": [], "provenance": json.dumps(given_)})

    told = json.loads(kept(rows)[0]["provenance"])
    # Where the rest of a quotation stands in the posts; what was masked stands nowhere.
    assert not {"noor", "example", "650"} & set(
        re.findall(r"[a-z]+|\d{3}", str(told.pop("quoted")))
    )
    assert told == {
        "extract": made_by,
        "roles": {
            **made_by,
            "template": "[[handle]] and a fox",
            "blanks": [{"placeholder": "[[handle]]", "value": "[e-mail]"}],
        },
        "screenshots": {**made_by, "prompt_read": "call [phone]", "inset": 10},
    }
    assert sorted(reason for reason, place in noted(rows) if place == "provenance") == [
        "masked_e_mail", "masked_handle", "masked_handle", "masked_phone",
    ]  # fmt: skip


def test_a_short_key_ends_a_build_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "correct horse 1")
    with pytest.raises(ConfigError, match="has 15 characters, expected at least 16") as caught:
        build(shipped_config(), runs=tmp_path)
    assert "horse" not in str(caught.value)
    assert not (tmp_path / "quickstart" / "stages").exists()


def test_without_a_key_there_are_no_authors_and_each_sample_says_so() -> None:
    nobody = sample([post(3, -1, "prompt", author=None)], id="nobody")
    rows = made(SAMPLE, nobody, stage=Privacy())
    first, second = kept(rows)

    assert (first["author"], second["author"]) == (None, None)
    assert [one["author"] for one in first["community_feedback"]] == [None, None]
    assert [row["_parent"] for row in rows if row["_reason"] == "no_author_key"] == [["sample"]]


def test_the_counts_by_hand() -> None:
    waiting = {**SAMPLE, "id": "waiting", "prompt": "draw @noor"}
    trash = {**waiting, "id": "trash", "quality": "Trash"}
    nobody = sample([post(3, -1, "prompt", author=None)], id="nobody")
    stats = run_stage(STAGE, dataset(SAMPLE, waiting, trash, nobody)).stats

    assert stats.tally == {"authors": 3, "to_review": 1}
    assert stats.noted == {"masked_e_mail": 3, "masked_handle": 3, "personal_data_in_prompt": 2}
    assert Privacy.headline({"privacy": stats}) == (
        "3 of 4 samples have a hashed author; 6 places masked; metadata removed from images: none"
    )


def test_a_change_of_the_key_changes_the_digest_and_the_key_stays_secret() -> None:
    keyless, other = Privacy(STAGE.products), Privacy(STAGE.products, AuthorKey(b"x" * 16))
    told = json.dumps(STAGE.describe())

    assert len({STAGE.digest(), keyless.digest(), other.digest()}) == 3
    assert keyless.describe()["author_key"] is None
    assert PHRASE not in f"{told} {STAGE!r} {KEY}"
    assert KEY.fingerprint == hmac.digest(PHRASE.encode(), b"fingerprint", "sha256").hex()[:8]


def test_the_products_are_all_models_and_their_makers() -> None:
    target = Target(
        name="Lumen Image",
        developer="Northlight",
        released="2026-03-02",
        aliases=("lumen", "l-image"),
        others=("Paint Box",),
        chat_window="Lumen Chat",
    )
    assert product_accounts(target) == {
        "lumenimage", "northlight", "lumen", "limage", "paintbox", "lumenchat",
    }  # fmt: skip


def test_a_release_names_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, PHRASE)
    release = build(shipped_config(), runs=tmp_path)
    run = tmp_path / "quickstart"
    posts = pq.read_table(run / "stages" / "collect" / "kept.parquet").to_pylist()
    platform = {"x": "x", "bluesky": "bluesky", "mastodon": "social.example"}
    known = [post for post in posts if post["author"]]
    names = {post["author"] for post in known}
    # A name with its server stands for the account there; Mastodon's addresses hold the name.
    hashes = {
        post["url"]: None
        if post["platform"] == "mastodon"
        else hashed(post["author"].partition("@")[0], platform[post["platform"]])
        for post in known
    }

    assert release.manifest.hashed_authors
    for row in release.datasets["analysis"].select_columns(list(WORDS)):
        said = row["community_feedback"]
        assert row["author"] == hashes[row["post_urls"][0]]
        assert [one["author"] for one in said] == [hashes[one["post_url"]] for one in said]
        # The address of a post is needed to find it again, and on some servers has a name.
        texts = [
            *row.values(),
            *(one["feedback"] for one in said),
            *(one["keyword"] for one in said),
        ]
        words = " ".join(text for text in texts if isinstance(text, str))
        assert [name for name in names if name in words] == []
    files = [path for path in run.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert [path for path in files if PHRASE.encode() in path.read_bytes()] == []


@pytest.mark.parametrize(
    ("name", "address", "is_hashed"),
    [
        ("hana_hikes", "https://art.example/@hana_hikes/111", False),
        ("@hana_hikes@art.example", "https://art.example/users/Hana_Hikes/statuses/1", False),
        ("hana_hikes", "https://x.com/i/status/111", True),
        ("hana.bsky.social", "https://bsky.app/profile/hana.bsky.social/post/3k", False),
        ("hana.bsky.social", "https://bsky.app/profile/did:plc:a1/post/3k", True),
        ("did:plc:a1", "https://bsky.app/profile/did:plc:a1/post/3k", True),
    ],
)
def test_a_hash_is_not_undone_by_the_address(name: str, address: str, is_hashed: bool) -> None:
    row = sample([{**post(0, -1, "prompt", author=name), "url": address}])
    rows = made(row)
    (done,) = kept(rows)

    assert (done["author"] is not None) is is_hashed
    assert noted(rows) == ([] if is_hashed else [("author_in_address", address)])


KEY = AuthorKey(PHRASE.encode())
X, BLUESKY = "https://x.com/i/status/1", "https://bsky.app/profile/did:plc:abc/post/3k"


@pytest.mark.parametrize(
    ("url", "name", "account"),
    [
        *((X, name, "x mira_draws") for name in ("mira_draws", " @Mira_Draws ", "ＭＩＲＡ＿draws")),
        (BLUESKY, "mira", "bluesky mira"),
        ("https://art.example/@mira/11111", "mira", "art.example mira"),
        # An account that is seen from another server is the same.
        ("https://art.example/@mira@ink.example/1", "mira@ink.example", "ink.example mira"),
        ("https://a.example/1", "mira", "a.example mira"),
        *((X, name, None) for name in (None, "", " ", "@")),
    ],
)
def test_an_author_is_the_hash_of_an_account(
    url: str, name: str | None, account: str | None
) -> None:
    """HMAC-SHA256 (RFC 2104) over platform, unit separator and name, cut to 64 bits."""
    text = account and account.replace(" ", "\x1f").encode()
    expected = text and hmac.digest(PHRASE.encode(), text, "sha256").hex()[:16]
    assert KEY.hash_author(url, name) == expected
    assert (
        expected is None or AuthorKey(b"another key of the test").hash_author(url, name) != expected
    )


@pytest.mark.parametrize(
    ("environment", "key"),
    [({}, None), ({KEY_VARIABLE: "  "}, None), ({KEY_VARIABLE: f"{PHRASE}\n"}, KEY)],
)
def test_the_key_comes_from_the_environment(
    environment: dict[str, str], key: AuthorKey | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    config, images = parse_config(CONFIG_DATA, "c.yaml"), ImageStore(Path("pictures"))
    assert Privacy.from_config(config, images).key == AuthorKey.from_environment(environment) == key


def test_time_grows_with_the_comments_and_not_with_their_square() -> None:
    """Replies by as many authors: 16 times as many take about 16 times as long, not 256 times."""

    def seconds(count: int) -> float:
        replies = [
            post(at, 0, "the fox looks wrong somehow", author=f"someone_{at}")
            for at in range(1, count)
        ]
        crowded = table(sample([CONTEXT[0], *replies], [0], range(1, count)))
        started = time.thread_time()
        STAGE(crowded)
        return time.thread_time() - started

    seconds(100)
    assert seconds(16_000) < 64 * seconds(1000)
