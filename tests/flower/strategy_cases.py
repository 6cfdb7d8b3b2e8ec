"""Every strategy of `flwr.serverapp.strategy`: how it is tried, what is known of it; makes the page's table.

python -m tests.flower.strategy_cases        # prints the table of docs/FLOWER.md
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import flwr.serverapp.strategy as flower
from flwr.clientapp.mod import adaptiveclipping_mod, fixedclipping_mod
from flwr.serverapp.strategy import Strategy

NODES = 7
"""Clients of the federation in which they are tried; all of them train. Bulyan against one liar needs as many."""

LOSS = {"PyTorch": "train_loss", "scikit-learn": "train_logloss"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A strategy, as it is tried.

    Attributes:
        make: Makes it; called with the app's library.
        members: Clients that train in a slot.
        libraries: The apps it is tried with.
        mods: Mods on `@app.train` of the client app.
        flower_refuses: Library -> the words in which plain Flower, too, refuses the app.
        misfit: Makes one that is refused in the constructor, and its number of members.
        misfit_says: A part of that refusal.
        remark: What to know of it, for the page.
    """

    make: Callable[[str], Strategy]
    members: int = NODES
    libraries: tuple[str, ...] = ("PyTorch", "scikit-learn")
    mods: tuple[Any, ...] = ()
    flower_refuses: dict[str, str] | None = None
    misfit: tuple[Callable[[], Strategy], int] | None = None
    misfit_says: str = ""
    remark: str = ""


def _privacy(kind: str, mods: tuple[Any, ...] = ()) -> Case:
    """A wrapper for differential privacy around FedAvg."""

    def make(number: int) -> Strategy:
        settings: dict[str, Any] = {"noise_multiplier": 0.01, "num_sampled_clients": number}
        settings |= {"clipping_norm": 1.0} if "Fixed" in kind else {"initial_clipping_norm": 1.0}
        wrapper: Strategy = getattr(flower, kind)(flower.FedAvg(), **settings)
        return wrapper

    names = ", ".join(f"`{mod.__name__}`" for mod in mods)
    on = f"{names} on `@app.train(mods=[...])`, not on the whole app; " if mods else ""
    return Case(
        make=lambda library: make(NODES),
        mods=mods,
        misfit=(lambda: make(3), NODES),
        misfit_says="num_sampled_clients=3, and 7 clients train",
        remark=f"{on}refused unless `num_sampled_clients` is the budget; a round with an error reply is skipped",
    )


CASES: dict[str, Case] = {
    "FedAvg": Case(make=lambda library: flower.FedAvg()),
    "FedProx": Case(make=lambda library: flower.FedProx(proximal_mu=0.1), remark="the client app adds the term"),
    "FedAvgM": Case(make=lambda library: flower.FedAvgM(server_learning_rate=0.7, server_momentum=0.5)),
    "FedAdam": Case(make=lambda library: flower.FedAdam()),
    "FedYogi": Case(make=lambda library: flower.FedYogi()),
    "FedAdagrad": Case(make=lambda library: flower.FedAdagrad()),
    "FedMedian": Case(make=lambda library: flower.FedMedian()),
    "FedTrimmedAvg": Case(
        make=lambda library: flower.FedTrimmedAvg(),
        misfit=(lambda: flower.FedTrimmedAvg(), 4),
        misfit_says="it trims none of 4 updates",
        remark="refused where `beta` times the budget is below 1, for it would trim nothing",
    ),
    "Krum": Case(
        make=lambda library: flower.Krum(num_malicious_nodes=1),
        misfit=(lambda: flower.Krum(num_malicious_nodes=1), 4),
        misfit_says=r"at least 5 updates \(2 f \+ 3\), and 4 come",
        remark="keeps one update of a round; refused below 2 f + 3 members against f > 0 liars",
    ),
    "MultiKrum": Case(
        make=lambda library: flower.MultiKrum(num_malicious_nodes=1, num_nodes_to_select=3),
        misfit=(lambda: flower.MultiKrum(num_nodes_to_select=5), 4),
        misfit_says="num_nodes_to_select=5 of 4",
        remark="as Krum; refused if `num_nodes_to_select` is more than the budget",
    ),
    "Bulyan": Case(
        make=lambda library: flower.Bulyan(num_malicious_nodes=1),
        misfit=(lambda: flower.Bulyan(num_malicious_nodes=1), 6),
        misfit_says=r"at least 7 updates \(4 f \+ 3\)",
        remark="refused below 4 f + 3 members; where fewer updates arrive, the slot is abandoned",
    ),
    "QFedAvg": Case(
        make=lambda library: flower.QFedAvg(client_learning_rate=0.1, train_loss_key=LOSS[library]),
        flower_refuses={"PyTorch": "Cannot cast ufunc 'multiply' output"},
        remark="`train_loss_key` must be in the replies. Models with whole-number arrays, as BatchNorm's counter, it "
        "cannot combine",
    ),
    "FedXgbBagging": Case(
        make=lambda library: flower.FedXgbBagging(),
        members=3,
        libraries=("XGBoost",),
        remark="Flower keeps one tree of each update but the first: have clients grow one tree in a round",
    ),
    "FedXgbCyclic": Case(
        make=lambda library: flower.FedXgbCyclic(),
        members=1,
        libraries=("XGBoost",),
        misfit=(lambda: flower.FedXgbCyclic(), 3),
        misfit_says="it keeps one update of a round, and 3 clients train in one; give budget=1",
        remark="refused unless `budget=1`: the selector, not Flower's cycle, says whose turn it is",
    ),
    "DifferentialPrivacyServerSideFixedClipping": _privacy("DifferentialPrivacyServerSideFixedClipping"),
    "DifferentialPrivacyServerSideAdaptiveClipping": _privacy("DifferentialPrivacyServerSideAdaptiveClipping"),
    "DifferentialPrivacyClientSideFixedClipping": _privacy(
        "DifferentialPrivacyClientSideFixedClipping", (fixedclipping_mod,)
    ),
    "DifferentialPrivacyClientSideAdaptiveClipping": _privacy(
        "DifferentialPrivacyClientSideAdaptiveClipping", (adaptiveclipping_mod,)
    ),
}


def list_strategies() -> list[str]:
    """Names of the strategies that the installed Flower has."""
    kinds = ((name, getattr(flower, name)) for name in flower.__all__)
    return [name for name, kind in kinds if inspect.isclass(kind) and issubclass(kind, Strategy) and kind != Strategy]


def make_table() -> str:
    """Return the table of docs/FLOWER.md."""
    lines = ["| strategy | tried with | what to know |", "| --- | --- | --- |"]
    for name, case in CASES.items():
        refused = case.flower_refuses or {}
        tried = ", ".join(one for one in case.libraries if one not in refused)
        words = "".join(f"; with the {library} app Flower says: {said}" for library, said in refused.items())
        lines.append(f"| {name} | {tried} | {case.remark}{words} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(make_table(), end="")
