"""A rendezvous that is abused in every way at once, beside a pair that goes on talking.

The rendezvous is a process of its own; each abuser has an address of its own on the loopback network.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
import pytest

from helpers.abuse import CONTINUED, PING, TEXT, Abuser, Line, junk, ws_frame
from helpers.honest import Pair, honest
from helpers.processes import homes_in
from helpers.tls import CERTIFICATE
from kafila.network.bench.sessions import has_many_addresses
from kafila.network.rendezvous_server import RendezvousServer
from kafila.protocol.links import Address
from kafila.protocol.relay_frames import (
    SEATED,
    KeepAliveFrame,
    RelayedFrame,
    encode_to_relay,
)
from kafila.protocol.rendezvous import (
    MAX_BODY_BYTES,
    MAX_SIGNAL_BYTES,
    Ack,
    Call,
    Called,
    Continuity,
    Denied,
    HangUp,
    Hello,
    Incoming,
    Open,
    Opened,
    Ping,
    Refusal,
    Say,
    Welcome,
    encode_signal,
)
from kafila.protocol.rendezvous_address import RendezvousAt
from kafila.protocol.rendezvous_limits import Limits, Rate
from kafila.protocol.trust import Pinned

pytestmark = pytest.mark.loopback

MOST_GROWTH_BYTES = 64 << 20
HELLO = Hello(version=1)


# Slowly, or nothing at all


async def slow(abuser: Abuser, _pair: Pair) -> None:
    """Each of these has to be ended by the rendezvous."""
    async with asyncio.TaskGroup() as tasks:
        for _ in range(8):
            for line in (await abuser.knock(), await abuser.dial()):
                tasks.create_task(line.ended())
            line = await abuser.knock()
            tasks.create_task(line.dribble(b"\x16\x03\x01\x0f\xa0" + bytes(4000)))
            line = await abuser.dial()
            tasks.create_task(line.dribble(b"GET /signal HTTP/1.1\r\nX: " + bytes([65]) * 4000))
            line = await abuser.dial()
            tasks.create_task(line.dribble(b"POST /healthz HTTP/1.1\r\nContent-Length: 9999\r\n\r\n" + bytes(4000)))
            for path in (b"/signal", b"/relay"):
                line = await abuser.upgrade(path)
                tasks.create_task(line.ended())
                line = await abuser.upgrade(path)
                tasks.create_task(line.dribble(ws_frame(bytes(1000))))


async def crowd(abuser: Abuser, _pair: Pair) -> None:
    """More connections than one address may have: those beyond are closed at once, the others in time."""
    lines = [await abuser.knock() for _ in range(250)]
    async with asyncio.TaskGroup() as tasks:
        for line in lines:
            tasks.create_task(line.ended())


# Datagrams


async def junk_datagrams(abuser: Abuser, _pair: Pair) -> None:
    await abuser.flood(junk(4000, bytes(range(256))))
    await abuser.flood(junk(2000, b"\x08\x09"))
    await abuser.flood([bytes([8]) + os.urandom(n) for n in (1534, 4000, 9000, 60_000)] * 20)
    request = b"\x00\x01\x00\x00\x21\x12\xa4\x42" + os.urandom(12)
    assert 0 < await abuser.flood([request] * 1000) < 500


async def forged_frames(abuser: Abuser, pair: Pair) -> None:
    """In the name of the honest: made with another key, and theirs once more. No seat may move by it."""
    host, guest = (each.seat for each in pair.seats)
    key = os.urandom(32)
    forged = [
        encode_to_relay(
            RelayedFrame(source=guest.slot, counter=1 << 40, destination=host.slot, payload=b"forged"), key
        ),
        encode_to_relay(KeepAliveFrame(slot=host.slot, counter=1 << 40), key),
    ]
    replayed = [frame for each in pair.seats for frame in each.sent]
    assert await abuser.flood((forged + replayed) * (4000 // len(forged + replayed))) == 0


# Signalling


async def unreadable(abuser: Abuser, _pair: Pair) -> None:
    """Each of these ends its connection."""
    endless = b"".join(ws_frame(bytes(10_000), CONTINUED if n else 2, is_last=False) for n in range(20))
    junk_messages = (
        ws_frame(b"text", TEXT),
        ws_frame(b""),
        ws_frame(b"\xc1"),
        ws_frame(b"\x91" * 60_000),
        ws_frame(bytes(MAX_SIGNAL_BYTES + 1)),
        ws_frame(b"", length=1 << 62),
        b"\xff" * 64,
        endless,
    )
    out_of_place = [ws_frame(encode_signal(message)) for message in (HELLO, Ack(received=9), Ping(received=1))]
    async with asyncio.TaskGroup() as tasks:
        for said in (*junk_messages, *out_of_place):
            line = await greeted(abuser)
            await line.write(said)
            tasks.create_task(line.ended())
        for said in junk_messages:
            line = await abuser.upgrade()
            await line.write(said)
            tasks.create_task(line.ended())


async def _is_asked_too_often(abuser: Abuser) -> bool:
    """Whether questions are refused in the end: they are asked faster than slow machines and their rate allow."""
    question = b"GET /nameplate/1 HTTP/1.1\r\nHost: x\r\n\r\n"
    for _ in range(40):
        async with asyncio.TaskGroup() as tasks:
            asked = [tasks.create_task(abuser.ask(question)) for _ in range(25)]
        if any(b" 429 " in each.result() for each in asked):
            return True
    return False


async def http_junk(abuser: Abuser, _pair: Pair) -> None:
    for request in (b"\x16\x03\x01" + bytes(200), b"\x16", b"GET /healthz HTTP/1.1\r\n\r\n", b"a" * 100_000):
        await abuser.ask_plainly(request)
    for request in (
        b"\x16\x03\x01" + os.urandom(200),
        b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 500 + b"\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000,
    ):
        await abuser.ask(request)
    pipelined = await abuser.ask(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 300)
    assert pipelined.count(b"HTTP/1.1 200") == 1
    assert await _is_asked_too_often(abuser)


async def wrong_tokens(abuser: Abuser, _pair: Pair) -> None:
    for size in (1, 33, 64):
        line = await abuser.upgrade()
        await line.say(Hello(version=1, token=os.urandom(size)))
        welcome = await line.hear()
        assert isinstance(welcome, Welcome)
        assert welcome.continuity is Continuity.NEW
        line.abort()


async def talkative(abuser: Abuser, _pair: Pair) -> None:
    """More messages than one may send, and pings below signalling, which count too."""
    for flood in (ws_frame(b"", PING) * 3000, b"".join([ws_frame(b"\x00")] * 3000)):
        line = await greeted(abuser)
        await line.write(flood)
        await line.ended()


async def greedy(abuser: Abuser, _pair: Pair) -> None:
    """More sessions, codes, calls and connections than one address may have."""
    line = await greeted(abuser)
    await line.say(*(Open(request=n) for n in range(30)))
    denied = [answer for answer in [await line.hear() for _ in range(30)] if isinstance(answer, Denied)]
    assert {answer.reason for answer in denied} == {Refusal.TOO_MANY}
    caller = await greeted(abuser)
    await caller.say(*(Call(request=n, nameplate=999_999_999) for n in range(50)))
    answers = [await caller.hear() for _ in range(50)]
    assert {answer.reason for answer in answers if isinstance(answer, Denied)} == {
        Refusal.NO_SUCH_CODE,
        Refusal.TOO_MANY,
    }
    for each in (line, caller):
        each.abort()
    lines = [await abuser.upgrade() for _ in range(70)]
    async with asyncio.TaskGroup() as tasks:
        for each in lines:
            tasks.create_task(each.ended())


async def full_queue(abuser: Abuser, _pair: Pair) -> None:
    """One who is told much and takes nothing: the exchange ends, for its own side alone."""
    host, guest = await greeted(abuser), await greeted(abuser)
    exchange = await called(host, guest)
    for _ in range(40):
        await host.say(Say(exchange=exchange, body=bytes(MAX_BODY_BYTES)))
    while not isinstance(await host.hear(), HangUp):
        pass
    for each in (host, guest):
        each.abort()


async def junk_after_a_seat(abuser: Abuser, _pair: Pair) -> None:
    """Over TCP, where nothing changes on its way, junk is nobody's mistake."""
    signalling = await greeted(abuser)
    await signalling.say(Open(request=0))
    opened = await signalling.hear()
    assert isinstance(opened, Opened)
    line = await abuser.upgrade(b"/relay")
    keep = encode_to_relay(KeepAliveFrame(slot=opened.seat.slot, counter=1), opened.seat.key)
    await line.write(ws_frame(keep))
    assert (await line.hear_bytes())[0] == SEATED
    await line.write(b"".join(ws_frame(datagram) for datagram in junk(2000, b"\x08\x09\xff", longest=200)))
    await line.ended()
    signalling.abort()


