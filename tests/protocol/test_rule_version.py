"""What the rule bp-gp elects, pinned down: a change must raise RULE_VERSION, which names the election."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from tests.protocol.election_kit import config, value

from fedelect import rules
from fedelect.protocol import ElectionSettings, PeerConfig, configuration, election, simulated_signers
from fedelect.protocol.election import elect_cohort
from fedelect.rules import RULE_VERSION, CohortStatistics, SetPrior, posterior, search
from fedelect.rules import cohort_statistics as played_module
from fedelect.seeds import stream
from fedelect.vocabulary import Cohort

CLIENTS = 60
KEYS = tuple(signer.key for signer in simulated_signers(CLIENTS))
EDGES = tuple((n, (n + 1) % CLIENTS) for n in range(CLIENTS))

PINNED: dict[int, list[tuple[Cohort, tuple[str, ...]]]] = {
    2: [
        ((8, 12), ()),
        ((44, 57), ("0x1.31eeff34c354bp-1",)),
        ((15, 23, 29, 34, 35, 39, 42, 50, 54, 56, 57, 58), ("0x1.260600d697cd2p-1",)),
        ((8, 27, 28, 33, 34, 37, 40, 41, 48, 50, 51, 52, 55, 57, 58), ("0x1.273e6006e5534p-1",)),
        ((8, 27, 28, 33, 34, 37, 40, 41, 48, 50, 51, 52, 55, 57, 58), ("0x1.273e6006e5534p-1",)),
        ((3, 17, 35, 58), ("0x1.219f2a3edefc8p-1",)),
    ],
}
"""By RULE_VERSION, the cohorts and bounds. Never change an entry: raise RULE_VERSION and add one."""


def elected(budget: int, cohorts: int, slot: int, *, forgetting: float = 1.0, memory: int = 96) -> tuple[Any, ...]:
    """The election in `slot` after one fixed history."""
    shared = PeerConfig(
        clients=CLIENTS,
        edges=EDGES,
        couplings=(0.1,) * CLIENTS,
        keys=KEYS,
        settings=ElectionSettings(budget=budget, rule="bp-gp", forgetting=forgetting, memory=memory, seed=5),
    )
    draws = stream(5, "history", budget)
    played = CohortStatistics(budget, forgetting=forgetting, memory=memory)
    different = [tuple(sorted(draws.permutation(CLIENTS - 1)[:budget].tolist())) for _ in range(cohorts)]
    tried: set[int] = set()
    for cohort in [*different, *different[: cohorts // 3]]:
        played.add_reward(cohort, 0.5 + 0.01 * float(draws.normal()) + sum(cohort) / (10.0 * CLIENTS * budget), 0.0)
        tried.update(cohort)
    values = {n: value(shared, n % 8) for n in range(CLIENTS)}
    found = elect_cohort(
        values,
        pulls=np.zeros(CLIENTS, dtype=np.int64),
        config=shared,
        slot=slot,
        played=(played, tuple(sorted(tried))),
    )
    return found.cohort, tuple(bound.hex() for bound in found.indices)


def all_elected() -> list[tuple[Any, ...]]:
    return [
        elected(2, 15, 16),  # one cohort short of the opening's end
        elected(2, 16, 17),
        elected(12, 30, 31),
        elected(15, 30, 31),  # more exchanges of members than are looked at
        elected(15, 30, 34),  # a start at random is the best
        elected(4, 40, 60, forgetting=0.6),  # cohorts that have faded
    ]


def test_the_rule_elects_what_its_version_says() -> None:
    assert all_elected() == PINNED[RULE_VERSION]


CONSTANTS: dict[int, dict[str, Any]] = {
    2: {
        "opening": 16,
        "faded": 1e-6,
        "smallest variance": 1e-6,
        "noises": (0.05, 0.15, 0.5, 1.5),
        "trust": 2.0,
        "prior": {"level": 3.0, "additive": 0.7, "pairs": 0.5, "triples": 0.08, "own": 0.03, "surrogate": 1.0},
        "search": (40, 2, 2, 12, 256),
    },
}
"""The same of the constants, for a search finds the same set by many ways and few elections cannot tell them apart."""


def test_the_constants_are_those_of_the_version() -> None:
    found = {
        "opening": rules.COLD_START_LIMIT,
        "faded": played_module.FADED,
        "smallest variance": posterior.SMALLEST_VARIANCE,
        "noises": posterior.NOISES,
        "trust": posterior.TRUST,
        "prior": asdict(SetPrior()),
        "search": (
            search.POOL,
            search._PLAYED_STARTS,
            search._RANDOM_STARTS,
            search._MOST_STEPS,
            search._MOST_SWAPS,
        ),
    }
    assert found == CONSTANTS[RULE_VERSION]


def with_prior(part: str) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(election, "SetPrior", lambda: SetPrior(**{part: 0.123}))


CHANGES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "opening": lambda patch: patch.setattr(election, "COLD_START_LIMIT", 15),
    "faded": lambda patch: patch.setattr(played_module, "FADED", 1e-5),
    "noises": lambda patch: patch.setattr(posterior, "NOISES", (0.06, 0.16, 0.51, 1.51)),
    "trust": lambda patch: patch.setattr(posterior, "TRUST", 2.1),
    "pool": lambda patch: patch.setattr(search, "POOL", 30),
    "steps": lambda patch: patch.setattr(search, "_MOST_STEPS", 3),
    "swaps": lambda patch: patch.setattr(search, "_MOST_SWAPS", 200),
    "starts": lambda patch: patch.setattr(search, "_RANDOM_STARTS", 1),
    **{part: with_prior(part) for part in ("level", "additive", "pairs", "triples", "own")},
}


@pytest.mark.parametrize("change", CHANGES)
def test_no_constant_of_the_rule_can_change_unseen(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    CHANGES[change](monkeypatch)
    election._elect.cache_clear()
    try:
        assert all_elected() != PINNED[RULE_VERSION]
    finally:
        election._elect.cache_clear()


def test_peers_of_different_rule_versions_hold_different_elections(monkeypatch: pytest.MonkeyPatch) -> None:
    by_set, by_index = config(rule="bp-gp").digest, config().digest
    monkeypatch.setattr(configuration, "RULE_VERSION", RULE_VERSION + 1)
    assert config(rule="bp-gp").digest != by_set
    assert config().digest == by_index
    assert rules.RULE_VERSION == RULE_VERSION
