"""Client times: local training by its own speed, the upload by its radio link.

These times are simulated, for selectors that use them; no client is cut off by them. A round of client n takes
E |D_n| seconds_per_sample / speed_n to train and model bits / (bandwidth log2(1 + SNR_n)) to upload.
"""

from typing import Annotated

import numpy as np
from msgspec import Struct

from fedelect.scenario.keys import LARGEST, describe_key
from fedelect.seeds import stream
from fedelect.vocabulary import Floats, Ints


class SystemConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[system]: how fast clients train and upload; leave the table out for these values."""

    seconds_per_sample: Annotated[
        float,
        describe_key(
            "seconds in which a client of speed 1 trains on a sample once",
            "a number > 0",
            gt=0.0,
            le=1e6,
        ),
    ] = 1e-3
    speed_spread: Annotated[
        float,
        describe_key(
            "standard deviation of the logarithm of the clients' speeds, whose median is 1",
            "a number from 0 to 5",
            ge=0.0,
            le=5.0,
        ),
    ] = 0.5
    jitter: Annotated[
        float,
        describe_key(
            "standard deviation of the logarithm of a client's training time from slot to slot",
            "a number from 0 to 5",
            ge=0.0,
            le=5.0,
        ),
    ] = 0.0
    bandwidth_hz: Annotated[
        float,
        describe_key(
            "bandwidth that a client uploads with, Hz",
            "a number > 0",
            gt=0.0,
            le=LARGEST,
        ),
    ] = 1e6


def draw_speeds(config: SystemConfig, clients: int, *, seed: int, draw: int = 0) -> Floats:
    """(N,) speeds, log-normal with median 1, from the scenario's stream ("system", draw)."""
    speeds: Floats = np.exp(config.speed_spread * stream(seed, "system", draw).standard_normal(clients))
    return speeds


def training_seconds(config: SystemConfig, sizes: Ints, speeds: Floats, *, epochs: int) -> Floats:
    """(N,) seconds of local training in one round, without jitter."""
    seconds: Floats = epochs * sizes * config.seconds_per_sample / speeds
    return seconds


def draw_jitter(config: SystemConfig, clients: int, *, seed: int, trial: int, slot: int) -> Floats:
    """(N,) factors on the training times of a slot, from the run's stream ("jitter", trial, slot); median 1."""
    if not config.jitter:
        return np.ones(clients)
    factors: Floats = np.exp(config.jitter * stream(seed, "jitter", trial, slot).standard_normal(clients))
    return factors


def upload_seconds(config: SystemConfig, mean_snr: Floats, *, model_bits: int) -> Floats:
    """(N,) seconds to upload a model at the capacity of a link with this mean SNR (power ratio)."""
    seconds: Floats = model_bits / (config.bandwidth_hz * np.log2(1.0 + mean_snr))
    return seconds


def draw_snr_db(mean_snr: Floats, *, rounds: int, seed: int, trial: int, slot: int) -> Floats:
    """(N,) received SNR in the first round of a slot under Rayleigh fading, dB.

    The draw that decides over the upload (`channel.draw_uploads`, stream ("channel", trial, slot)) is read as a
    fade: a client whose SNR exceeds the threshold here is one whose upload arrives in that round, where theta is
    derived from fading alone.

    Args:
        mean_snr: (N,) power ratios > 0.
        rounds: L, rounds in a slot.
        seed: Seed of the run.
        trial: Number of the trial.
        slot: Number of the slot.
    """
    luck = stream(seed, "channel", trial, slot).random((rounds, mean_snr.size))[0]
    fade = -np.log(np.maximum(luck, 1e-300))
    snr_db: Floats = 10.0 * np.log10(mean_snr * fade)
    return snr_db
