"""E-mail addresses and names of accounts in a text."""

from __future__ import annotations

import pytest

from echo_hf.curate.personal_data import SHORTEST_NAME, accounts, bare, names_of

ADDRESS = "noor.k+art@mail.example.org"
AROUND = [
    "{}", "write to {}.", "<{}>", "({})", "[{}]", "{{{}}}", "'{}'", '"{}"', "`{}`", "**{}**",
    "mail:{}", "mailto:{}", "a,{};b", "x={}&y=1", "https://example.org/?to={}&x=1", "{}: hi",
    "邮箱：{}的", "メール{}です", "{}-", "_({})_", '{{"mail":"{}"}}', "{}\n", "…{}…", "/{}/",
]  # fmt: skip


def found(text: str, *products: str) -> list[tuple[str, str]]:
    """What is found, in order, by its kind."""
    return [(kind, text[start:end]) for start, end, kind in sorted(accounts(text, products))]


@pytest.mark.parametrize("around", AROUND)
def test_an_address_is_found_wherever_it_stands(around: str) -> None:
    """In brackets, in code, in web addresses, and beside scripts that write no spaces."""
    assert found(around.format(ADDRESS)) == [("e-mail", ADDRESS)]


@pytest.mark.parametrize("host", ["mail.photography", "mail.co.uk", "mail.example.xn--p1ai"])
def test_an_address_is_of_any_domain(host: str) -> None:
    """All top-level domains count, not only the old ones."""
    assert found(f"noor@{host}") == [("e-mail", f"noor@{host}")]


@pytest.mark.parametrize(
    "text",
    [
        "noor (at) example.org",
        "noor[at]example.org",
        "noor.k {at} mail.example (dot) org",
        "noor(at)example[dot]org",
        "noor at example dot org",
        "NOOR AT EXAMPLE DOT COM",
    ],
)
def test_an_address_may_be_spelled(text: str) -> None:
    """With its signs in brackets, or in words."""
    assert found(f"mail {text}, please") == [("e-mail", text)]


@pytest.mark.parametrize(
    "text",
    [
        "look at example.org", "look at the dot pattern", "a fox (at night)", "a (dot) at noon",
        "a@b", "user@host", "name@localhost", "x@y.notatld", "3@4", "fox @ night", "@", "@@", "@ @",
        "pkg@1.2.3", "logo@2x.png", "@2x", "@1024x1536", "@16:9", "@1.5x", "@50mm", "@f2.8", "@4k",
        "@1080p", "@60fps", "maps/@48.85,2.29", "@image1", "@img_2 and @Image", "@ref3", "@here",
        "@everyone", "and/or", "u/v", "menu/item", "u/", "https://example.org/u/v",
        "https://x.com/i/status/9900316480379532473", "x.com/search", "xx.com/mira",
        "instagram.com/p/Cx12", "youtube.com/watch?v=a1", "github.com/features", "t.me/joinchat/a1",
        "linkedin.com/company/northlight", "reddit.com/r/lumen", "deviantart.com", "nitter.net",
        "www.deviantart.com", "huggingface.co/datasets/art",
        "example.social", "bsky.social",
    ],
)  # fmt: skip
def test_what_is_no_account(text: str) -> None:
    """Sizes, numbers, images of a request, places in code, posts without a name."""
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("@mira_draws so good", ["@mira_draws"]),
        ("(@mira_draws) @@mira .@mira", ["@mira_draws", "@mira", "@mira"]),
        ("RT @mira: @noor", ["@mira", "@noor"]),
        ("你好@mira好看", ["@mira"]),
        ("@mira's, @mira-like", ["@mira", "@mira"]),
        ("@3blue, @12345678", ["@3blue", "@12345678"]),
        ("@mira.bsky.social.", ["@mira.bsky.social"]),
        (".@mira.bsky.social", ["@mira.bsky.social"]),
        ("by mira-draws.bsky.social!", ["mira-draws.bsky.social"]),
        ("@mira-art.example", ["@mira-art.example"]),
        ("@mira@art.example, @mira@localhost", ["@mira@art.example", "@mira@localhost"]),
        ("u/mira-draws and /u/noor_k", ["u/mira-draws", "u/noor_k"]),
        ("https://www.reddit.com/user/noor_k/", ["noor_k"]),
        ("https://x.com/mira_draws/status/99", ["mira_draws"]),
        ("https://Twitter.com/mira?s=20", ["mira"]),
        ("https://bsky.app/profile/did:plc:abc123/post/3k", ["did:plc:abc123"]),
        ("https://bsky.app/profile/mira.example/post/3k", ["mira.example"]),
        *(
            (f"see https://{where}{name}/x?y=1", [name])
            for where, name in {
                "www.instagram.com/": "mira.draws", "instagram.com/stories/": "mira",
                "t.me/": "mira_draws", "t.me/s/": "mira_draws", "github.com/": "mira-k",
                "www.linkedin.com/in/": "mira-k-1", "facebook.com/": "mira.k.9",
                "m.facebook.com/profile.php?id=": "100012345678",
                "www.deviantart.com/": "mira-draws", "nitter.net/": "mira",
                "nitter.poast.example/": "mira", "pixiv.net/en/users/": "123456",
                "www.tiktok.com/": "@mira", "youtube.com/c/": "mira", "twitch.tv/": "mira",
                "huggingface.co/": "mira", "": "mira.deviantart.com",
            }.items()
        ),
        ("https://art.example/@mira/11111", ["@mira"]),
        ("https://video.example/@noor_k?x=1", ["@noor_k"]),
    ],
)  # fmt: skip
def test_names_of_accounts(text: str, names: list[str]) -> None:
    """As X, Bluesky, Mastodon and Reddit write them, also in the addresses of their posts."""
    assert found(text) == [("handle", name) for name in names]


