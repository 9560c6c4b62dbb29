import re
from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.joining import OFFER, SESSION, WORDS, code, entropy, host, joiner, pair, person, reply
from helpers.scripted_pairing import ScriptedHost, ScriptedJoiner, commitment, pack, unpack
from kafila.domain.capability import Machine
from kafila.domain.errors import PeerError
from kafila.protocol.invitation import Code
from kafila.protocol.join_messages import JOIN_VERSION, MAX_JOIN_BYTES, Kind, frame
from kafila.protocol.pairing import (
    Introduction,
    OtherVersion,
    OwnKey,
    PairedHost,
    PairedJoiner,
    TurnedAway,
    TurnedAwayReason,
    WrongCode,
)
from kafila.protocol.pake import HostExchange, JoinerExchange, turn_away

CODE = code()
few = settings(max_examples=25, deadline=None)
"""Each example is one or two key exchanges in pure Python."""


def version_of(data: bytes, version: int) -> bytes:
    place = len(frame(Kind.JOINER_HELLO, b"")) - 2
    return data[:place] + bytes((version,)) + data[place + 1 :]


def kind_of(data: bytes, kind: Kind) -> bytes:
    place = len(frame(Kind.JOINER_HELLO, b"")) - 1
    return data[:place] + bytes((kind,)) + data[place + 1 :]


# Two that have the same code ---------------------------------------------------------------------


def test_both_learn_who_the_other_is_and_see_the_same_phrase() -> None:
    at_host, at_joiner = pair(host(CODE), joiner(CODE))
    assert at_host.machine == person("Attic mini").machine
    assert at_host.spki_sha256 == person("Attic mini").spki_sha256
    assert at_host.member == at_host.spki_sha256[:8].hex()
    assert at_joiner.machine == person("Kitchen laptop").machine
    assert at_joiner.spki_sha256 == person("Kitchen laptop").spki_sha256
    assert (at_joiner.session, at_joiner.group, at_joiner.model) == (SESSION, OFFER.group, OFFER.model)
    assert at_host.phrase == at_joiner.phrase
    assert len(at_host.phrase) == 3
    assert all(WORDS.place(word) is not None for word in at_host.phrase)


def test_the_channel_carries_what_follows_both_ways() -> None:
    at_host, at_joiner = pair(host(CODE), joiner(CODE))
    assert at_joiner.channel.open(at_host.channel.seal(b"welcome")) == b"welcome"
    assert at_host.channel.open(at_joiner.channel.seal(b"here I am")) == b"here I am"
    with pytest.raises(PeerError):
        at_host.channel.open(at_host.channel.seal(b"sent back"))


def test_phrases_and_keys_are_new_every_time() -> None:
    one, _ = pair(host(CODE, "a"), joiner(CODE, "b"))
    for other_host, other_joiner in (("a", "c"), ("c", "b")):
        _, other = pair(host(CODE, other_host), joiner(CODE, other_joiner))
        assert one.phrase != other.phrase
        with pytest.raises(PeerError):
            other.channel.open(one.channel.seal(b"welcome"))


def test_nothing_that_travels_shows_code_names_or_fingerprints() -> None:
    hosting, joining = host(CODE), joiner(CODE)
    hello = joining.hello
    hello_back = reply(hosting.receive(hello))
    proof = reply(joining.receive(hello_back))
    paired = hosting.receive(proof)
    assert isinstance(paired, PairedJoiner)
    travelled = b"|".join((hello, hello_back, proof, paired.reply, paired.channel.seal(b"welcome")))
    secrets = [
        CODE.secret(),
        *(word.encode() for word in (*CODE.words, CODE.check)),
        b"Kitchen",
        b"Attic",
        b"Friday",
        b"SmolLM2",
        b"welcome",
        person("Kitchen laptop").spki_sha256,
        person("Attic mini").spki_sha256,
    ]
    assert [secret for secret in secrets if secret in travelled] == []


def test_names_are_cleaned_by_whoever_sends_and_whoever_shows_them() -> None:
    spki = sha256(b"x").digest()
    me = Introduction(spki_sha256=spki, machine=Machine(name="Up\u202edown\x1b[2J\n" + "x" * 5000))
    at_host, _ = pair(host(CODE), joiner(CODE, me=me))
    assert at_host.machine.name.startswith("Up down")
    assert at_host.machine.name.isprintable()
    assert len(at_host.machine.name) <= 40


