"""The host's plan: keys and rosters, the division for those who are in, and its start."""

import hashlib
import ipaddress
from dataclasses import replace

import msgspec

from kafila.domain.capability import Capability, Reachability
from kafila.domain.ids import MemberId
from kafila.domain.plan import Plan, Refusal
from kafila.domain.snapshot import Reach
from kafila.engine.events import (
    AnswerGuest,
    CloseInvitation,
    Effect,
    Send,
    SetPeers,
)
from kafila.engine.hosting import FormingRing, Hosting, Row, Seat, ServingRing, Stepped
from kafila.planner.by_hand import plan_by_hand
from kafila.planner.live import replan as replan_live
from kafila.planner.plan import answer
from kafila.planner.question import Candidate, Question, ask
from kafila.planner.tiling import tiling_hash
from kafila.protocol.control import (
    Declined,
    Form,
)
from kafila.protocol.links import (
    Peer,
)
from kafila.protocol.roster import Roster, RosterEntry

HOSTS_NETWORK = "host"
"""The LAN of those who came in through the host's own rendezvous."""

# Keys and rosters --------------------------------------------------------------------------------


def sign_members(hosting: Hosting) -> bytes:
    """The roster of everyone who is in, with the host's signature."""
    entries = tuple(RosterEntry(member=s.member, spki_sha256=s.spki_sha256, machine=s.machine) for s in hosting.seats)
    return hosting.opened.sign(Roster(session=hosting.session, epoch=hosting.epoch, entries=entries))


def _probe_key(hosting: Hosting, one: MemberId, other: MemberId) -> bytes:
    pair = "+".join(sorted((one, other))).encode()
    return hashlib.blake2b(pair, key=hosting.opened.secret, digest_size=32).digest()


def peer_of(hosting: Hosting, seat: Seat, partner: MemberId) -> Peer:
    """A member as its partner is told of it, with the probe key of that pair."""
    return Peer(
        member=seat.member,
        spki_sha256=seat.spki_sha256,
        probe_key=_probe_key(hosting, seat.member, partner),
        candidates=seat.candidates,
    )


def set_peers(hosting: Hosting) -> SetPeers:
    """The host has a link with every member."""
    return SetPeers(peers=tuple(peer_of(hosting, seat, hosting.me) for seat in hosting.seats[1:]))


# Planning and forming ----------------------------------------------------------------------------


def replan(hosting: Hosting) -> Hosting:
    """The plan for everyone who is in and measured; None until all are.

    A division made by hand holds as long as its members are those who are in.
    """
    question = _question(hosting)
    if question is None:
        return replace(hosting, plan=None)
    ring = [member for member, _ in hosting.by_hand]
    if sorted(ring) != sorted(seat.member for seat in hosting.seats):
        return replace(hosting, by_hand=(), plan=answer(question))
    counts = [count for _, count in hosting.by_hand]
    try:
        return replace(hosting, plan=plan_by_hand(question, ring, counts))
    except ValueError:
        return replace(hosting, by_hand=(), plan=answer(question))


def plan_anew(hosting: Hosting, ring: ServingRing) -> Plan | Refusal | None:
    """The plan that the stages themselves suggest, once each has been timed."""
    question = _question(hosting)
    stage_ms = {member: row.report.stage_ms for member, row in ring.rows.items() if row.report and row.report.stage_ms}
    if question is None or len(stage_ms) < len(ring.rows):
        return None
    return replan_live(question, ring.plan, stage_ms)


def _question(hosting: Hosting) -> Question | None:
    """What the planner is asked; None until everyone is measured."""
    candidates = [
        Candidate(member=seat.member, name=seat.machine.name, capability=_as_seen_from_here(hosting, seat))
        for seat in hosting.seats
        if seat.capability is not None
    ]
    if len(candidates) < len(hosting.seats):
        return None
    return ask(
        hosting.spec,
        candidates,
        context=hosting.context,
        concurrency=hosting.concurrency,
        objective=hosting.objective,
        pair_rtts={
            frozenset((hosting.me, seat.member)): seat.rtt_ms for seat in hosting.seats if seat.rtt_ms is not None
        },
    )


def _as_seen_from_here(hosting: Hosting, seat: Seat) -> Capability:
    """What a member measured, with what only the host knows: who is near, and how far.

    The way to a rendezvous that runs here is the way to the host.
    """
    capability = seat.capability or Capability(room_bytes=None)
    if hosting.reach is Reach.RENDEZVOUS:
        return capability
    rtt_ms = 0.0 if seat.member == hosting.me else seat.rtt_ms
    reachability = msgspec.structs.replace(capability.reachability, rendezvous_rtt_ms=rtt_ms)
    if is_near(reachability):
        reachability = msgspec.structs.replace(reachability, lan=HOSTS_NETWORK)
    return msgspec.structs.replace(capability, reachability=reachability)


def is_near(reachability: Reachability) -> bool:
    """Whether a member that came in through the host's own rendezvous is on its network, or this computer.

    Whoever comes from the Internet appears there under a public address.
    """
    host = reachability.public_host
    if host is None:
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return False


def start_when_complete(hosting: Hosting, now: float) -> Stepped:
    """Start by itself, where so many members were waited for."""
    if hosting.start_at is None or len(hosting.seats) < hosting.start_at:
        return hosting, []
    return form_ring(hosting, now)


def form_ring(hosting: Hosting, now: float) -> Stepped:
    """Close the door and send everyone their blocks; nothing where no plan is admitted."""
    if not isinstance(hosting.plan, Plan):
        return hosting, []
    return form_anew(hosting, hosting.plan, now)


def form_anew(hosting: Hosting, plan: Plan, now: float) -> Stepped:
    """Form a ring, the first or another, with exactly this plan."""
    hosting = replace(hosting, epoch=hosting.epoch + 1, invitation=None)
    tiling = tiling_hash(plan, hosting.spec, hosting.epoch)
    roster = sign_members(hosting)
    rows = {share.member: Row() for share in plan.shares}
    effects: list[Effect] = [CloseInvitation()]
    effects += [AnswerGuest(guest=guest, answer=Declined()) for guest in hosting.guests]
    for share in plan.shares:
        form = Form(
            epoch=hosting.epoch,
            tiling=tiling,
            roster=roster,
            plan=plan,
            peers=_peers_of(hosting, plan, share.member),
        )
        effects.append(Send(to=share.member, message=form))
    stage = FormingRing(plan=plan, rows=rows, since=now, moved_at=now)
    return replace(hosting, stage=stage, guests=()), effects


def _peers_of(hosting: Hosting, plan: Plan, member: MemberId) -> tuple[Peer, ...]:
    """Those with whom a member speaks: its neighbours, the host and the head."""
    order = [share.member for share in plan.shares]
    at = order.index(member)
    near = {order[at - 1], order[(at + 1) % len(order)], hosting.me, plan.head}
    if member == plan.head:
        near = set(order)
    return tuple(
        peer_of(hosting, seat, member) for seat in hosting.seats if seat.member in near and seat.member != member
    )
