"""What is left out of drawings is bounded, follows from the header alone, and is said."""

from tests.sample_runs import sample_header, sample_record

from fedelect.records import RunRecords
from fedelect.report import analyse_runs, load_runs
from fedelect.report.chart_data import chart_data
from fedelect.report.thinning import MAP_BYTES, MAP_CLIENTS, MAP_LINKS, choose_thinning
from fedelect.report.worlds import group_worlds


def test_a_small_run_is_drawn_whole() -> None:
    thinning = choose_thinning(sample_header(edges=((0, 1), (1, 2))))
    assert thinning.map_trials == 2 and thinning.map_slots.tolist() == thinning.curve_slots.tolist() == list(
        range(1, 7)
    )
    assert thinning.map_clients.tolist() == list(range(7)) and thinning.map_links == ((0, 1), (1, 2))
    assert thinning.notes == ()


def test_of_many_trials_the_map_holds_the_first_and_every_slot_of_them() -> None:
    header = sample_header(clients=20, budget=5, slots=500, trials=100, groups={})
    thinning = choose_thinning(header)
    assert 1 < thinning.map_trials < 100 and thinning.map_slots.size == 500
    assert thinning.notes == (f"The map holds trials 0 to {thinning.map_trials - 1} of 100.",)
    assert choose_thinning(header, runs=2).map_trials < thinning.map_trials


def test_a_huge_run_is_thinned_in_every_direction_and_says_so() -> None:
    clients = 100_000
    edges = tuple((client, client + 1) for client in range(clients - 1))
    thinning = choose_thinning(
        sample_header(clients=clients, budget=50, slots=20_000, trials=3, groups={}, edges=edges)
    )
    assert thinning.map_trials == 1
    assert thinning.map_slots[0] == 1 and thinning.map_slots[-1] == 20_000
    assert thinning.map_clients.size <= MAP_CLIENTS and thinning.map_clients[-1] == clients - 1
    assert len(set(thinning.map_clients.tolist())) == thinning.map_clients.size
    assert len(thinning.map_links) <= MAP_LINKS
    frame = 2 * (4 * thinning.map_clients.size + 4 * 50 + 8)
    assert frame * thinning.map_slots.size <= MAP_BYTES
    assert thinning.curve_slots.size == 1000 and thinning.curve_slots[-1] == 20_000
    text = " ".join(thinning.notes)
    for said in ("1,000 of 20,000 slots", "trial 0 of 3", "of 20,000 slots", "of 100,000 clients"):
        assert said in text


def test_elections_between_the_slots_that_the_map_visits_are_counted() -> None:
    header = sample_header(clients=1600, budget=3, slots=2000, trials=1, groups={})
    records = [sample_record(header, "best", 0, slot, opinions=None) for slot in range(1, 2001)]
    (gathered,) = load_runs([RunRecords(header, tuple(records))])
    frames = gathered.frames["best"]
    assert frames.elections.shape[1] == gathered.thinning.map_slots.size < 2000
    assert frames.elections[0, :, 0].tolist() == gathered.thinning.map_slots.tolist()
    (data,) = chart_data(group_worlds(analyse_runs([gathered])))["runs"]
    assert len(data["curveSlots"]) == 1000 and len(data["selectors"][0]["curves"]["opinion"]["mean"]) == 1000
    assert analyse_runs([gathered])[0].summaries[0].done == 2000
