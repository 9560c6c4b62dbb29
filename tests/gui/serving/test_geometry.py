from itertools import combinations
from math import cos, dist, hypot, radians, sin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafila.gui.serving.geometry import (
    BAND_RADIUS,
    LEAST_SLOT_DEGREES,
    Box,
    Ring,
    arrow,
    bounds,
    edge_label,
    lay_out,
    neighbour,
    node_label,
    pulse,
    qt_degrees,
    slots,
)

blocks = st.lists(st.integers(1, 80), min_size=1, max_size=12)
sizes = st.tuples(st.integers(240, 1200), st.integers(240, 1200))


@given(blocks)
def test_slots_fill_the_circle_and_none_is_too_narrow(shares: list[int]) -> None:
    found = slots(shares)
    assert sum(found) == pytest.approx(360)
    least = LEAST_SLOT_DEGREES if len(shares) <= 6 else 360 / len(shares)
    assert min(found) >= least - 1e-6


def test_slots_follow_the_shares_where_there_is_room() -> None:
    assert slots([3, 1]) == pytest.approx((270, 90))
    assert slots([16, 20, 12, 10, 6])[4] == pytest.approx(48)
    assert slots([1, 50, 1, 1, 1, 1, 1]) == pytest.approx((360 / 7,) * 7)


@given(blocks, sizes)
def test_nodes_lie_inside_and_apart(shares: list[int], size: tuple[int, int]) -> None:
    width, height = size
    ring = lay_out(width, height, shares, labels=False, mirrored=False)
    assert len(ring.nodes) == len(shares)
    for node in ring.nodes:
        assert node.radius > 0
        assert node.radius <= node.x <= width - node.radius
        assert node.radius <= node.y <= height - node.radius
    for one, other in combinations(ring.nodes, 2):
        assert dist((one.x, one.y), (other.x, other.y)) > one.radius + other.radius


@given(blocks, sizes)
def test_nodes_do_not_touch_the_band(shares: list[int], size: tuple[int, int]) -> None:
    ring = lay_out(*size, shares, labels=False, mirrored=False)
    for node in ring.nodes:
        assert hypot(node.x - ring.x, node.y - ring.y) - node.radius > ring.radius * BAND_RADIUS


@given(blocks, sizes)
def test_right_to_left_is_the_mirror_image(shares: list[int], size: tuple[int, int]) -> None:
    ring = lay_out(*size, shares, labels=True, mirrored=False)
    mirror = lay_out(*size, shares, labels=True, mirrored=True)
    for one, other in zip(ring.nodes, mirror.nodes, strict=True):
        assert other.x == pytest.approx(size[0] - one.x)
        assert other.y == pytest.approx(one.y)
        assert other.radius == one.radius
    for one, other in zip(ring.edges, mirror.edges, strict=True):
        near, far = edge_label(ring, one, 60, 20), edge_label(mirror, other, 60, 20)
        assert far.x == pytest.approx(size[0] - near.right)


@given(st.lists(st.integers(1, 80), min_size=2, max_size=12), sizes)
def test_edges_join_neighbours_without_touching_them(shares: list[int], size: tuple[int, int]) -> None:
    ring = lay_out(*size, shares, labels=False, mirrored=False)
    assert len(ring.edges) == len(shares)
    for at, edge in enumerate(ring.edges):
        assert edge.span > 0
        to = ring.nodes[(at + 1) % len(shares)]
        for node, turn in ((ring.nodes[at], edge.turn), (to, edge.turn + edge.span)):
            assert dist(ring.point(turn, ring.radius), (node.x, node.y)) > node.radius
        tip = arrow(ring, edge, 9)[1]
        assert dist(tip, (to.x, to.y)) < dist(tip, (ring.nodes[at].x, ring.nodes[at].y)) or (len(shares) == 2)


def test_the_head_is_at_the_top_and_the_ring_runs_clockwise() -> None:
    ring = lay_out(600, 600, [10, 10, 10, 10], labels=False, mirrored=False)
    assert ring.nodes[0].x == pytest.approx(300)
    assert ring.nodes[0].y < ring.nodes[1].y < ring.nodes[2].y
    assert ring.nodes[1].x > 300 > ring.nodes[3].x


