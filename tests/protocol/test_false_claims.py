"""What a client gains by a false claim about itself that nobody can prove wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedelect.protocol.proofs import can_move
from fedelect.runtime.roster import settings_for
from fedelect.scenario.config import ScenarioConfig
from fedelect.seeds import stream
from fedelect.selectors import BpGp, BpUcb
from fedelect.vocabulary import Feedback

CLIENTS, BUDGET, SLOTS = 20, 5, 80
WORST = 0


def elections_of_the_worst(kind: type[BpUcb] | type[BpGp], *, false: bool, seed: int) -> int:
    """How often client 0, whose data is worth least, is elected; `false`: whatever it judges, it claims 1."""
    worth = np.linspace(0.3, 0.9, CLIENTS)
    selector = kind(clients=CLIENTS, budget=BUDGET, seed=seed)
    elections = 0
    for slot in range(1, SLOTS + 1):
        selection = selector.ask()
        elections += WORST in selection.cohort
        noise = stream(seed, "noise", slot).normal(0.0, 0.05, CLIENTS)
        opinions = np.clip(worth[list(selection.cohort)].mean() + noise, 0.0, 1.0)
        if false:
            opinions[WORST] = 1.0
        selector.tell(selection, Feedback(opinions=opinions, beliefs=opinions**2))
    return elections


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_under_bp_ucb_the_worst_client_elects_itself_by_claiming_the_most(seed: int) -> None:
    assert elections_of_the_worst(BpUcb, false=False, seed=seed) <= 3
    assert elections_of_the_worst(BpUcb, false=True, seed=seed) >= 75


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_under_bp_gp_the_same_claims_move_nothing(seed: int) -> None:
    honest, false = (elections_of_the_worst(BpGp, false=claims, seed=seed) for claims in (False, True))
    assert false <= honest + 1 <= 5


@given(st.lists(st.booleans(), max_size=20))
def test_a_mean_of_one_never_moves_impossibly_so_no_history_proves_it_wrong(elected: list[bool]) -> None:
    # A client whose own data makes every model look perfect claims just that: to others, the two are the same.
    claims = [(float("nan"), 0)]
    for number in range(len(elected)):
        elections = sum(elected[: number + 1])
        claims.append((1.0 if elections else float("nan"), elections))
    for place, (before, then) in enumerate(claims):
        assert all(can_move(before, after, elections - then) for after, elections in claims[place:])


def test_new_federations_elect_by_bp_gp() -> None:
    assert settings_for(ScenarioConfig(clients=5, budget=2), seed=1).rule == "bp-gp"
