"""FAVOR: double deep Q-learning on the clients' compressed updates."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from fedelect.rules import ColdStart, pack, unpack
from fedelect.seeds import stream
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.literature.q_network import QNetwork, Weights
from fedelect.selectors.literature.updates import LastUpdates
from fedelect.selectors.parameters import as_float
from fedelect.vocabulary import UPDATE_SIZE, Feedback, Floats, Selection, Signal, as_int

_DISCOUNT = 0.9  # gamma
_MEMORY, _BATCH, _STEPS = 200, 32, 8  # slots in the replay memory, slots in a step, steps after each slot
_COPY_EVERY = 10  # slots after which the target network becomes the trained one


@dataclass(frozen=True, slots=True, eq=False)
class _Slot:
    """What a slot changed: the compressed rows of its members (K, d), nan without an upload, and the global (d,)."""

    members: tuple[int, ...]
    rows: Floats
    overall: Floats
    reward: float

    def apply(self, state: Floats) -> Floats:
        """Return the state (N + 1, d) after the slot."""
        after = state.copy()
        arrived = ~np.isnan(self.rows[:, 0])
        after[1 + np.array(self.members)[arrived]] = self.rows[arrived]
        after[0] = self.overall
        return after


@final
class Favor(AbstractSelector):
    """FAVOR (Wang, Kaplan, Niu, Li, INFOCOM 2020): double deep Q-learning on compressed weights.

    The state is the global model and the clients' last models, compressed by principal components, whose loadings come
    from the first round. A network with one hidden layer gives a Q value for each client; the K highest are elected.
    The reward of a slot is Xi^(accuracy - target) - 1, below 0 until the target is reached. The network is trained on a
    replay memory, towards r + gamma Q'(s', argmax over a of Q(s', a)). Q' is the target network, a copy that is renewed
    every 10 slots.

    Differs from the original: it learns in the run itself, slot by slot, where the original is trained beforehand in
    many runs of the same federation and then applied; so places go to random clients with the chance `exploration`.
    Training elects K clients at once, each of which takes the slot's reward as its own, where the original elects one.
    First updates come from a cold start in which every client trains once. Models are changes in the slot, as random
    projections (64 numbers), of which `components` principal ones are kept (100 in the original); the global model is
    their mean, weighted by sizes where told. The network is smaller (512 hidden units in the original). Accuracy is the
    reward that is told, which in a warm start is 0.5 plus a gain.

    A selection's indices are the members' Q values.

    Args:
        clients: N.
        budget: K.
        target: Accuracy to reach.
        sharpness: Xi, above 1.
        exploration: Chance that a place goes to a random client.
        components: d, principal components of an update that are kept, from 1 to 64.
        hidden: Hidden units of the networks.
        rate: Step size of gradient descent.
        seed: Fixes cold-start groups, networks, draws and ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"reward", "updates"})
    uses: ClassVar[frozenset[Signal]] = frozenset({"sizes"})
    advice: ClassVar[str] = "Many slots, and clients whose updates tell when they are of use: learns a policy."

    initial_arrays: ClassVar[Mapping[str, float]] = {"tried": 0.0}

    def __init__(
        self,
        *,
        clients: int,
        budget: int,
        target: float = 0.95,
        sharpness: float = 64.0,
        exploration: float = 0.1,
        components: int = 8,
        hidden: int = 32,
        rate: float = 0.1,
        seed: int,
    ) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._target = as_float("target", target, low=-1e3, high=1e3)
        self._sharpness = as_float("sharpness", sharpness, low=1.0, high=1e6)
        self._exploration = as_float("exploration", exploration, low=0.0, high=1.0)
        self._components = int(as_float("components", as_int("components", components), low=1, high=UPDATE_SIZE))
        hidden = int(as_float("hidden", as_int("hidden", hidden), low=1, high=4096))
        self._rate = as_float("rate", rate, low=0.0, high=1e3)
        self._cold = ColdStart(self.clients, self.budget, self.seed)
        self._first = LastUpdates(self.clients)
        self._loadings: Floats | None = None  # (64, d), from the end of the cold start on
        self._base: Floats = np.zeros((self.clients + 1, self._components))  # the state before the oldest slot kept
        self._slots: list[_Slot] = []
        self._state = self._base  # after the newest
        self._learnt = 0  # slots told since the cold start
        size = (self.clients + 1) * self._components
        self._network = QNetwork.draw(size, hidden, self.clients, stream(self.seed, "network"))
        self._copy = self._network  # the target network

    @property
    def q_values(self) -> Floats:
        """(N,) Q value of each client in the present state."""
        values: Floats = self._network.values(_flat(self._state)[None])[0].astype(np.float64)
        return values

    def _choose(self, slot: int, available: Available) -> Choice:
        group = self._cold.next_cohort(slot, available)
        if group is not None:
            return group, ()
        pool, values = self._candidates(available), self.q_values
        rng = stream(self.seed, "exploration", slot)
        count = int((rng.random(self.budget) < self._exploration).sum())
        chosen = rng.choice(pool, count, replace=False)
        left = np.setdiff1d(pool, chosen)
        best = self._pick_best(values, slot, left, self.budget - count)
        cohort = tuple(sorted([*chosen.tolist(), *best]))
        return cohort, tuple(values[list(cohort)].tolist())

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.updates is not None and feedback.reward is not None  # declared in `needs`
        if self._loadings is None:
            self._first.add(feedback.updates)
            self._mark_tried(selection)
            return
        slot = self._compress(selection, feedback)
        slots, base = [*self._slots, slot], self._base
        if len(slots) > _MEMORY:
            base, slots = slots[0].apply(base), slots[1:]
        network = self._train(self._network, base, slots, selection.slot)
        self._base, self._slots, self._network, self._state = base, slots, network, slot.apply(self._state)
        self._learnt += 1
        if self._learnt % _COPY_EVERY == 0:
            self._copy = network

    def _compress(self, selection: Selection, feedback: Feedback) -> _Slot:
        updates, loadings = feedback.updates, self._loadings
        assert updates is not None and loadings is not None and feedback.reward is not None
        members = list(selection.cohort)
        rows: Floats = updates[members] @ loadings
        sizes = np.ones(len(members)) if feedback.sizes is None else np.nan_to_num(feedback.sizes[members], nan=1.0)
        arrived = ~np.isnan(rows[:, 0])
        weights = np.where(arrived, np.maximum(sizes, 1e-12), 0.0)
        overall = (weights[arrived] @ rows[arrived]) / weights.sum() if arrived.any() else np.zeros(self._components)
        reward = self._sharpness ** min(feedback.reward - self._target, 10.0) - 1.0
        return _Slot(selection.cohort, rows, overall, float(reward))

    def _train(self, network: QNetwork, base: Floats, slots: list[_Slot], slot: int) -> QNetwork:
        """Return the network after some steps on batches of the slots kept."""
        rng, size = stream(self.seed, "replay", slot), min(_BATCH, len(slots))
        batches = [rng.choice(len(slots), size, replace=False) for _ in range(_STEPS)]
        states = np.stack([_flat(state) for state in _replay(base, slots)])
        rewards = np.array([one.reward for one in slots])
        actions = np.array([one.members for one in slots])
        for batch in batches:
            later = states[batch + 1]
            best = network.values(later).argmax(axis=1)
            targets = rewards[batch] + _DISCOUNT * self._copy.values(later)[np.arange(size), best]
            slope = network.slope(states[batch], actions[batch], targets.astype(np.float32))
            network = network.descend(slope, self._rate)
        return network

    def _abandon(self, selection: Selection) -> None:
        if self._loadings is None:
            self._mark_tried(selection)

    def _mark_tried(self, selection: Selection) -> None:
        """Note who has trained; when all have, fix the loadings and begin with the first updates as the state."""
        self.arrays["tried"][list(selection.cohort)] = 1.0
        self._cold.mark_tried(selection.cohort)
        if self.arrays["tried"].all():
            self._loadings = principal_loadings(self._first.rows, self._components)
            self._base = np.zeros((self.clients + 1, self._components))
            known = self._first.known
            self._base[1 + known] = self._first.rows[known] @ self._loadings
            self._base[0] = self._base[1 + known].mean(axis=0) if known.size else 0.0
            self._state = self._base

    def _memory(self) -> dict[str, Any]:
        return {
            "first": self._first.state(),
            "loadings": None if self._loadings is None else pack(self._loadings.ravel(), "<f8"),
            "base": pack(self._base.ravel(), "<f8"),
            "slots": [
                [list(one.members), pack(one.rows.ravel(), "<f8"), pack(one.overall, "<f8"), one.reward]
                for one in self._slots
            ],
            "learnt": self._learnt,
            "network": self._network.state(),
            "copy": self._copy.state(),
        }

    def _recall(self, memory: dict[str, Any]) -> None:
        size = self._components
        self._first.restore(memory["first"])
        self._cold.mark_tried(tuple(np.flatnonzero(self.arrays["tried"]).tolist()))
        if memory["loadings"] is not None:
            flat = unpack(memory["loadings"], "<f8", size=UPDATE_SIZE * size, what="loadings")
            self._loadings = flat.reshape(UPDATE_SIZE, size)
        flat = unpack(memory["base"], "<f8", size=self._base.size, what="state")
        self._base = flat.reshape(self._base.shape)
        self._slots = [
            _Slot(
                tuple(map(int, members)),
                unpack(rows, "<f8", size=len(members) * size, what="slot").reshape(len(members), size),
                unpack(overall, "<f8", size=size, what="slot"),
                float(reward),
            )
            for members, rows, overall, reward in memory["slots"]
        ]
        self._state = _replay(self._base, self._slots)[-1]
        self._learnt = int(memory["learnt"])
        self._network = self._network.restore(memory["network"])
        self._copy = self._copy.restore(memory["copy"])


