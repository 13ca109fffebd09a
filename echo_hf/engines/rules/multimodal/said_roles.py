"""What an author says about the roles of a post's pictures: "1st is my photo, 2nd the edit"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from echo_hf.engines.rules.folding import fold
from echo_hf.engines.rules.multimodal import ordinals as which
from echo_hf.engines.rules.multimodal import role_words as said
from echo_hf.engines.rules.multimodal.role_tokens import (
    HINTS,
    NO_PICTURE,
    ROLES,
    Role,
    Token,
    parts_of,
    tokens_of,
)
from echo_hf.engines.rules.names import Names

LONGEST_JOINT = 8  # characters between two words that belong together
STOP = Token("stop", 0, 0, "")


@dataclass
class Said:
    """What a text says about the pictures of its post.

    Attributes:
        roles: The role of each picture that it gives one, by place from 1.
        order: The roles of all pictures, where it only lists them, as in "before / after".
        mentioned: All roles that it speaks of.
        names_input: Whether it calls something an input, and not only its author's.
        sides: Whether it speaks of a left and a right, or a top and a bottom.
    """

    roles: dict[int, Role] = field(default_factory=dict)
    order: tuple[Role, ...] | None = None
    mentioned: set[Role] = field(default_factory=set)
    names_input: bool = False
    sides: bool = False


def said_about(text: str, pictures: int, names: Names) -> Said:
    """Reads what a text says about the pictures of its post.

    Args:
        text: What the author says beside the prompt.
        pictures: How many pictures the post has.
        names: The names around the target.

    Returns:
        What it says; a picture that is given two roles has none.

    Example:
        >>> lumen = {"name": "Lumen", "developer": "", "aliases": [], "others": [],
        ...     "chat_window": None}
        >>> from echo_hf.engines.rules.names import names_of
        >>> said_about("1st is my photo, 2nd what it gave me back", 2, names_of(lumen)).roles
        {1: 'input', 2: 'output'}
    """
    tokens = tokens_of(fold(text), names)
    kinds = {token.kind for token in tokens}
    sides = {"left", "right"} <= kinds
    about = Said(
        order=_order(tokens, pictures),
        mentioned={ROLES[kind] for kind in kinds if kind in ROLES},
        names_input=any(map(_names_input, tokens)),
        sides=sides,
    )
    if kinds & {"idiom", "reversed"}:
        about.mentioned |= {"input", "output"}
    given = [one for clause in _clauses(tokens) for one in _assigned(clause)]
    _settle(about, given, pictures, sides=sides)
    return about


def _names_input(token: Token) -> bool:
    return token.kind == "input" and not said.POSSESSIVE.match(token.text)


def _order(tokens: Sequence[Token], pictures: int) -> tuple[Role, ...] | None:
    for token in tokens:
        if token.kind == "idiom":
            return ("input", "output")
        if token.kind == "reversed":
            return ("output", "input")
    for listed in _lists_of_roles(tokens):
        near = all(other.start - one.end <= LONGEST_JOINT for one, other in pairwise(listed))
        told = tuple(_role_of(token) for token in listed)
        # Two roles in a sentence are mostly a story: "I gave it my photo and the result is great".
        complete = len(told) == max(2, pictures) and {"input", "output"} <= set(told)
        if complete and (near or len(told) > 2):
            return told
    return None


def _lists_of_roles(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The words that name roles one by one in a sentence: "my cat, my sofa, the result"."""
    told: list[Token] = []
    for part in [*parts_of(tokens), [STOP]]:
        if part and part[0].kind == "stop":
            yield told
            told = []
        spoken = [one for one in part if one.kind in ROLES]
        spoken = spoken or [one for one in part if one.kind in HINTS]
        if len({_role_of(one) for one in spoken}) == 1 and not any(map(_is_meant, part)):
            told.append(spoken[0])


def _role_of(token: Token) -> Role:
    return ROLES.get(token.kind) or HINTS[token.kind]


def _clauses(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The tokens by clause; in "inputs: 1, 2" a pause ends none."""
    clause: list[Token] = []
    for part in parts_of(tokens):
        new_sentence = bool(part) and part[0].kind == "stop"
        if new_sentence or (_has_role(clause) and not _lists(clause, part)):
            yield clause
            clause = []
        clause += [token for token in part if token.kind != "stop"]
    yield clause


def _lists(clause: Sequence[Token], part: Sequence[Token]) -> bool:
    near = bool(part) and part[0].start - clause[-1].end <= LONGEST_JOINT
    told = _is_meant(clause[-1]) and not _is_meant(clause[0])
    return near and told and all(map(_is_meant, part))


def _has_role(clause: Sequence[Token]) -> bool:
    return any(token.kind in ROLES or token.kind in HINTS for token in clause)


def _is_meant(token: Token) -> bool:
    return token.kind not in NO_PICTURE


def _assigned(clause: Sequence[Token]) -> Iterator[tuple[list[Token], Role]]:
    """Which pictures a clause gives which role."""
    spoken = [token for token in clause if token.kind in ROLES]
    meant = [token for token in clause if _is_meant(token)]
    if not meant:
        return
    kinds = {token.kind for token in spoken}
    if not spoken:
        hints = [HINTS[token.kind] for token in clause if token.kind in HINTS]
        if hints:
            yield meant, hints[-1]
    elif len(kinds) == 1:
        yield meant, ROLES[spoken[0].kind]
    elif len(meant) == 1:
        # "the edit of my photo", "my photo, edited"
        yield meant, "output" if "output" in kinds else "neither"
    else:
        yield from _one_by_one(clause)


def _one_by_one(clause: Sequence[Token]) -> Iterator[tuple[list[Token], Role]]:
    """A clause such as "1 original 2 result", or "original first result second"."""
    told = [token for token in clause if token.kind in ROLES or _is_meant(token)]
    role_first = told[0].kind in ROLES
    pending: list[Token] = []
    for token in told:
        if role_first and token.kind not in ROLES and pending:
            yield [token], ROLES[pending.pop().kind]
        elif not role_first and token.kind in ROLES and pending:
            yield pending, ROLES[token.kind]
            pending = []
        elif (token.kind in ROLES) == role_first:
            pending.append(token)


def _settle(
    about: Said, given: Sequence[tuple[list[Token], Role]], pictures: int, *, sides: bool
) -> None:
    roles: dict[int, set[Role]] = {}
    rest: Role | None = None
    for tokens, role in given:
        for token in tokens:
            if token.kind == "rest":
                rest = role
            elif token.kind in ("left", "right") and not (sides and pictures == 2):
                continue
            else:
                for at in _places(token, pictures):
                    roles.setdefault(at, set()).add(role)
    if any(not 1 <= at <= pictures for at in roles):
        return  # It counts something else.
    about.roles = {at: some.pop() for at, some in sorted(roles.items()) if len(some) == 1}
    if rest and about.roles:
        about.roles |= {at: rest for at in range(1, pictures + 1) if at not in roles}


def _places(token: Token, pictures: int) -> Sequence[int]:
    if token.kind == "nth":
        return [which.nth_of(token.text)]
    if token.kind == "few":
        return range(1, which.count_of(token.text) + 1)
    if token.kind == "last_few":
        return range(pictures - which.count_of(token.text) + 1, pictures + 1)
    fixed = {"left": 1, "right": 2, "last": pictures, "n1": 1, "n2": 2, "n3": 3, "n4": 4}
    return [fixed[token.kind]]
