"""[flaws]: which clients have wrong data, upload something else than they trained, or fail; no selector sees it.

Who has a flaw is drawn from the stream ("flaws", draw, kind) of the scenario's seed, without overlap between kinds:
a client has two flaws only if `clients` names it twice.
"""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from fedelect.errors import ConfigurationError
from fedelect.scenario.keys import LARGEST, describe_key
from fedelect.seeds import stream

Flaws = dict[str, tuple[int, ...]]
"""Kind of flaw -> the clients that have it, sorted."""

_RATE = "a number > 0, at most 1"


class Members(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Some of the clients: a share of them, drawn, or a list."""

    share: Annotated[
        Annotated[float, Meta(gt=0.0, le=1.0)] | UnsetType,
        describe_key("share of the clients, drawn", "a number > 0, at most 1, unless `clients` is given"),
    ] = UNSET
    clients: Annotated[
        tuple[int, ...] | UnsetType,
        describe_key("these clients", "a list of different client numbers, unless `share` is given"),
    ] = UNSET


class _WrongData(Members, frozen=True, kw_only=True, forbid_unknown_fields=True):
    clean_test: Annotated[
        bool,
        describe_key("whether their own test shares are clean; if not, their opinions are wrong, too", "true or false"),
    ] = True


class RandomLabels(_WrongData, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[flaws.random_labels]: labels replaced by a class drawn evenly from all, the right one included."""

    rate: Annotated[float, describe_key("chance that a label is replaced", _RATE, gt=0.0, le=1.0)] = 1.0


class SwappedLabels(_WrongData, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[flaws.swapped_labels]: classes swapped in pairs, the same for all these clients; of an odd number one stays."""

    rate: Annotated[float, describe_key("chance that a label is swapped", _RATE, gt=0.0, le=1.0)] = 1.0


class NoisyFeatures(_WrongData, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[flaws.noisy_features]: Gaussian noise on every input."""

    noise: Annotated[
        float,
        describe_key("standard deviation, in those of the feature in the data set", "a number > 0", gt=0.0, le=LARGEST),
    ] = 1.0


class Copies(Members, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[flaws.copies]: the training share of an unflawed client, drawn, in place of an own one."""


class FreeRiders(Members, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[flaws.free_riders]: no training; the model that came is sent back."""

    noise: Annotated[
        float,
        describe_key(
            "standard deviation of noise on it, in root mean squares of its weights",
            "a number >= 0",
            ge=0.0,
            le=LARGEST,
        ),
    ] = 0.0


class FlippedUpdates(Members, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[flaws.flipped_updates]: what training changed is taken away instead of added."""

    scale: Annotated[float, describe_key("factor on the change", "a number > 0", gt=0.0, le=LARGEST)] = 1.0


class ScaledUpdates(Members, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[flaws.scaled_updates]: what training changed is sent multiplied."""

    scale: Annotated[float, describe_key("factor on the change", "a number >= 0", ge=0.0, le=LARGEST)] = 10.0


class Failing(Members, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[flaws.failing]: training fails, and nothing arrives in any round of the slot."""

    rate: Annotated[float, describe_key("chance that a slot's training fails", _RATE, gt=0.0, le=1.0)] = 0.5


class FlawsConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[flaws]: kinds of flaws, each with its own clients; leave the table out for none."""

    random_labels: RandomLabels | UnsetType = UNSET
    swapped_labels: SwappedLabels | UnsetType = UNSET
    noisy_features: NoisyFeatures | UnsetType = UNSET
    copies: Copies | UnsetType = UNSET
    free_riders: FreeRiders | UnsetType = UNSET
    flipped_updates: FlippedUpdates | UnsetType = UNSET
    scaled_updates: ScaledUpdates | UnsetType = UNSET
    failing: Failing | UnsetType = UNSET


def list_kinds(config: FlawsConfig | UnsetType) -> dict[str, Members]:
    """The kinds of flaws that are set, in order."""
    if config is UNSET:
        return {}
    tables = {field.name: getattr(config, field.name) for field in msgspec.structs.fields(config)}
    return {kind: table for kind, table in tables.items() if table is not UNSET}


def draw_members(tables: Mapping[str, Members], clients: int, *, seed: int, draw: int = 0) -> Flaws:
    """Draw who is in each kind. Lists are taken first; then each share is drawn among the clients left, in order.

    Args:
        tables: The kinds.
        clients: N.
        seed: The scenario's seed.
        draw: Number of the redraw.
    """
    drawn: Flaws = {}
    taken: set[int] = set()
    for kind, table in tables.items():
        if table.clients is not UNSET:
            drawn[kind] = tuple(sorted(table.clients))
            taken.update(table.clients)
    for kind, count in _count_drawn(tables, clients).items():
        order = stream(seed, "flaws", draw, kind).permutation(clients).tolist()
        free = [client for client in order if client not in taken]
        drawn[kind] = tuple(sorted(free[:count]))
        taken.update(drawn[kind])
    return {kind: drawn[kind] for kind in tables}


def check_members(tables: Mapping[str, Members], clients: int) -> None:
    """Check that each kind says who it is about, and that the shares leave room for each other.

    Args:
        tables: By the dotted key.
        clients: N.

    Raises:
        ConfigurationError: They do not.
    """
    for key, table in tables.items():
        if (table.share is UNSET) == (table.clients is UNSET):
            got = "neither share nor clients" if table.share is UNSET else "both share and clients"
            raise ConfigurationError(f"{key}: got {got}; allowed: one of the two")
        if table.clients is not UNSET:
            _check_list(f"{key}.clients", table.clients, clients)
    shares = {key: table.share for key, table in tables.items() if table.share is not UNSET}
    named = _name_clients(tables)
    total = sum(shares.values()) + len(named) / clients
    if shares and total > 1.0 + 1e-9:
        listed = [f"{key}.share = {share}" for key, share in shares.items()]
        listed += [f"{len(named)} of {clients} clients in lists"] if named else []
        raise ConfigurationError(
            f"{' and '.join(listed)} are {total:.4g} of the clients together; allowed: at most 1, for kinds with a "
            f"share take different clients"
        )
    for key, count in _count_drawn(tables, clients).items():
        if not count:
            raise ConfigurationError(
                f"{key}.share: got {shares[key]}, which of {clients} clients is nobody; allowed: a larger share, or a "
                f"list `clients`"
            )


def _check_list(key: str, listed: tuple[int, ...], clients: int) -> None:
    unknown = [client for client in listed if not 0 <= client < clients]
    if unknown:
        raise ConfigurationError(f"{key}: got the unknown client {unknown[0]}; allowed: clients of 0..{clients - 1}")
    if not listed or len(set(listed)) < len(listed):
        raise ConfigurationError(f"{key}: got {list(listed)}; allowed: one or more different clients")


def _name_clients(tables: Mapping[str, Members]) -> set[int]:
    return {client for table in tables.values() if table.clients is not UNSET for client in table.clients}


def _count_drawn(tables: Mapping[str, Members], clients: int) -> dict[str, int]:
    """Clients that each share makes, rounded; where that is too many together, those rounded up most get one less."""
    exact = {kind: table.share * clients for kind, table in tables.items() if table.share is not UNSET}
    counts = {kind: int(share + 0.5) for kind, share in exact.items()}
    excess = sum(counts.values()) + len(_name_clients(tables)) - clients
    by_gain = sorted(counts, key=lambda kind: exact[kind] - counts[kind])
    for kind in by_gain[: max(0, excess)]:
        counts[kind] -= 1
    return counts
