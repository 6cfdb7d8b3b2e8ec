"""Noise on opinions: what it protects, how much of it, and what it costs in all.

An opinion is the mean of n values in [0, 1], one for each example of a client's evaluation set (accuracy is one), so
changing one example moves it by at most 1/n. A client adds Gaussian noise before the opinion leaves it (local
differential privacy). The noise is OpenDP's, discrete and free of floating-point leaks; so is the accounting: every
release is zero-concentrated private, releases add up, and the sum is converted to (epsilon, delta) for the whole
horizon. n counts as public. The noise comes from the operating system: it is the one draw that no seed fixes.
"""

import functools
import math
from dataclasses import dataclass
from typing import Any

from fedelect.errors import ConfigurationError, MissingExtraError
from fedelect.vocabulary import as_int

EXAMPLES = "num-examples"
"""Metric by which a client tells the server over how many examples its noisy opinion is."""


@dataclass(frozen=True, kw_only=True)
class OpinionPrivacy:
    """The promise a client makes to each person whose example it evaluates on.

    Attributes:
        epsilon: Over all `releases` together, for one example of one client's evaluation set, changed for another.
        delta: Likewise; much smaller than one over the number of examples.
        releases: How many opinions a client gives at most: the slots of the run, and some to spare for slots that
            are repeated after a crash. A client refuses to give more.
        largest_noise: Opinions with more noise than this (standard deviation) are of no use and count as missing;
            also bounds what a client gains by claiming few examples: it may say what lies up to six such deviations
            outside [0, 1].
    """

    epsilon: float
    delta: float = 1e-6
    releases: int
    largest_noise: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.epsilon < math.inf:
            raise ConfigurationError(f"epsilon: got {self.epsilon!r}; allowed: a number above 0")
        if not 0.0 < self.delta < 1.0:
            raise ConfigurationError(f"delta: got {self.delta!r}; allowed: a number between 0 and 1")
        if as_int("releases", self.releases) < 1:
            raise ConfigurationError(f"releases: got {self.releases}; allowed: a whole number from 1")
        if not 0.0 < self.largest_noise <= 1e6:
            raise ConfigurationError(f"largest_noise: got {self.largest_noise!r}; allowed: above 0, at most 1e6")

    def noise(self, examples: float) -> float:
        """Standard deviation of the noise on one opinion over `examples` examples.

        Raises:
            ConfigurationError: That is no number of examples, or they are too few for an opinion of any use.
        """
        scale = self._scale(examples)
        if scale > self.largest_noise:
            raise ConfigurationError(
                f"{int(examples)} examples would need noise of {scale:.3g}, more than {self.largest_noise:g} allowed"
            )
        return scale

    def release(self, opinion: float, examples: int) -> float:
        """`opinion` with noise, not clipped: fit to leave the client."""
        if not 0.0 <= opinion <= 1.0:
            raise ConfigurationError(f"an opinion must be in [0, 1] before noise is added, got {opinion!r}")
        return float(_gaussian(self.noise(examples))(float(opinion)))

    def cost(self, examples: int) -> float:
        """Cost of one release for one example, as zero-concentrated privacy (rho); costs add up."""
        return float(_gaussian(self._scale(examples)).map(1.0 / examples))

    @property
    def budget(self) -> float:
        """Largest cost (rho) in all: that of `releases` releases, which is worth (epsilon, delta)."""
        return self.releases * self.cost(1)

    def example_level(self, examples: int) -> float:
        """Epsilon of all releases for one example: at most `epsilon`, computed from the noise that is added."""
        return _compute_epsilon(self._scale(examples), 1.0 / examples, self.releases, self.delta)

    def client_level(self, examples: int) -> float:
        """Epsilon of all releases, at the same delta, for a client's whole evaluation set at once.

        This is what the noise says about whether the client's data as a whole can be told: usually nothing much.
        """
        return _compute_epsilon(self._scale(examples), 1.0, self.releases, self.delta)

    def _scale(self, examples: float) -> float:
        if not (1 <= examples <= 1e12 and examples == int(examples)):
            raise ConfigurationError(f"an opinion over {examples!r} examples cannot be protected; it takes at least 1")
        return _unit_noise(self.epsilon, self.delta, self.releases) / examples


def _opendp() -> Any:
    try:
        import opendp.prelude as dp
    except ImportError as error:
        raise MissingExtraError("privacy of opinions", "flower") from error
    dp.enable_features("contrib")  # OpenDP's word for: the proof has been checked by its contributors
    return dp


@functools.lru_cache(maxsize=64)
def _gaussian(scale: float) -> Any:
    dp = _opendp()
    return dp.m.make_gaussian(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=scale)


_LARGEST_COST = 200.0


def _compute_epsilon(scale: float, sensitivity: float, releases: int, delta: float) -> float:
    """Epsilon at `delta` of `releases` Gaussian releases.

    Under zero-concentrated privacy the costs (sensitivity / scale)^2 / 2 add up, so `releases` of them cost what one
    with sqrt(releases) times the sensitivity does. A cost so high that OpenDP's tighter conversion overflows is
    converted by the plain bound rho + 2 sqrt(rho ln(1 / delta)); no promise is left to speak of then.
    """
    dp = _opendp()
    moved = sensitivity * math.sqrt(releases)
    cost = float(_gaussian(scale).map(moved))
    if cost > _LARGEST_COST:
        return cost + 2.0 * math.sqrt(cost * math.log(1.0 / delta))
    return float(dp.c.make_zCDP_to_approxDP(_gaussian(scale)).map(moved).epsilon(delta))


@functools.lru_cache(maxsize=64)
def _unit_noise(epsilon: float, delta: float, releases: int) -> float:
    """The smallest noise that keeps within the budget for a sensitivity of 1; it scales with the sensitivity."""
    dp = _opendp()

    def with_scale(scale: float) -> Any:
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(_gaussian(scale)), delta)

    found = dp.binary_search_param(with_scale, d_in=math.sqrt(releases), d_out=(epsilon, delta), T=float)
    return float(found) * (1.0 + 1e-9)  # a hair more, for the division by the number of examples is rounded
