"""Beliefs of the clients about being worth electing: both readings of Sec. III-B and Appendix B.

"evidence" is what the printed equations `Belief`, `local`, `message` and `compa` leave once messages are
normalised: the square of the client's own opinion. "ising" is the spin model of Appendix B: every client carries a
spin (+1 = should be elected), weighed by exp(J_ij s_i s_j) along links and exp(theta_n s_n) at clients, and
messages nu follow the tanh form of eq. `BPrewrite`.

A dense settling (`settle`, arrays over all links) and a peer that only sees its own neighbours must give the same
floats. Hence the order of every sum is fixed: incoming messages are added in order of the sending client, starting
from 0.0, and the share of one neighbour is then subtracted; and both sides call `outgoing_messages` and
`belief_up`, which work element by element.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fedelect.errors import ConfigurationError
from fedelect.vocabulary import Floats, Ints

EVIDENCE_FLOOR = 1e-6
"""r^2 is kept within [1e-6, 1 - 1e-6], so that the opinions 0 and 1 have finite fields (about -6.9 and 6.9)."""

SETTLED_RESIDUAL = 1e-6
"""A run of a fixed number of rounds is reported as settled when its last residual is at most this."""

_ALMOST_ONE = float(np.nextafter(1.0, 0.0))
# exp(2 * 350) is still finite; beyond it a belief is 0 or 1 to the last bit.
_SATURATED = 350.0


def local_field(opinions: Floats) -> Floats:
    """Field of each client: theta = 1/2 ln(r^2 / (1 - r^2)), r^2 kept within [1e-6, 1 - 1e-6].

    Shapes: (...) -> (...). An opinion that is nan is no evidence either way: field 0.
    """
    evidence = np.clip(opinions * opinions, EVIDENCE_FLOOR, 1.0 - EVIDENCE_FLOOR)
    return np.where(np.isnan(opinions), 0.0, 0.5 * np.log(evidence / (1.0 - evidence)))


def evidence_belief(opinions: Floats) -> Floats:
    """Belief under the "evidence" reading: r^2, eq. `local`. Shapes: (...) -> (...); nan stays nan."""
    return opinions * opinions


def path_loss_coupling(lengths_km: Floats, *, scale: float, exponent: float) -> Floats:
    """The paper's coupling J = -C d^beta (after eq. `compa` in Appendix B): linked clients repel, far ones more.

    Args:
        lengths_km: (M,) length d of each link in km.
        scale: C.
        exponent: beta.

    Returns:
        (M,) couplings.
    """
    return -scale * np.power(lengths_km, exponent)


@dataclass(frozen=True, slots=True, eq=False)
class DirectedLinks:
    """Both directions of every link, sorted by (target, source).

    Attributes:
        clients: N.
        sources: (2M,) who sends.
        targets: (2M,) who receives.
        reverse: (2M,) position of the opposite direction.
        links: (2M,) row of the undirected link.
    """

    clients: int
    sources: Ints
    targets: Ints
    reverse: Ints
    links: Ints


def directed_links(edges: ArrayLike, clients: int) -> DirectedLinks:
    """Both directions of the (M, 2) undirected `edges` among `clients` clients, checked and sorted."""
    pairs = np.asarray(edges)
    if pairs.size == 0:
        pairs = np.empty((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise ConfigurationError(
            f"edges must be an (M, 2) array of client numbers, got {pairs.dtype} of shape {pairs.shape}"
        )
    pairs = pairs.astype(np.int64)
    count = len(pairs)
    if count and not (pairs.min() >= 0 and pairs.max() < clients):
        raise ConfigurationError(f"edges name a client outside 0..{clients - 1}; got {pairs.min()}..{pairs.max()}")
    if (pairs[:, 0] == pairs[:, 1]).any():
        own = int(pairs[pairs[:, 0] == pairs[:, 1]][0, 0])
        raise ConfigurationError(f"edges link client {own} to itself; remove that edge")
    sources, targets = np.concatenate([pairs, pairs[:, ::-1]]).T
    place = targets * clients + sources
    order = np.argsort(place, kind="stable")
    repeated = np.flatnonzero(np.diff(place[order]) == 0)
    if repeated.size:
        twice = order[repeated[0]]
        raise ConfigurationError(f"edges link clients {sources[twice]} and {targets[twice]} twice; keep one of them")
    position = np.empty_like(order)
    position[order] = np.arange(2 * count)
    opposite = position[np.where(order < count, order + count, order - count)]
    return DirectedLinks(clients, sources[order], targets[order], opposite, order % max(count, 1))


def outgoing_messages(cavities: Floats, strengths: Floats, previous: Floats, *, damping: float) -> Floats:
    """New messages from the fields that their senders feel without the receivers: eq. `BPrewrite`, damped.

    tanh(nu) = tanh(J) tanh(cavity); then nu <- damping * previous + (1 - damping) * nu. The product is kept one
    step inside (-1, 1), so that a message is at most 18.8 in size however strong the coupling.

    Args:
        cavities: (...) theta_j plus the incoming messages of j except that of the receiver.
        strengths: (...) tanh(J).
        previous: (...) the messages of the round before.
        damping: Share of the old message that is kept, in [0, 1).

    Returns:
        (...) messages.
    """
    product = np.clip(strengths * np.tanh(cavities), -_ALMOST_ONE, _ALMOST_ONE)
    return damping * previous + (1.0 - damping) * np.arctanh(product)


def incoming_totals(messages: Floats, links: DirectedLinks) -> Floats:
    """Sum of the messages to each client, added in order of the sender from 0.0. Shapes: (2M,) -> (N,)."""
    totals = np.bincount(links.targets, weights=messages, minlength=links.clients)
    return np.asarray(totals, dtype=np.float64)


def update_messages(
    messages: Floats, fields: Floats, links: DirectedLinks, strengths: Floats, *, damping: float
) -> Floats:
    """One parallel round of eq. `BPrewrite` over all directed links.

    Args:
        messages: (2M,) messages of the round before, in the order of `links`.
        fields: (N,) local fields theta.
        links: The directed links.
        strengths: (2M,) tanh(J).
        damping: Share of the old message that is kept, in [0, 1).

    Returns:
        (2M,) messages of this round.
    """
    totals = incoming_totals(messages, links)
    cavities = fields[links.sources] + (totals[links.sources] - messages[links.reverse])
    return outgoing_messages(cavities, strengths, messages, damping=damping)


def belief_up(fields: Floats, totals: Floats) -> Floats:
    """Probability that a client should be elected, P(s = +1) = 1 / (1 + exp(-2 (theta + sum of messages))).

    Shapes: (...), (...) -> (...), in [0, 1].
    """
    return 1.0 / (1.0 + np.exp(-2.0 * np.clip(fields + totals, -_SATURATED, _SATURATED)))


def message_change(new: Floats, old: Floats, *, damping: float) -> float:
    """Largest distance of a message from what its equation asks, before damping; 0.0 where there are none.

    Dividing by (1 - damping) keeps heavy damping from passing for convergence.
    """
    return float(np.abs(new - old).max(initial=0.0)) / (1.0 - damping)


@dataclass(frozen=True, slots=True)
class Settled:
    """The messages hardly moved in the last round."""

    rounds: int
    residual: float

    def __str__(self) -> str:
        return "settled"


@dataclass(frozen=True, slots=True)
class RoundsExhausted:
    """The messages were still moving when the rounds were used up; `advice` says what to try."""

    rounds: int
    residual: float
    advice: str

    def __str__(self) -> str:
        return self.advice


SettlingOutcome = Settled | RoundsExhausted
"""How a settling ended."""


def outcome_of(rounds: int, residual: float, tolerance: float = SETTLED_RESIDUAL) -> SettlingOutcome:
    """`Settled` if the last residual is at most `tolerance`, else `RoundsExhausted` with advice."""
    if residual <= tolerance:
        return Settled(rounds, residual)
    return RoundsExhausted(
        rounds,
        residual,
        f"after {rounds} rounds a message still moved by {residual:.3g} (more than {tolerance:.3g}): raise `rounds`, "
        "add `damping`, or weaken the coupling; fedelect.equations.theory.convergence tells whether it must settle",
    )


@dataclass(frozen=True, slots=True, eq=False)
class Settling:
    """Outcome of belief propagation.

    Attributes:
        beliefs: (N,) P(up) of each client.
        residuals: (rounds run,) largest move of a message in each round, see `message_change`.
        outcome: Whether the messages settled.
    """

    beliefs: Floats
    residuals: Floats
    outcome: SettlingOutcome


def check_exchange(rounds: int, damping: float) -> None:
    """Raise ConfigurationError unless rounds >= 1 and 0 <= damping < 1."""
    if rounds < 1:
        raise ConfigurationError(f"rounds must be at least 1, got {rounds}")
    if not 0.0 <= damping < 1.0:
        raise ConfigurationError(f"damping must be in [0, 1), got {damping!r}; 0 means none")


def settle(
    fields: Floats,
    edges: ArrayLike,
    couplings: Floats,
    *,
    rounds: int,
    damping: float = 0.0,
    tolerance: float | None = None,
) -> Settling:
    """Belief propagation from messages 0, all updated in parallel. O(N + M) memory.

    Args:
        fields: (N,) local fields, finite.
        edges: (M, 2) undirected links, each once.
        couplings: (M,) J of each link, finite.
        rounds: How many rounds to run; with a `tolerance`, at most how many.
        damping: Share of the old message that is kept, in [0, 1).
        tolerance: Stop after the first round whose residual is at most this. None: run exactly `rounds` rounds, as
            every democratized run does, and judge the outcome by `SETTLED_RESIDUAL`.
    """
    check_exchange(rounds, damping)
    if tolerance is not None and not tolerance > 0.0:
        raise ConfigurationError(f"tolerance must be positive, or None for a fixed number of rounds, got {tolerance!r}")
    theta, strength = np.asarray(fields, dtype=np.float64), np.asarray(couplings, dtype=np.float64)
    if theta.ndim != 1 or not np.isfinite(theta).all():
        raise ConfigurationError(f"fields must be one finite number for each client, got shape {theta.shape}: {theta}")
    links = directed_links(edges, theta.size)
    if strength.shape != (links.links.size // 2,) or not np.isfinite(strength).all():
        raise ConfigurationError(
            f"couplings must be one finite number for each of the {links.links.size // 2} edges, "
            f"got shape {strength.shape}: {strength}"
        )
    strengths = np.tanh(strength)[links.links]
    messages = np.zeros(links.links.size)
    residuals = []
    for _ in range(rounds):
        before, messages = messages, update_messages(messages, theta, links, strengths, damping=damping)
        residuals.append(message_change(messages, before, damping=damping))
        if tolerance is not None and residuals[-1] <= tolerance:
            break
    outcome = outcome_of(len(residuals), residuals[-1], SETTLED_RESIDUAL if tolerance is None else tolerance)
    return Settling(belief_up(theta, incoming_totals(messages, links)), np.array(residuals), outcome)