# Wrong codes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [code("other words"), code(nameplate=48)])
def test_a_wrong_code_is_refused_and_learns_nothing(wrong: Code) -> None:
    hosting, joining = host(CODE), joiner(wrong)
    refused = hosting.receive(reply(joining.receive(reply(hosting.receive(joining.hello)))))
    assert refused == WrongCode(reply=turn_away(TurnedAwayReason.WRONG_CODE))
    told = joining.receive(turn_away(TurnedAwayReason.WRONG_CODE))
    assert isinstance(told, WrongCode)
    assert told.problem().title == "This code does not open the session"


def test_one_wrong_word_is_a_wrong_code() -> None:
    wrong = Code(nameplate=47, words=(*CODE.words[:2], "velvet"), check=CODE.check)
    hosting, joining = host(CODE), joiner(wrong)
    assert isinstance(hosting.receive(reply(joining.receive(reply(hosting.receive(joining.hello))))), WrongCode)


def test_after_a_wrong_code_the_right_one_is_taken_in_a_new_exchange() -> None:
    hosting, joining = host(CODE, 1), joiner(code("wrong"), 2)
    assert isinstance(hosting.receive(reply(joining.receive(reply(hosting.receive(joining.hello))))), WrongCode)
    pair(host(CODE, 3), joiner(CODE, 4))


def test_a_refused_exchange_takes_nothing_more() -> None:
    hosting, joining = host(CODE), joiner(code("wrong"))
    proof = reply(joining.receive(reply(hosting.receive(joining.hello))))
    hosting.receive(proof)
    for again in (joining.hello, proof):
        with pytest.raises(PeerError):
            hosting.receive(again)


def test_a_host_without_the_code_is_not_believed() -> None:
    impostor, joining = host(code("guess")), joiner(CODE)
    proof = reply(joining.receive(reply(impostor.receive(joining.hello))))
    assert isinstance(impostor.receive(proof), WrongCode)
    assert isinstance(joining.receive(frame(Kind.HOST_PROOF, bytes(200))), WrongCode)


# Somebody in between who has the code ------------------------------------------------------------


@few
@given(st.integers(0))
def test_whoever_stands_between_shows_two_different_phrases(seed: int) -> None:
    mallory = person("Mallory")
    posing_as_joiner = JoinerExchange(code=CODE, me=mallory, words=WORDS, entropy=entropy((seed, "m1")))
    posing_as_host = HostExchange(code=CODE, me=mallory, offer=OFFER, words=WORDS, entropy=entropy((seed, "m2")))
    at_host, _ = pair(host(CODE, (seed, "h")), posing_as_joiner)
    _, at_joiner = pair(posing_as_host, joiner(CODE, (seed, "j")))
    assert at_host.phrase != at_joiner.phrase


MINE, THEIRS = person("Mallory").spki_sha256, person("Attic mini").spki_sha256
NONCE, OTHER_NONCE = b"n" * 32, b"o" * 32
SECRET = "-".join(CODE.words)


def scripted_joiner(commits_to: bytes, spki: bytes = MINE, nonce: bytes = NONCE) -> ScriptedJoiner:
    return ScriptedJoiner(47, SECRET, commits_to=commits_to, proves=[spki, nonce, {"name": "Mallory"}])


def scripted_host(commits_to: bytes, spki: bytes = MINE, nonce: bytes = NONCE) -> ScriptedHost:
    proves: list[object] = [spki, nonce, {"name": "Mallory"}, "group", "model"]
    return ScriptedHost(47, SECRET, commits_to=commits_to, proves=proves)


CHEATS = [
    (commitment("joiner", NONCE, THEIRS), commitment("host", NONCE, THEIRS)),
    (commitment("joiner", OTHER_NONCE, MINE), commitment("host", OTHER_NONCE, MINE)),
    (commitment("host", NONCE, MINE), commitment("joiner", NONCE, MINE)),
]
"""Commitments to another key, to another nonce, and to the right ones in the other role."""


