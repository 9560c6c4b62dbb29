"""What everybody can read who sits at the rendezvous, of a session that has no other way: nothing of it."""

from itertools import pairwise
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from end_to_end.alone import Alone
from helpers.processes import Home, Homes
from kafila.network.identity import DeviceIdentity
from kafila.network.quic import ALPN
from nat.sessions import AT, finish, laid_out, start
from natlab.capture import capturing
from natlab.hellos import quic_hellos, tls_hellos
from natlab.rules import Nat

pytestmark = [pytest.mark.mlx, pytest.mark.timeout(300)]

PROMPT = "Zanzibar harbours seventeen quiet lighthouses, and nobody may know."
HOST, JOINER = ("Zebulon’s attic tower", "Zebulon Quickfoot"), ("Philippa’s slow laptop", "Philippa Underhill")
WINDOW = 12
"""Bytes in a row that do not come about by chance."""


def test_the_rendezvous_sees_no_word_of_what_is_said(homes: Homes, alone: Alone, tmp_path: Path) -> None:
    """Everything goes by way of the relay here, so every packet of the session passes the rendezvous."""
    model = alone.make_tiny(tmp_path / "marvellous-model", seed=1)
    identities = [DeviceIdentity.generate() for _ in range(2)]
    places = [a_home(homes, *each) for each in zip(identities, (HOST, JOINER), strict=True)]
    with laid_out(Nat.SYMMETRIC, Nat.UDP_BLOCKED) as lab, capturing(lab.middle) as capture:
        start(lab.middle, homes.new(), "rendezvous", "--listen", AT, "--json").event("listening")
        how = ("--members", 2, "--admit", "all", "--rendezvous", AT, "--max-tokens", 8, "--prompt", PROMPT)
        host = start(lab["0"], places[0], "host", "--model", model, *how, "--json")
        invited = host.event("code")
        joiner = start(lab["1"], places[1], "join", invited["link"], "--json")
        answer = finish([host, joiner])
    assert {edge["path"] for edge in answer["edges"]} == {"relayed"}
    assert {member["name"] for member in answer["members"]} == {HOST[0], JOINER[0]}

    rows = alone.hidden_states(model, PROMPT)
    everything = b"\n".join(capture.packets)
    # It is the capture of this session: the whole prompt's activations went through.
    assert len(everything) > len(PROMPT) * len(rows[0])
    names = [*HOST, *JOINER, model.name, "model.layers"]
    for text in (*told_by(invited["code"]), *names):
        for seen in (text.encode(), text.encode("utf-16-le"), text.encode("ascii", "backslashreplace")):
            assert seen not in everything, text
    for kind, secret in {
        **{f"activations {place}": row for place, row in enumerate(rows)},
        **{f"keys {place}": key for place, each in enumerate(identities) for key in keys_of(each)},
        "prompt": PROMPT.encode(),
        "answer": answer["text"].encode(),
    }.items():
        for window in windows(secret):
            assert window not in everything, kind

    # The one part of a handshake that is readable on the way is the same for everyone, and names nobody.
    dialled = quic_hellos(capture.packets)
    assert {(hello.server_name, *(hello.alpn_protocols or ())) for hello in dialled} == {(None, ALPN)}
    assert len({hello.server_name for hello in tls_hellos(capture.packets)} - {None}) <= 1


def told_by(code: str) -> list[str]:
    """Every part of a code that tells something, and is too long to come about by chance."""
    _, *words = code.split("-")
    pairs = ["-".join(pair) for pair in pairwise(words)]
    return [*pairs, *(word for word in words if len(word) > 5)]


def a_home(homes: Homes, identity: DeviceIdentity, names: tuple[str, str]) -> Home:
    """The home of somebody with this key and these names, of the machine and of its owner."""
    home = homes.new()
    home.put_key(identity.to_bytes())
    home.put_names(machine=names[0], owner=names[1])
    return home


def keys_of(identity: DeviceIdentity) -> list[bytes]:
    """What would tell a device's key: itself, its public half, the certificate, the fingerprint."""
    public = identity.private_key.public_key().public_bytes_raw()
    signature = identity.certificate.signature
    return [
        identity.to_bytes(),
        public,
        signature,
        identity.certificate.public_bytes(Encoding.DER),
        identity.spki_sha256,
    ]


def windows(data: bytes) -> list[bytes]:
    return [data[start : start + WINDOW] for start in range(0, len(data) - WINDOW + 1, WINDOW)]
