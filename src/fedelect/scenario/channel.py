"""Probabilities of uploads, and draws of which arrive.

Drawn for all N clients in one block per (trial, slot), so whether a client's upload arrives never depends on the
other members of the cohort: selectors compared within a trial share their luck.
"""

import numpy as np
from numpy.typing import NDArray

from fedelect.equations.wireless import fading_success_probability, received_snr
from fedelect.scenario.config import ChannelConfig
from fedelect.seeds import stream
from fedelect.vocabulary import Cohort, Floats


def upload_probabilities(config: ChannelConfig, server_distance_km: Floats) -> Floats:
    """Upload probability theta of each client: as given, or the product of the paper's three events (Sec. II-A).

    The three events of "derived" are: training ends within the round, the upload survives Rayleigh block
    fading, the client does not drop out.

    Args:
        config: The [channel] table.
        server_distance_km: (N,) distance of each client from the server.

    Returns:
        (N,) probabilities.
    """
    clients = server_distance_km.shape
    if config.upload_probability != "derived":
        return np.array(np.broadcast_to(np.array(config.upload_probability, dtype=np.float64), clients))
    snr = received_snr(server_distance_km, transmit_power_dbm=config.transmit_power_dbm, mean_snr_db=config.mean_snr_db)
    survives = fading_success_probability(snr, threshold_db=config.threshold_db)
    finishes = np.array(config.finish_probability, dtype=np.float64)
    stays = 1.0 - np.array(config.dropout_probability, dtype=np.float64)
    return finishes * survives * stays


def draw_uploads(
    upload_probability: Floats, cohort: Cohort, *, rounds: int, seed: int, trial: int, slot: int
) -> NDArray[np.bool_]:
    """Draw which uploads arrive in each round of a slot, X; independently each round (block fading).

    Args:
        upload_probability: (N,) theta of all clients.
        cohort: The K clients that train.
        rounds: L.
        seed: Seed of the run; the stream is ("channel", trial, slot).
        trial: Number of the Monte Carlo trial.
        slot: Number of the slot.

    Returns:
        (L, K), columns in cohort order.
    """
    members = list(cohort)
    theta = upload_probability[members]
    if (theta >= 1.0).all():
        return np.ones((rounds, len(members)), dtype=np.bool_)
    luck = stream(seed, "channel", trial, slot).random((rounds, upload_probability.size))
    return luck[:, members] < theta
