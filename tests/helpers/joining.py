"""Codes, people and exchanges for the tests of joining. All of it is real; only chance is not."""

import random
from hashlib import sha256

from kafila.assets import asset
from kafila.domain.capability import Machine
from kafila.domain.ids import SessionId
from kafila.protocol.invitation import Code, make_code
from kafila.protocol.pairing import GoOn, Introduction, Offer, PairedHost, PairedJoiner
from kafila.protocol.pake import EXCHANGE_ENTROPY_BYTES, HostExchange, JoinerExchange
from kafila.protocol.words import WordList

WORDS = WordList.from_text(asset("words.txt").read_text(encoding="ascii"))
SESSION = SessionId("0f" * 16)
OFFER = Offer(session=SESSION, group="Friday group", model="SmolLM2 135M")


def entropy(seed: object, size: int = EXCHANGE_ENTROPY_BYTES) -> bytes:
    return random.Random(repr(seed)).randbytes(size)  # noqa: S311


def code(seed: object = 0, nameplate: int = 47) -> Code:
    return make_code(nameplate, entropy(seed, 5), WORDS)


def person(name: str) -> Introduction:
    return Introduction(spki_sha256=sha256(name.encode()).digest(), machine=Machine(name=name, owner="Ada"))


def host(with_code: Code, seed: object = "host", me: Introduction | None = None) -> HostExchange:
    me = me or person("Kitchen laptop")
    return HostExchange(code=with_code, me=me, offer=OFFER, words=WORDS, entropy=entropy(seed))


def joiner(with_code: Code, seed: object = "joiner", me: Introduction | None = None) -> JoinerExchange:
    me = me or person("Attic mini")
    return JoinerExchange(code=with_code, me=me, words=WORDS, entropy=entropy(seed))


def reply(outcome: object) -> bytes:
    """What is to be sent while nothing is decided."""
    assert isinstance(outcome, GoOn)
    return outcome.reply


def pair(hosting: HostExchange, joining: JoinerExchange) -> tuple[PairedJoiner, PairedHost]:
    """Carry all four messages."""
    at_host = hosting.receive(reply(joining.receive(reply(hosting.receive(joining.hello)))))
    assert isinstance(at_host, PairedJoiner)
    at_joiner = joining.receive(at_host.reply)
    assert isinstance(at_joiner, PairedHost)
    return at_host, at_joiner
