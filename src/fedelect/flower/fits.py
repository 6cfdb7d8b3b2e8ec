"""Does a strategy of Flower's fit the cohorts that will be elected? Checked before anything is sent."""

from collections.abc import Collection, Iterator
from types import ModuleType
from typing import Any

import flwr.server.strategy as legacy
import flwr.serverapp.strategy as flower
from flwr.server.strategy import Strategy as LegacyStrategy
from flwr.serverapp.strategy import Strategy

from fedelect.errors import ConfigurationError
from fedelect.flower.inner import list_strategies

_CYCLIC = (
    "it keeps one update of a round, and {} clients train in one; give budget=1, so that the selector says whose turn "
    "it is, or take FedXgbBagging"
)


def check_cohort_fits(strategy: Strategy, sizes: Collection[int], *, enough: int | None = None) -> None:
    """Raise ConfigurationError if a strategy, or one inside it, cannot do what it is for with these cohorts.

    Args:
        strategy: The inner strategy.
        sizes: The numbers of members that a cohort may have.
        enough: Replies after which a round goes on without the rest; None to wait for all.
    """
    for one in list_strategies(strategy):
        for fault in _find_faults(one, min(sizes), max(sizes), enough):
            raise ConfigurationError(f"{type(one).__name__} does not fit: {fault}")


def check_legacy_fits(strategy: LegacyStrategy, budget: int) -> None:
    """Raise ConfigurationError if a strategy of the older API, or one inside it, cannot work with such a cohort."""
    for one in list_strategies(strategy):
        if _is_a(one, "FedXgbNnAvg", legacy):
            raise ConfigurationError(
                "FedXgbNnAvg does not fit: its models are pairs and not flwr.common.Parameters, so they cannot be "
                "read; take FedXgbBagging"
            )
        if _is_a(one, "FedXgbCyclic", legacy) and budget > 1:
            raise ConfigurationError(f"FedXgbCyclic does not fit: {_CYCLIC.format(budget)}")
        if hasattr(one, "num_sampled_clients"):
            for fault in _find_privacy_faults(one, budget, budget, None):
                raise ConfigurationError(f"{type(one).__name__} does not fit: {fault}")


def _find_faults(strategy: Strategy, fewest: int, most: int, enough: int | None) -> Iterator[str]:
    least = fewest if enough is None else enough  # updates that it may have to do with
    if _is_a(strategy, "FedXgbCyclic") and most > 1:
        yield _CYCLIC.format(most)
    if _is_a(strategy, "Bulyan"):
        bad = _read(strategy, "num_malicious_nodes")
        if least < 4 * bad + 3:
            yield (
                f"with num_malicious_nodes={bad} it combines at least {4 * bad + 3} updates (4 f + 3) and else skips "
                f"the round, and {least} come; give a budget of {4 * bad + 3} or more, or fewer num_malicious_nodes"
            )
    if _is_a(strategy, "MultiKrum"):
        yield from _find_krum_faults(strategy, least)
    if _is_a(strategy, "FedTrimmedAvg"):
        beta = _read(strategy, "beta")
        if beta > 0 and int(beta * least) == 0:
            yield (
                f"with beta={beta:g} it trims none of {least} updates and is a plain mean; give a budget of "
                f"{int(1 / beta) + (1 / beta % 1 > 0)} or more, a larger beta, or take FedAvg"
            )
    if hasattr(strategy, "num_sampled_clients"):
        yield from _find_privacy_faults(strategy, fewest, most, enough)


def _find_krum_faults(strategy: Strategy, least: int) -> Iterator[str]:
    bad, kept = _read(strategy, "num_malicious_nodes"), _read(strategy, "num_nodes_to_select")
    if bad > 0 and least < 2 * bad + 3:
        yield (
            f"against num_malicious_nodes={bad} it needs at least {2 * bad + 3} updates (2 f + 3), and {least} come; "
            f"give a budget of {2 * bad + 3} or more, or fewer num_malicious_nodes"
        )
    if kept > least:
        yield (
            f"num_nodes_to_select={kept} of {least} updates leaves nothing to choose; give fewer, or a larger budget"
        )


def _find_privacy_faults(strategy: Strategy, fewest: int, most: int, enough: int | None) -> Iterator[str]:
    sampled = _read(strategy, "num_sampled_clients")
    if not fewest == most == sampled:
        trained = str(most) if fewest == most else f"from {fewest} to {most}"
        yield (
            f"its noise is for num_sampled_clients={sampled}, and {trained} clients train in a round, so that it would "
            f"not be what you promise; give both the same number"
        )
    if enough is not None:
        yield "its noise is for all members of a cohort, and enough_updates= goes on with fewer; leave that out"
    if getattr(strategy, "accountant", None) is not None:
        yield (
            "the privacy that its accountant= counts would be forgotten when a run is resumed, a slot is abandoned or "
            "a cold start begins anew; leave it out, and count every round of the run yourself"
        )


def _is_a(strategy: object, name: str, module: ModuleType = flower) -> bool:
    kind = getattr(module, name, None)  # other versions of Flower lack some
    return kind is not None and isinstance(strategy, kind)


def _read(strategy: Strategy, name: str) -> Any:
    return getattr(strategy, name)
