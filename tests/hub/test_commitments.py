"""A root stands for salted rows: each is proven under it, and nothing else is."""

from __future__ import annotations

import hashlib
import hmac
import random
from collections.abc import Sequence

import pytest
from pydantic import ValidationError

from echo_hf.hub.commitments import (
    MAX_STEPS,
    Opening,
    build_tree,
    choose_sealed,
    find_path,
    hash_leaf,
    is_drawn,
    make_salt,
)

KEY = bytes(range(32))


def sha(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def root_by_hand(leaves: Sequence[bytes]) -> bytes:
    """Level by level, from the rule alone."""
    level = list(leaves)
    while len(level) > 1:
        above = [sha(b"\1", a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = above + ([level[-1]] if len(level) % 2 else [])
    return level[0]


def openings(contents: Sequence[bytes]) -> list[Opening]:
    salts = [make_salt(KEY, content) for content in contents]
    levels = build_tree([hash_leaf(*pair) for pair in zip(salts, contents, strict=True)])
    return [
        Opening(
            tag="v1",
            root=levels[-1][0].hex(),
            id=f"s{number}",
            salt=salt.hex(),
            path=find_path(levels, number),
        )
        for number, salt in enumerate(salts)
    ]


@pytest.mark.parametrize("count", range(1, 41))
def test_each_row_is_proven_under_the_root_and_no_other_row_is(count: int) -> None:
    contents = [f'{{"prompt":"row {number}"}}'.encode() for number in range(count)]
    proofs = openings(contents)
    leaves = [sha(b"\0", make_salt(KEY, content), content) for content in contents]
    assert {proof.root for proof in proofs} == {root_by_hand(leaves).hex()}
    for number, proof in enumerate(proofs):
        assert [proof.proves(content) for content in contents] == [
            other == number for other in range(count)
        ]


def test_no_altered_bit_is_proven() -> None:
    contents = [bytes([number]) * 9 for number in range(11)]
    proof = openings(contents)[6]
    assert proof.proves(contents[6])
    for bit in range(9 * 8):
        altered = (int.from_bytes(contents[6], "big") ^ (1 << bit)).to_bytes(9, "big")
        assert not proof.proves(altered)

    def flip(text: str, place: int) -> str:
        return f"{text[:place]}{int(text[place], 16) ^ 1:x}{text[place + 1 :]}"

    for place in range(64):
        for name in ("salt", "root"):
            changed = {name: flip(getattr(proof, name), place)}
            assert not proof.model_copy(update=changed).proves(contents[6])
        for number, step in enumerate(proof.path):
            path = [*proof.path]
            path[number] = flip(step, place + 1)
            assert not proof.model_copy(update={"path": tuple(path)}).proves(contents[6])
    for number, step in enumerate(proof.path):
        side = {"L": "R", "R": "L"}[step[0]] + step[1:]
        path = (*proof.path[:number], side, *proof.path[number + 1 :])
        assert not proof.model_copy(update={"path": path}).proves(contents[6])
        shorter = (*proof.path[:number], *proof.path[number + 1 :])
        assert not proof.model_copy(update={"path": shorter}).proves(contents[6])


def test_a_pair_of_nodes_is_no_row() -> None:
    """Else the two halves of a tree would be a row that nobody has sealed."""
    left, right = (sha(b"\0", bytes(32), text) for text in (b"a", b"b"))
    root = sha(b"\1", left, right).hex()
    for salt, content in ((left, right), (bytes(32), left + right)):
        proof = Opening(tag="v1", root=root, id="s", salt=salt.hex(), path=())
        assert not proof.proves(content)


@pytest.mark.parametrize(
    "changed",
    [
        {"path": ("R" + "0" * 64,) * (MAX_STEPS + 1)},
        {"path": ("../../etc/passwd",)},
        {"path": ("X" + "0" * 64,)},
        {"salt": "0" * 63},
        {"root": "0" * 63 + "g"},
        {"id": "s" * 201},
        {"more": 1},
    ],
)
def test_a_proof_of_another_shape_is_refused(changed: dict[str, object]) -> None:
    proof = openings([b"a", b"b"])[0]
    with pytest.raises(ValidationError):
        Opening.model_validate(proof.model_dump() | changed)


def test_a_post_is_drawn_by_its_own_name_and_the_key_alone() -> None:
    names = [f"post {number}" for number in range(4000)]
    drawn = [name for name in names if is_drawn(KEY, name, 0.2)]
    assert 0.17 < len(drawn) / len(names) < 0.23  # 4.7 standard errors
    by_hand = [
        name
        for name in names
        if int(hmac.new(KEY, name.encode(), hashlib.sha256).hexdigest(), 16) * 5 < 2**256
    ]
    assert drawn == by_hand
    assert {*drawn} <= {name for name in names if is_drawn(KEY, name, 0.5)}
    assert not any(is_drawn(KEY, name, 0.0) for name in names)
    others = [name for name in names if is_drawn(KEY[::-1], name, 0.2)]
    assert len({*drawn} & {*others}) < 0.35 * len(drawn)


def test_what_is_public_stays_public_and_what_is_sealed_sealed() -> None:
    links = {"a": ["1"], "b": ["2"], "c": ["3"], "d": ["4"]}
    assert choose_sealed(links, {*"abcd"}, {"a"}, {"b"}) == {*"bcd"}
    assert choose_sealed(links, (), {"a"}, {"b"}) == {"b"}
    assert choose_sealed(links, (), {"b"}, {"b"}) == set()  # it was revealed


def test_a_sample_that_shares_an_image_with_a_public_one_is_never_drawn() -> None:
    """Not through a third one either; `f` is drawn and shares nothing."""
    links = {"a": ["1"], "b": ["1", "2"], "c": ["2", "3"], "d": ["3"], "e": ["9"], "f": ["8"]}
    assert choose_sealed(links, {*"bcdf"}, {"a"}, ()) == {"f"}
    assert choose_sealed(links, {*"bcdf"}, (), ()) == {"f"}  # as `a` is not drawn
    assert choose_sealed(links, {*"abcdf"}, (), ()) == {*"abcdf"}


def test_a_new_sample_that_shares_an_image_with_a_sealed_one_stays_away_with_it() -> None:
    links = {"a": ["1"], "b": ["1", "2"], "c": ["2"], "d": ["2", "3"], "e": ["3"]}
    assert choose_sealed(links, (), {"e"}, {"a"}) == {*"abcd"}


def test_the_choice_is_the_least_that_keeps_the_rules() -> None:
    """Against the rules, one by one, on random graphs of samples."""
    draws = random.Random(47)
    for _ in range(300):
        names = [f"s{number}" for number in range(draws.randint(1, 9))]
        links = {name: draws.sample("abcdefgh", draws.randint(1, 2)) for name in names}
        drawn = {name for name in names if draws.random() < 0.5}
        public = {name for name in names if draws.random() < 0.2}
        sealed = {name for name in names if draws.random() < 0.2}
        chosen = choose_sealed(links, drawn, public, sealed)
        assert chosen.isdisjoint(public)
        assert sealed - public <= chosen
        for name in {*names} - public - sealed:
            near = {other for other in names if {*links[other]} & {*links[name]}} - {name}
            if name not in chosen:  # it shows nothing of a sealed one
                assert near.isdisjoint(chosen - public)
        reached = sealed - public
        while True:
            more = {
                name
                for name in {*names} - public - reached
                if any({*links[name]} & {*links[other]} for other in reached)
            }
            if not more:
                break
            reached |= more
        for name in chosen - reached:  # it is drawn, and shares nothing with what is public
            assert name in drawn
            assert not any({*links[name]} & {*links[other]} for other in {*names} - chosen)