def test_the_bytes_on_the_wire_are_the_documented_ones() -> None:
    hosting = host(CODE)
    scripted = scripted_joiner(commitment("joiner", NONCE, MINE))
    at_host = hosting.receive(scripted.prove(reply(hosting.receive(scripted.hello))))
    assert isinstance(at_host, PairedJoiner)
    proof, phrase, talk = scripted.read(at_host.reply)
    assert proof[0] == person("Kitchen laptop").spki_sha256
    assert proof[3:] == [OFFER.group, OFFER.model]
    assert WORDS.spell(int.from_bytes(phrase, "big"), 3) == at_host.phrase
    assert ChaCha20Poly1305(talk).decrypt(bytes(12), at_host.channel.seal(b"welcome"), None) == b"welcome"

    joining = joiner(CODE)
    scripted_back = scripted_host(commitment("host", NONCE, MINE))
    joining.receive(scripted_back.answer(joining.hello))
    assert isinstance(joining.receive(scripted_back.prove()), PairedHost)


@pytest.mark.parametrize("committed", [cheat for cheat, _ in CHEATS])
def test_a_joiner_that_opens_its_commitment_to_something_else_is_refused(committed: bytes) -> None:
    hosting, cheating = host(CODE), scripted_joiner(committed)
    proof = cheating.prove(reply(hosting.receive(cheating.hello)))
    with pytest.raises(PeerError, match="commitment"):
        hosting.receive(proof)


@pytest.mark.parametrize("committed", [cheat for _, cheat in CHEATS])
def test_a_host_that_opens_its_commitment_to_something_else_is_refused(committed: bytes) -> None:
    joining, cheating = joiner(CODE), scripted_host(committed)
    joining.receive(cheating.answer(joining.hello))
    with pytest.raises(PeerError, match="commitment"):
        joining.receive(cheating.prove())


def test_names_that_were_not_cleaned_by_their_sender_are_cleaned_here() -> None:
    dirty = "Up\u202edown\x1b\n" + "x" * 500
    committed = commitment("joiner", NONCE, MINE)
    scripted = ScriptedJoiner(47, SECRET, commits_to=committed, proves=[MINE, NONCE, {"name": dirty}])
    hosting = host(CODE)
    at_host = hosting.receive(scripted.prove(reply(hosting.receive(scripted.hello))))
    assert isinstance(at_host, PairedJoiner)
    proves: list[object] = [MINE, NONCE, {"name": dirty}, dirty, dirty]
    scripted_back = ScriptedHost(47, SECRET, commits_to=commitment("host", NONCE, MINE), proves=proves)
    joining = joiner(CODE)
    joining.receive(scripted_back.answer(joining.hello))
    at_joiner = joining.receive(scripted_back.prove())
    assert isinstance(at_joiner, PairedHost)
    for shown in (at_host.machine.name, at_joiner.machine.name, at_joiner.group, at_joiner.model):
        assert shown.startswith("Up down x")
        assert shown.isprintable()
        assert len(shown) <= 80


def test_nobody_is_paired_with_its_own_key() -> None:
    twin = person("Kitchen laptop").spki_sha256
    hosting, scripted = host(CODE), scripted_joiner(commitment("joiner", NONCE, twin), spki=twin)
    refused = hosting.receive(scripted.prove(reply(hosting.receive(scripted.hello))))
    assert isinstance(refused, OwnKey)
    told = joiner(CODE).receive(refused.reply)
    assert isinstance(told, TurnedAway)
    assert "hosts that session itself" in told.problem().title
    joining, scripted_back = joiner(CODE), scripted_host(commitment("host", NONCE, THEIRS), spki=THEIRS)
    joining.receive(scripted_back.answer(joining.hello))
    with pytest.raises(PeerError, match="own key"):
        joining.receive(scripted_back.prove())


@pytest.mark.parametrize(
    "proves",
    [
        [MINE, NONCE, {"name": 7}],
        [MINE, NONCE],
        [MINE, NONCE, {"name": "M"}, "too much"],
        [MINE[:8], NONCE, {"name": "M"}],
        [MINE, NONCE, {"name": "M", "kind": "toaster"}],
    ],
)
def test_a_proof_that_holds_something_else_is_a_fault(proves: list[object]) -> None:
    scripted = ScriptedJoiner(47, SECRET, commits_to=commitment("joiner", NONCE, MINE), proves=proves)
    hosting = host(CODE)
    proof = scripted.prove(reply(hosting.receive(scripted.hello)))
    with pytest.raises(PeerError, match="cannot be read"):
        hosting.receive(proof)