def _replay(base: Floats, slots: list[_Slot]) -> list[Floats]:
    """The states (N + 1, d) before the oldest slot and after each of them."""
    states = [base]
    for one in slots:
        states.append(one.apply(states[-1]))
    return states


def _flat(state: Floats) -> Weights:
    """Input of the networks, of about unit length."""
    flat: Weights = (state / np.sqrt(state.size)).ravel().astype(np.float32)
    return flat


def principal_loadings(rows: Floats, components: int) -> Floats:
    """(64, d) loadings of the principal components of the rows (n, 64), scaled so that their scores are about 1.

    Rows of nan are left out. Directions that the rows do not span have loadings 0. The largest entry is positive.
    """
    known = rows[~np.isnan(rows[:, 0])]
    loadings = np.zeros((rows.shape[1], components))
    if not len(known):
        return loadings
    scale = np.sqrt(np.mean(known**2)) * np.sqrt(rows.shape[1] / components)
    _, sizes, directions = np.linalg.svd(known - known.mean(axis=0), full_matrices=False)
    kept = [axis for axis, size in zip(directions, sizes, strict=True) if size > 1e-9 * max(sizes[0], 1e-300)]
    for place, axis in enumerate(kept[:components]):
        loadings[:, place] = axis * np.sign(axis[np.argmax(np.abs(axis))]) / max(scale, 1e-300)
    return loadings
