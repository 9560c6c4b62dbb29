"""When lights travel round the ring. Pure: the time comes in as an argument.

One light leaves the head for each token, at most three are on the ring, and none is faster than
0.8 s round, because faster is flicker. Tokens that come faster than lights can follow make the
edges glow instead.
"""

from dataclasses import dataclass, replace

LEAST_ROUND_S = 0.8
MOST_LIGHTS = 3
FRESH_S = 1.6
"""So long after the last token the ring still counts as in use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulses:
    """The lights on the ring: when each left the head, the next one perhaps still to leave."""

    leaving_s: tuple[float, ...] = ()
    round_s: float = LEAST_ROUND_S
    tokens: int | None = None
    """Counted at the last snapshot; None before the first."""
    last_token_s: float | None = None
    glowing: bool = False


def count(
    pulses: Pulses,
    *,
    tokens: int,
    tokens_per_second: float | None,
    circuit_ms: float | None,
    now_s: float,
) -> Pulses:
    """Take in the counter of a new snapshot and send off lights for what it grew by."""
    round_s = max(LEAST_ROUND_S, (circuit_ms or 0.0) / 1000)
    grown = 0 if pulses.tokens is None else max(0, tokens - pulses.tokens)
    last = now_s if grown else pulses.last_token_s
    rate = tokens_per_second or 0.0
    pulses = replace(pulses, round_s=round_s, tokens=tokens, last_token_s=last)
    pulses = replace(rest(pulses, now_s), glowing=False)
    if last is None or now_s - last > FRESH_S:
        return pulses
    leaving = list(pulses.leaving_s)
    apart = round_s / MOST_LIGHTS
    for _ in range(min(grown, MOST_LIGHTS - len(leaving))):
        earliest = leaving[-1] + max(apart, 1 / rate if rate else 0.0) if leaving else now_s
        leaving.append(max(now_s, earliest))
    return replace(pulses, leaving_s=tuple(leaving), glowing=rate * round_s > MOST_LIGHTS)


def rest(pulses: Pulses, now_s: float) -> Pulses:
    """Without the lights that have been once round, and without a glow that has had its time."""
    used = pulses.last_token_s is not None and now_s - pulses.last_token_s <= FRESH_S
    return replace(
        pulses,
        leaving_s=tuple(at for at in pulses.leaving_s if now_s - at < pulses.round_s),
        glowing=pulses.glowing and used,
    )


def phases(pulses: Pulses, now_s: float) -> tuple[float, ...]:
    """How far round each light is, 0 to 1; lights yet to leave are not among them."""
    return tuple((now_s - at) / pulses.round_s for at in pulses.leaving_s if 0 <= now_s - at < pulses.round_s)


def in_use(pulses: Pulses, now_s: float) -> bool:
    """Whether a token went round just now."""
    return pulses.last_token_s is not None and now_s - pulses.last_token_s <= FRESH_S