async def called(host: Line, guest: Line) -> int:
    """An exchange between them."""
    await host.say(Open(request=0))
    opened = await host.hear()
    assert isinstance(opened, Opened)
    await guest.say(Call(request=0, nameplate=opened.nameplate))
    answer = await guest.hear()
    assert isinstance(answer, Called)
    assert isinstance(await host.hear(), Incoming)
    return answer.exchange


async def greeted(abuser: Abuser) -> Line:
    line = await abuser.upgrade()
    await line.say(HELLO)
    assert isinstance(await line.hear(), Welcome)
    return line


ABUSES: tuple[Callable[[Abuser, Pair], Awaitable[None]], ...] = (
    slow,
    junk_datagrams,
    forged_frames,
    unreadable,
    http_junk,
    wrong_tokens,
    talkative,
    greedy,
    full_queue,
    junk_after_a_seat,
    crowd,
)

COUNTED = {
    "relay_dropped": ("malformed", "unknown slot", "wrong MAC", "old counter"),
    "connections_dropped": (
        "unsettled too long",
        "no TLS",
        "no handshake",
        "too many from one address",
        "silent",
        "no seat taken",
        "nothing but junk",
        "no file for it",
    ),
    "refused": ("too many", "no such code", "too many questions"),
    "faults": (
        "a signalling message that cannot be read",
        "a second hello on one connection",
        "an acknowledgement of messages that were never sent",
        "more messages than one connection may send",
    ),
    "overflows": ("line",),
}