@pytest.mark.parametrize(
    "text",
    [
        "@lumen draw a fox",
        "@Lumen_Image draw a fox",
        "@lumen.bsky.social",
        "https://x.com/LumenImage/status/1",
    ],
)
def test_a_product_is_no_person(text: str) -> None:
    """The account that is asked for an image, by any of the product's names."""
    products = (bare("Lumen Image"), bare("lumen"))

    assert found(text, *products) == []
    assert len(found(text)) == 1
    assert found(text + " cc @lumen_fan", *products) == [("handle", "@lumen_fan")]


def test_an_address_has_so_many_characters_before_its_sign() -> None:
    """Mail has 64 (RFC 5321): a longer run of letters is something else."""
    assert found("x" * 65 + "@example.org") == []
    assert found("x" * 64 + "@example.org") == [("e-mail", "x" * 64 + "@example.org")]


def test_a_product_s_name_on_somebody_s_server_is_a_person() -> None:
    """Who runs a server gives its accounts any name."""
    assert found("@lumenimage@art.example", bare("Lumen Image")) == [
        ("handle", "@lumenimage@art.example")
    ]


AUTHORS = names_of(
    ["Mira_Draws", "@noor99@art.example", "hana-hikes.bsky.social", "Noor K", "northlighter",
     "painter", "paint", "art", "sam_1", "ナオミの猫の絵", "123456", None]
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("thanks mira_draws, MIRA_DRAWS's best", ["mira_draws", "MIRA_DRAWS"]),
        ("谢谢mira_draws好看", ["mira_draws"]),
        ("noor99 or noor99@art.example", ["noor99"]),
        ("by hana-hikes!", ["hana-hikes"]),
        ("as noor k and Northlighter.", ["noor k", "Northlighter"]),
        ("mira_draws_fan, xmira_draws, mira draws, a mira", []),
        ("paint some art as a painter, sam_1: 123456", []),
    ],
)
def test_a_bare_name_is_an_account_that_the_run_knows(text: str, names: list[str]) -> None:
    """Whole words alone; a short name, or one of few letters, may be any word."""
    told = sorted(accounts(text, (), AUTHORS.__contains__))
    assert list(dict.fromkeys(text[start:end] for start, end, _ in told)) == names


def test_beside_its_posts_a_shorter_name_is_enough() -> None:
    """Painter, but neither paint nor art."""
    assert names_of(["painter", "paint", "art"], SHORTEST_NAME) == {"painter"}
    text = "a painter paints art"
    assert list(accounts(text, (), {"painter"}.__contains__)) == [(2, 9, "handle")]
    assert list(accounts(text, {"painter"}, {"painter"}.__contains__)) == []