def test_the_largest_share_has_the_largest_node() -> None:
    ring = lay_out(632, 600, [16, 20, 12, 10, 6], labels=True, mirrored=False)
    radii = [node.radius for node in ring.nodes]
    assert radii[1] == pytest.approx(40)
    assert sorted(radii, reverse=True) == [radii[i] for i in (1, 0, 2, 3, 4)]
    assert 140 < ring.radius < 156


def test_a_ring_of_one_has_a_whole_band_and_no_edge() -> None:
    ring = lay_out(400, 400, [30], labels=True, mirrored=False)
    assert ring.edges == ()
    assert ring.band[0].span == 360
    assert len(ring.nodes) == 1


@given(st.lists(st.integers(1, 80), min_size=2, max_size=6))
def test_labels_stay_inside_and_off_the_nodes(shares: list[int]) -> None:
    ring = lay_out(632, 600, shares, labels=True, mirrored=False)
    for node in ring.nodes:
        label = node_label(ring, node, lines=3, line_height=18)
        left = {-1: label.x - 118, 0: label.x - 59, 1: label.x}[label.align]
        box = Box(x=left, y=label.y, width=118, height=54)
        assert box.x >= -1e-6
        assert box.right <= 632 + 1e-6
        assert box.y >= 0
        disc = Box(
            x=node.x - node.radius * 0.7,
            y=node.y - node.radius * 0.7,
            width=node.radius * 1.4,
            height=node.radius * 1.4,
        )
        assert not box.overlaps(disc)


@given(st.lists(st.integers(1, 80), min_size=2, max_size=12), sizes, st.floats(20, 130))
def test_edge_labels_lie_outside_the_ring(shares: list[int], size: tuple[int, int], width: float) -> None:
    ring = lay_out(*size, shares, labels=False, mirrored=False)
    for edge in ring.edges:
        box = edge_label(ring, edge, width, 20)
        assert box.x >= -1e-6
        assert box.right <= max(size[0], width) + 1e-6


def test_the_pulse_goes_round_in_the_rings_direction() -> None:
    for mirrored, side in ((False, 1), (True, -1)):
        ring = lay_out(600, 600, [1, 1, 1], labels=False, mirrored=mirrored)
        at_top = pulse(ring, 0.0, 6)[-1]
        quarter = pulse(ring, 0.25, 6)[-1]
        assert at_top.x == pytest.approx(300)
        assert quarter.x == pytest.approx(300 + side * ring.radius)
        assert quarter.y == pytest.approx(300)


@given(st.floats(0, 1), blocks)
def test_the_pulses_rectangle_holds_all_its_lights(phase: float, shares: list[int]) -> None:
    ring = lay_out(500, 500, shares, labels=False, mirrored=False)
    lights = pulse(ring, phase, 6)
    box = bounds(lights, 4)
    assert len(lights) == 6
    assert lights[-1].radius == max(light.radius for light in lights)
    for light in lights:
        assert box.x + 4 <= light.x - light.radius + 1
        assert light.x + light.radius <= box.right - 3
        assert box.y + 4 <= light.y - light.radius + 1
        assert light.y + light.radius <= box.bottom - 3


def test_arcs_for_the_painter_start_where_the_points_are() -> None:
    for mirrored in (False, True):
        ring: Ring = lay_out(600, 600, [5, 3, 2], labels=False, mirrored=mirrored)
        for arc in ring.band:
            start, span = qt_degrees(ring, arc)
            x, y = ring.point(arc.turn, arc.radius)
            assert x == pytest.approx(ring.x + arc.radius * cos(radians(start)))
            assert y == pytest.approx(ring.y - arc.radius * sin(radians(start)))
            x, y = ring.point(arc.turn + arc.span, arc.radius)
            assert x == pytest.approx(ring.x + arc.radius * cos(radians(start + span)))
            assert y == pytest.approx(ring.y - arc.radius * sin(radians(start + span)))


def test_arrow_keys_go_round() -> None:
    assert neighbour(5, 4, step=1) == 0
    assert neighbour(5, 0, step=-1) == 4
    assert neighbour(1, 0, step=1) == 0