# Messages that go astray -------------------------------------------------------------------------


def test_a_message_sent_back_to_its_sender_is_a_fault() -> None:
    hosting, joining = host(CODE), joiner(CODE)
    hello_back = reply(hosting.receive(joining.hello))
    with pytest.raises(PeerError):
        joiner(CODE).receive(joining.hello)
    with pytest.raises(PeerError):
        joiner(CODE).receive(kind_of(joining.hello, Kind.HOST_HELLO))
    with pytest.raises(PeerError):
        host(CODE).receive(hello_back)
    proof = reply(joining.receive(hello_back))
    assert isinstance(joining.receive(kind_of(proof, Kind.HOST_PROOF)), WrongCode)


def test_a_hello_built_from_the_joiners_own_parts_is_a_fault() -> None:
    joining = joiner(CODE)
    pake, theirs = unpack(joining.hello)
    for side in (pake, b"A" + pake[1:], b"S" + pake[1:], b"A" + bytes(32), b"A" + b"\xff" * 32):
        with pytest.raises(PeerError):
            joiner(CODE).receive(pack(2, [bytes(16), side, theirs]))


def test_messages_of_another_exchange_do_not_fit() -> None:
    first, second = joiner(CODE, 1), joiner(CODE, 2)
    hosting, other = host(CODE, 3), host(CODE, 4)
    first_proof = reply(first.receive(reply(hosting.receive(first.hello))))
    other.receive(second.hello)
    assert isinstance(other.receive(first_proof), WrongCode)
    assert isinstance(hosting.receive(first_proof), PairedJoiner)
    replayed = host(CODE, 5)
    replayed.receive(first.hello)
    assert isinstance(replayed.receive(first_proof), WrongCode)


@few
@given(st.integers(0), st.integers(1, 255))
def test_a_hello_changed_on_its_way_pairs_nobody(place: int, change: int) -> None:
    hosting, joining = host(CODE), joiner(CODE)
    hello = bytearray(joining.hello)
    hello[place % len(hello)] ^= change
    try:
        answered = hosting.receive(bytes(hello))
        if isinstance(answered, OtherVersion):
            return
        proved = joining.receive(reply(answered))
        assert isinstance(hosting.receive(reply(proved)), WrongCode)
    except PeerError:
        pass


@few
@given(st.integers(0), st.integers(1, 255))
def test_a_host_hello_changed_on_its_way_pairs_nobody(place: int, change: int) -> None:
    hosting, joining = host(CODE), joiner(CODE)
    hello = bytearray(reply(hosting.receive(joining.hello)))
    hello[place % len(hello)] ^= change
    try:
        proved = joining.receive(bytes(hello))
        if not isinstance(proved, OtherVersion | TurnedAway | WrongCode):
            assert isinstance(hosting.receive(reply(proved)), WrongCode)
    except PeerError:
        pass


def test_messages_out_of_their_order_end_the_exchange() -> None:
    hosting, joining = host(CODE), joiner(CODE)
    hello_back = reply(hosting.receive(joining.hello))
    with pytest.raises(PeerError):
        hosting.receive(joining.hello)
    with pytest.raises(PeerError):
        hosting.receive(reply(joining.receive(hello_back)))
    with pytest.raises(PeerError):
        joining.receive(hello_back)


def test_a_paired_exchange_takes_nothing_more() -> None:
    hosting, joining = host(CODE), joiner(CODE)
    proof = reply(joining.receive(reply(hosting.receive(joining.hello))))
    paired = hosting.receive(proof)
    assert isinstance(paired, PairedJoiner)
    joining.receive(paired.reply)
    for machine, data in ((hosting, proof), (joining, paired.reply)):
        with pytest.raises(PeerError):
            machine.receive(data)


messages = st.one_of(
    st.binary(max_size=80),
    st.builds(frame, st.sampled_from(Kind), st.binary(max_size=120)),
    st.builds(
        pack,
        st.sampled_from(Kind),
        st.lists(st.one_of(st.binary(max_size=40), st.integers(0, 9), st.just(b"A" + b"x" * 32)), max_size=6),
    ),
)


