"""Numbers of the pre-registered run as text."""

from fedelect.equations.intervals import Interval
from paper.registered.registration import RegisteredNumber


def figure(number: RegisteredNumber, interval: Interval) -> str:
    """A mean with its interval, such as "0.8670 ± 0.0081"; without the interval where one drawing leaves it unknown."""
    digits = 4 if "accuracy" in number.measured else 1
    half = "" if interval.half_width is None else f" ± {interval.half_width:.{digits}f}"
    return f"{interval.mean:.{digits}f}{half}"