async def out_of_files(rendezvous: psutil.Process, abuser: Abuser, pair: Pair) -> None:
    """The system gives the rendezvous no file for another connection: those that are there go on."""
    limits = rendezvous.rlimit(psutil.RLIMIT_NOFILE)
    rendezvous.rlimit(psutil.RLIMIT_NOFILE, (rendezvous.num_fds() + 2, limits[1]))
    lines = [await abuser.knock() for _ in range(20)]
    for _ in range(3):
        await pair.go_on()
    for line in lines:
        line.abort()
    rendezvous.rlimit(psutil.RLIMIT_NOFILE, limits)
    (await greeted(abuser)).abort()


@pytest.mark.skipif(not has_many_addresses(), reason="this system has one address to speak to itself from")
async def test_it_stays_up_and_small_and_serves_the_honest_whatever_others_do(tmp_path: Path) -> None:
    with homes_in(tmp_path) as homes:
        process = homes.new().start("rendezvous", "--listen", "127.0.0.1:0", "--json")
        said = await asyncio.to_thread(process.event, "listening")
        rendezvous = Address(said["host"], said["port"])
        known = RendezvousAt(rendezvous, Pinned(bytes.fromhex(said["fingerprint"])))
        running = psutil.Process(process.pid)
        before = most = running.memory_info().rss
        async with honest(known) as pair:
            await pair.go_on()
            async with asyncio.TaskGroup() as tasks:
                abusing = {
                    tasks.create_task(_run(abuse(Abuser(rendezvous, f"127.2.0.{number}"), pair)))
                    for number, abuse in enumerate(ABUSES, start=1)
                }
                while not all(each.done() for each in abusing):
                    await pair.go_on()
                    most = max(most, running.memory_info().rss)
                    await asyncio.sleep(0.05)
            await out_of_files(running, Abuser(rendezvous, "127.2.1.1"), pair)
            await pair.go_on()
            metrics = (await Abuser(rendezvous, "127.2.1.2").ask(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")).decode()
        assert most - before < MOST_GROWTH_BYTES, f"{(most - before) >> 20} MiB more"
        for kind, reasons in COUNTED.items():
            for reason in reasons:
                assert f'kafila_rendezvous_{kind}_total{{reason="{reason}"}}' in metrics, metrics
        assert "127." not in metrics + process.errors()
        assert str(pair.seats[0].seat.slot) not in metrics
        assert "Traceback" not in process.errors()


async def _run(abuse: Awaitable[None]) -> None:
    await abuse


async def test_who_acknowledges_and_takes_nothing_loses_the_connection() -> None:
    """Acknowledging empties the line, and what was sent still waits for the connection."""
    unbounded = Rate(1e12, 1e12)
    server = await RendezvousServer.open(
        [Address("127.0.0.1", 0)], CERTIFICATE, limits=Limits(messages=unbounded, message_bytes=unbounded)
    )
    try:
        abuser = Abuser(server.addresses[0], "127.0.0.1")
        host, guest = await greeted(abuser), await greeted(abuser)
        guest.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        exchange = await called(host, guest)
        while "took nothing" not in server.health().connections_dropped:
            await host.say(*[Say(exchange=exchange, body=bytes(MAX_BODY_BYTES))] * 2)
            taken = await host.hear()
            if isinstance(taken, Ack):
                # One `Open` of the host's is not passed on, and one `Called` of the guest's is.
                await guest.say(Ack(received=taken.received))
        for each in (host, guest):
            each.abort()
    finally:
        await server.close()
