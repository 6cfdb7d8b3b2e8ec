"""The radio link of the paper: path loss (Sec. VI), received SNR, survival of Rayleigh block fading."""

import numpy as np

from fedelect.vocabulary import Floats

NEAREST_KM = 0.001
"""Clients nearer to the server than one metre count as one metre away: the path loss has no value at 0."""


def path_loss_db(distance_km: Floats) -> Floats:
    """Path loss 128.1 + 37.6 log10(d), dB; d in km. Shapes: (...) -> (...)."""
    loss: Floats = 128.1 + 37.6 * np.log10(np.maximum(distance_km, NEAREST_KM))
    return loss


def received_snr(distance_km: Floats, *, transmit_power_dbm: float, mean_snr_db: float) -> Floats:
    """Received SNR of each client as a power ratio (not dB), the noise power set by its mean.

    The noise power is the one under which the mean over clients of the received SNR is `mean_snr_db`. The transmit
    power therefore cancels out as long as all clients share it.

    Args:
        distance_km: (N,) distance of each client from the server.
        transmit_power_dbm: P_0.
        mean_snr_db: 10 log10 of the mean over clients of the SNR.

    Returns:
        (N,) ratios >= 0.
    """
    received_mw = 10.0 ** ((transmit_power_dbm - path_loss_db(distance_km)) / 10.0)
    noise_mw = received_mw.mean() / 10.0 ** (mean_snr_db / 10.0)
    snr: Floats = received_mw / noise_mw
    return snr


def fading_success_probability(snr: Floats, *, threshold_db: float) -> Floats:
    """Probability that the SNR under Rayleigh fading reaches the threshold: exp(-threshold / SNR).

    Args:
        snr: (...) mean SNR as a power ratio, > 0.
        threshold_db: SNR that the upload needs, dB.

    Returns:
        (...) probabilities.
    """
    success: Floats = np.exp(-(10.0 ** (threshold_db / 10.0)) / snr)
    return success
