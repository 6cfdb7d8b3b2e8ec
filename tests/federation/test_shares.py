"""The memory budget of the shares' prepared forms."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st
from tests.worlds import digits, tiny

from fedelect.federation.linear.shares import ShareCache, Shares
from fedelect.scenario import Scenario, build_scenario

WORLDS = [build_scenario(tiny(), digits(), draw=draw) for draw in range(4)]


class Literal:
    """The rule as it is meant: at every use everything is counted anew."""

    def __init__(self, budget: int) -> None:
        self.budget, self.shares = budget, dict[int, Shares]()

    def of(self, place: int, world: Scenario) -> Shares:
        found = self.shares.pop(place, None) or Shares(world)
        for other in list(self.shares):
            if found.nbytes + sum(shares.nbytes for shares in self.shares.values()) <= self.budget:
                break
            del self.shares[other]
        self.shares[place] = found
        return found


@given(st.integers(1, 60_000), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=30))
def test_scenarios_are_dropped_as_if_all_were_counted_at_every_use(budget: int, uses: list[tuple[int, int]]) -> None:
    worlds = [dataclasses.replace(world) for world in WORLDS]
    cache, literal = ShareCache(budget), Literal(budget)
    for place, client in uses:
        for shares in (cache.of(worlds[place]), literal.of(place, worlds[place])):
            _ = shares.clients[client].gram, shares.clients[client].by_sample
        assert len(cache) == len(literal.shares)
        assert cache.nbytes == sum(shares.nbytes for shares in literal.shares.values())
