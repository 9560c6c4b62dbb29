"""A member in a process of its own: it sends back whatever it is sent on the control channel."""

import asyncio
import sys

from kafila.network.endpoint import Endpoint
from kafila.network.identity import DeviceIdentity, member_id
from kafila.protocol.links import Address, Candidates, Channel, LinkClosed, Peer, RelaySeat
from kafila.protocol.trust import Pinned


def echo_peer(spki_sha256: bytes, key: bytes, slot: int, *addresses: Address) -> Peer:
    """How one of the two is told of the other."""
    return Peer(
        member=member_id(spki_sha256),
        spki_sha256=spki_sha256,
        probe_key=key,
        candidates=Candidates(relay_slot=slot, addresses=addresses),
    )


async def serve(seat: RelaySeat, peer: Peer) -> None:
    """Say who this is, connect, and echo until the link is over."""
    identity = DeviceIdentity.generate()
    endpoint = await Endpoint.open(identity, Address("127.0.0.1", 0), lambda _: None)
    await endpoint.take_seat(seat)
    endpoint.set_peers({peer.member: peer})
    endpoint.open_link(peer.member)
    sys.stdout.write(identity.spki_sha256.hex() + "\n")
    sys.stdout.flush()
    try:
        link = await endpoint.connected(peer.member)
        while True:
            await link.send(Channel.CONTROL, await link.receive(Channel.CONTROL))
    except LinkClosed:
        await endpoint.close()


def main() -> None:
    """Arguments: own relay, slot and key; the peer's SPKI hash, probe key, slot and address."""
    relay, slot, key, spki_sha256, probe_key, peer_slot, address = sys.argv[1:]
    seat = RelaySeat(relay=Address.parse(relay), slot=int(slot), key=bytes.fromhex(key), trust=Pinned(bytes(32)))
    peer = echo_peer(bytes.fromhex(spki_sha256), bytes.fromhex(probe_key), int(peer_slot), Address.parse(address))
    asyncio.run(serve(seat, peer))


if __name__ == "__main__":
    main()
