"""The roster: members, graph and settings of a federation, shared by all peers and the server. It holds no secret."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from fedelect.analytics import LinkedClients, link_couplings
from fedelect.errors import ConfigurationError
from fedelect.protocol import ElectionSettings, PeerConfig
from fedelect.scenario import ScenarioConfig
from fedelect.seeds import derive

ROSTER_NAME = "roster.json"
"""Name of the file in every folder."""


class Member(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One client.

    Attributes:
        name: Common name of its TLS certificate.
        address: Address it listens on, host:port.
        key: Its ed25519 public key, hexadecimal.
    """

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]+$")]
    address: Annotated[str, Meta(pattern=r"^.+:[0-9]+$")]
    key: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]


class Roster(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The federation.

    Attributes:
        version: Version of this format.
        members: One for each client, in client order. The FL server is never one of them.
        edges: (one, other) links of the graph.
        couplings: J of each link.
        settings: Settings of the election.
    """

    version: Annotated[int, Meta(ge=1, le=1)] = 1
    members: tuple[Member, ...]
    edges: tuple[tuple[int, int], ...]
    couplings: tuple[float, ...]
    settings: ElectionSettings

    def config(self) -> PeerConfig:
        """Return the checked configuration of the election.

        Raises:
            ConfigurationError: No election can be held with this roster.
        """
        names = {member.name for member in self.members}
        addresses = {member.address for member in self.members}
        if min(len(names), len(addresses)) < len(self.members):
            raise ConfigurationError("two members of the roster share a name or an address; give each its own")
        return PeerConfig(
            clients=len(self.members),
            edges=self.edges,
            couplings=self.couplings,
            keys=tuple(bytes.fromhex(member.key) for member in self.members),
            settings=self.settings,
        )


def read_roster(folder: Path) -> Roster:
    """Read the roster in `folder`.

    Raises:
        ConfigurationError: There is none, or it is damaged.
    """
    path = folder / ROSTER_NAME
    try:
        content = path.read_bytes()
        roster = msgspec.json.decode(content, type=Roster)
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}; `fedelect peers init` makes one") from error
    except msgspec.MsgspecError as error:
        raise ConfigurationError(f"{path} is no roster: {error}; copy it anew from where it was made") from error
    unknown = sorted(msgspec.json.decode(content)["settings"].keys() - asdict(roster.settings).keys())
    if unknown:
        raise ConfigurationError(
            f"{path} has unknown settings: {', '.join(unknown)}; known are {', '.join(asdict(roster.settings))}"
        )
    return roster


def encode_roster(roster: Roster) -> bytes:
    """Encode the roster for its file; floats are exact to the last bit."""
    return msgspec.json.format(msgspec.json.encode(roster), indent=1) + b"\n"


DEFAULT_RULE = "bp-gp"
"""Rule of a new federation. Under "bp-ucb", the paper's, a client that claims the highest mean is elected for ever."""


def settings_for(config: ScenarioConfig, *, seed: int, rule: str = DEFAULT_RULE, **settings: Any) -> ElectionSettings:
    """Settings of an election among a scenario's clients: those of the simulator's `peers` in trial 0 with this seed.

    `settings` may hold any other attribute of `ElectionSettings`. The exploration is written out, so that a roster
    does not depend on the default of a version.
    """
    chosen = ElectionSettings.for_scenario(config, seed=derive(seed, "selection", 0), rule=rule, **settings)
    return replace(chosen, exploration=chosen.exploration_weight)


def couplings_for(linked: LinkedClients) -> tuple[tuple[tuple[int, int], ...], tuple[float, ...]]:
    """Return the scenario's links, and J of each."""
    edges = tuple((int(one), int(other)) for one, other in linked.edges)
    return edges, tuple(link_couplings(linked).tolist())
