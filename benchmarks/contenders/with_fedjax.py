"""Google's fedjax: its federated averaging, compiled by jax.

fedjax 0.0.17 asks jax for `tree_map`, which newer jax keeps in `jax.tree_util` only. Its pmap backend, a client for
each device, needs more of what newer jax has dropped, and is left out.
"""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from benchmarks.contenders.work import Visit, Work, build_world, mean_opinion, signs, with_ones
from numpy.typing import NDArray

jax.tree_map = jax.tree_util.tree_map

import fedjax
from fedjax.algorithms import fed_avg


def _hinge(model: Any, batch: Any) -> Any:
    return jnp.maximum(0, 1 - batch["y"] * (batch["x"] @ model)).sum(axis=1).mean()


@final
class Fedjax:
    """`federated_averaging` with the server's step 1."""

    versions = f"fedjax {version('fedjax')}, jax {jax.__version__}"

    def __init__(self, work: Work, threads: int) -> None:
        self._world = build_world(work)
        settings = self._world.config.model
        batches = fedjax.ShuffleRepeatBatchHParams(batch_size=settings.batch, num_epochs=settings.epochs, seed=1)
        self._algorithm = fed_avg.federated_averaging(
            lambda model, batch, rng: jax.grad(_hinge)(model, batch),
            fedjax.optimizers.sgd(settings.step),
            fedjax.optimizers.sgd(1.0),
            batches,
        )
        shares = zip(self._world.train_inputs, self._world.train_labels, strict=True)
        self._clients = [fedjax.ClientDataset({"x": with_ones(x), "y": signs(y)}) for x, y in shares]

    def run(self, visits: Sequence[Visit]) -> list[float]:
        """One slot after the other."""
        return [mean_opinion(self._world, self._slot(visit)) for visit in visits]

    def _slot(self, visit: Visit) -> NDArray[Any]:
        state = self._algorithm.init(jnp.zeros((785, 10)))
        key = jax.random.PRNGKey(visit.trial)
        for _ in range(self._world.config.rounds_per_slot):
            cohort = [(b"%d" % client, self._clients[client], key) for client in visit.cohort]
            state, _ = self._algorithm.apply(state, cohort)
        return np.asarray(state.params)