@settings(max_examples=60, deadline=None)
@given(messages)
def test_garbage_is_a_fault_or_a_refusal(data: bytes) -> None:
    for machine in (host(CODE), joiner(CODE)):
        try:
            outcome = machine.receive(data)
        except PeerError:
            continue
        assert isinstance(outcome, OtherVersion | TurnedAway | WrongCode)


@pytest.mark.parametrize("data", [b"", b"kafila", b"kafila\x01", frame(Kind.JOINER_HELLO, bytes(MAX_JOIN_BYTES))])
def test_lengths_that_cannot_be_are_faults(data: bytes) -> None:
    with pytest.raises(PeerError):
        host(CODE).receive(data)
    with pytest.raises(PeerError):
        joiner(CODE).receive(data)


def test_deep_nesting_is_a_fault() -> None:
    with pytest.raises(PeerError):
        host(CODE).receive(frame(Kind.JOINER_HELLO, b"\x91" * 4000))


# Other versions, and being turned away -----------------------------------------------------------


@pytest.mark.parametrize(("theirs", "older"), [(2, "this computer"), (255, "this computer"), (0, "the other computer")])
def test_another_version_is_told_on_both_sides(theirs: int, older: str) -> None:
    at_host = host(CODE).receive(version_of(joiner(CODE).hello, theirs))
    assert isinstance(at_host, OtherVersion)
    assert older in at_host.problem().advice
    assert at_host.reply is not None
    at_joiner = joiner(CODE).receive(version_of(at_host.reply, theirs))
    assert isinstance(at_joiner, OtherVersion)
    assert at_joiner.theirs == theirs
    assert older in at_joiner.problem().advice


def test_what_a_host_of_this_version_tells_others_is_its_version() -> None:
    at_host = host(CODE).receive(version_of(joiner(CODE).hello, 2))
    assert isinstance(at_host, OtherVersion)
    assert at_host.reply is not None
    assert at_host.reply == frame(Kind.HOST_HELLO, b"")
    assert version_of(at_host.reply, JOIN_VERSION) == at_host.reply


def test_the_version_does_not_change_on_the_way() -> None:
    hosting, joining = host(CODE), joiner(CODE)
    proof = reply(joining.receive(reply(hosting.receive(joining.hello))))
    with pytest.raises(PeerError):
        hosting.receive(version_of(proof, 2))


@pytest.mark.parametrize(
    ("reason", "title"),
    [(TurnedAwayReason.BUSY, "Others are joining right now"), (TurnedAwayReason.CODE_ENDED, "This code has ended")],
)
def test_a_joiner_that_is_turned_away_is_told_why(reason: TurnedAwayReason, title: str) -> None:
    told = joiner(CODE).receive(turn_away(reason))
    assert isinstance(told, TurnedAway)
    assert told.problem().title == title


@pytest.mark.parametrize("body", [b"", b"\x00", b"\x05", b"\x01\x01"])
def test_a_refusal_for_no_known_reason_is_a_fault(body: bytes) -> None:
    with pytest.raises(PeerError):
        joiner(CODE).receive(frame(Kind.TURNED_AWAY, body))


# Secrets -----------------------------------------------------------------------------------------


def test_nothing_that_is_shown_or_raised_holds_a_secret() -> None:
    hosting, joining = host(CODE, "h"), joiner(CODE, "j")
    hello_back = hosting.receive(joining.hello)
    proof = joining.receive(reply(hello_back))
    paired = hosting.receive(reply(proof))
    assert isinstance(paired, PairedJoiner)
    paired_back = joining.receive(paired.reply)
    shown = [repr(value) + str(value) for value in (hosting, joining, hello_back, proof, paired, paired_back)]
    for machine in (hosting, joining):
        with pytest.raises(PeerError) as raised:
            machine.receive(b"kafila\x01\x03" + SECRET.encode())
        shown.append(repr(raised.value) + str(raised.value) + raised.value.fault)
    parts = [*CODE.words, CODE.check, *paired.phrase, repr(entropy("h")[64:])[2:-1], repr(entropy("j")[64:])[2:-1]]
    secrets = re.compile("|".join(re.escape(part) for part in parts))
    assert [text for text in shown if secrets.search(text)] == []


def test_entropy_of_another_length_is_a_mistake_of_ours() -> None:
    with pytest.raises(ValueError, match="random bytes"):
        JoinerExchange(code=CODE, me=person("A"), words=WORDS, entropy=bytes(64))
