import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import graphs

from fedelect.errors import ConfigurationError
from fedelect.scenario import TopologyConfig, draw_topology, topology
from fedelect.scenario.proximity import connect, distances_km, parts
from fedelect.scenario.topology import nearest_edges, radius_edges
from fedelect.seeds import stream
from fedelect.vocabulary import Ints

# Whole coordinates make equal distances and clients in the same place common.
_places = st.lists(
    st.tuples(st.integers(0, 6).map(float), st.integers(0, 6).map(float)) | st.tuples(st.floats(0, 6), st.floats(0, 6)),
    min_size=1,
    max_size=40,
)


def pairs(edges: Ints) -> list[tuple[int, int]]:
    return [(int(one), int(other)) for one, other in edges]


@given(_places, st.integers(1, 6))
def test_the_nearest_graph_is_the_literal_one(places: list[tuple[float, float]], neighbours: int) -> None:
    assert pairs(nearest_edges(np.array(places), neighbours)) == graphs.nearest(places, neighbours)


@given(_places, st.floats(0.01, 10))
def test_the_radius_graph_is_the_literal_one(places: list[tuple[float, float]], radius: float) -> None:
    assert pairs(radius_edges(np.array(places), radius)) == graphs.within(places, radius)


@given(_places, st.data())
def test_parts_are_joined_by_the_links_kruskal_takes(places: list[tuple[float, float]], data: st.DataObject) -> None:
    client = st.integers(0, len(places) - 1)
    ends = st.tuples(client, client).filter(lambda pair: pair[0] < pair[1])
    edges = sorted(set(data.draw(st.lists(ends, max_size=20) if len(places) > 1 else st.just([]))))
    joined = connect(np.array(places), np.array(edges, dtype=np.int64).reshape(-1, 2))
    assert pairs(joined) == graphs.connected(places, edges)


def test_far_towns_are_joined_by_the_shortest_road() -> None:
    rng = stream(3, "towns")
    towns = [rng.random((70, 2)) * 0.01 + centre for centre in ([0.0, 0.0], [0.9, 0.1], [0.4, 0.95])]
    positions = np.concatenate(towns)
    edges = nearest_edges(positions, 4)
    assert pairs(connect(positions, edges)) == graphs.connected([tuple(p) for p in positions.tolist()], pairs(edges))


@pytest.mark.parametrize("link", ["nearest", "radius", "edges"])
def test_every_kind_of_graph_is_connected_sorted_and_without_loops(link: str) -> None:
    config = TopologyConfig(link=link, radius_km=0.05, edges=((4, 1), (1, 4), (0, 7)) if link == "edges" else ())  # type: ignore[arg-type]
    drawn = draw_topology(config, 30, seed=5)
    edges = pairs(drawn.edges)
    assert all(one < other for one, other in edges)
    assert edges == sorted(set(edges))
    assert parts(30, drawn.edges).max() == 0
    assert drawn.edge_lengths_km.tolist() == [
        graphs.distance(tuple(drawn.positions_km[one]), tuple(drawn.positions_km[other])) for one, other in edges
    ]
    if link == "edges":
        assert {(1, 4), (0, 7)} <= set(edges)
        assert len(edges) == 29


def test_positions_lie_in_the_square_with_the_server_at_its_centre_and_depend_on_seed_and_draw() -> None:
    config = TopologyConfig(side_km=3.0)
    drawn = draw_topology(config, 500, seed=1)
    assert 0 <= drawn.positions_km.min() < 0.1
    assert 2.9 < drawn.positions_km.max() <= 3.0
    assert drawn.server_km.tolist() == [1.5, 1.5]
    same, other_seed, other_draw = (draw_topology(config, 500, seed=s, draw=d) for s, d in ((1, 0), (2, 0), (1, 1)))
    assert np.array_equal(drawn.positions_km, same.positions_km)
    assert not np.array_equal(drawn.positions_km, other_seed.positions_km)
    assert not np.array_equal(drawn.positions_km, other_draw.positions_km)


def test_given_positions_are_used() -> None:
    config = TopologyConfig(positions_km=((0.0, 0.0), (0.3, 0.4), (1.0, 1.0)), neighbours=1)
    drawn = draw_topology(config, 3, seed=1)
    assert pairs(drawn.edges) == [(0, 1), (1, 2)]
    assert drawn.edge_lengths_km[0] == pytest.approx(0.5)


def test_a_lone_client_has_no_links() -> None:
    assert draw_topology(TopologyConfig(), 1, seed=1).edges.shape == (0, 2)


def test_a_hundred_thousand_clients_are_linked_without_a_square_matrix() -> None:
    drawn = draw_topology(TopologyConfig(), 100_000, seed=1)
    assert parts(100_000, drawn.edges).max() == 0
    assert 200_000 < len(drawn.edges) < 400_000
    # The links of one client, checked by looking at all others.
    distance = distances_km(drawn.positions_km, drawn.positions_km[777])
    nearest = set(np.argsort(distance)[1:5].tolist())
    mine = drawn.edges[(drawn.edges == 777).any(axis=1)]
    assert nearest <= set(mine.ravel().tolist())


def test_a_radius_that_links_everybody_to_everybody_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology, "_MOST_LINKS", 1000)
    with pytest.raises(ConfigurationError, match=r"^topology\.radius_km: got 1\.0"):
        draw_topology(TopologyConfig(link="radius", radius_km=1.0), 100, seed=1)
