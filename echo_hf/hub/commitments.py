"""Commit to sealed samples by a Merkle root over salted rows, and draw which ones are sealed."""

from __future__ import annotations

import hashlib
import hmac
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated

from pydantic import Field, NonNegativeInt, StringConstraints

from echo_hf.config.checks import Section

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
TagName = Annotated[str, StringConstraints(max_length=100)]
PathStep = Annotated[str, StringConstraints(pattern=r"^[LR][0-9a-f]{64}$")]
MAX_STEPS = 64


class Seal(Section):
    """The root of the sealed samples, how many there are, and of which tasks.

    Attributes:
        root: The Merkle root over their rows.
        rows: How many there are in each split.
        task_families: How many there are of each kind of task.
        private: Whether these very rows are in the release that says so.
    """

    root: Sha256
    rows: Mapping[str, NonNegativeInt]
    task_families: Mapping[str, NonNegativeInt] = {}
    private: bool = False


class Reveal(Section):
    """The root that a tag was published with, and how many rows it stands for."""

    root: Sha256
    rows: NonNegativeInt


class Opening(Section):
    """The proof that a row was sealed under a root; its tag is empty while it is sealed.

    Attributes:
        tag: The tag whose release has the root.
        root: That root.
        id: The sample.
        salt: The salt of its leaf.
        path: From the leaf to the root, the other node of each pair: L for one on the left, or R.
    """

    tag: TagName
    root: Sha256
    id: Annotated[str, StringConstraints(max_length=200)]
    salt: Sha256
    path: Annotated[tuple[PathStep, ...], Field(max_length=MAX_STEPS)]

    def proves(self, content: bytes) -> bool:
        """Return whether a row, as canonical JSON, was sealed under the root."""
        node = hash_leaf(bytes.fromhex(self.salt), content)
        for step in self.path:
            other = bytes.fromhex(step[1:])
            node = hash_pair(other, node) if step[0] == "L" else hash_pair(node, other)
        return node.hex() == self.root


def is_drawn(key: bytes, post_id: str, share: float) -> bool:
    """Return whether the samples of a post are drawn, whatever other posts there are."""
    draw = hmac.digest(key, post_id.encode(), "sha256")
    return int.from_bytes(draw, "big") < share * 2**256


def make_salt(key: bytes, content: bytes) -> bytes:
    """Return the salt of a row: nobody without the key can tell it, and a build finds it again."""
    return hmac.digest(key, b"\0salt\0" + content, "sha256")


def hash_leaf(salt: bytes, content: bytes) -> bytes:
    return hashlib.sha256(b"\0" + salt + content).digest()


def hash_pair(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


def build_tree(leaves: Sequence[bytes]) -> list[list[bytes]]:
    """Return the levels of a Merkle tree, leaves first; an odd node goes up as it is."""
    levels = [list(leaves)]
    while len(nodes := levels[-1]) > 1:
        pairs = (nodes[start : start + 2] for start in range(0, len(nodes), 2))
        levels.append([hash_pair(*pair) if len(pair) == 2 else pair[0] for pair in pairs])
    return levels


def find_path(levels: Sequence[Sequence[bytes]], position: int) -> tuple[str, ...]:
    """Return the path from a leaf to the root."""
    steps = []
    for nodes in levels[:-1]:
        other = position ^ 1
        if other < len(nodes):
            steps.append(("L" if other < position else "R") + nodes[other].hex())
        position //= 2
    return tuple(steps)


Links = Mapping[str, Collection[str]]  # of each sample, the posts and images that it has


def choose_sealed(
    links: Links, drawn: Collection[str], public: Collection[str], sealed: Collection[str]
) -> set[str]:
    """Return the samples that are kept out of a release.

    What was public stays so, and what was sealed. Of new samples those that share a post or an
    image with a sealed one are kept out with it; of the others, those that are drawn, unless they
    share one with a sample that is public.
    """
    kept = {name for name in links if name in sealed and name not in public}
    new = {name: own for name, own in links.items() if name not in public and name not in kept}
    kept |= _find_linked(kept, links, new)
    rest = {name: own for name, own in new.items() if name not in kept}
    others = [name for name in links if name not in kept and (name in public or name not in drawn)]
    return kept | (rest.keys() - _find_linked(others, links, rest) - {*others})


def _find_linked(names: Iterable[str], links: Links, among: Links) -> set[str]:
    """Return the samples that share something with others, if only through one in between."""
    holders: dict[str, list[str]] = defaultdict(list)
    for name, keys in among.items():
        for key in keys:
            holders[key].append(name)
    reached, pending = set[str](), [key for name in names for key in links[name]]
    while pending:
        for name in holders.pop(pending.pop(), ()):
            if name not in reached:
                reached.add(name)
                pending += among[name]
    return reached
