"""Settings for all tests: hypothesis draws the same examples every time, and Ctrl-C reaches child processes."""

import signal

from hypothesis import HealthCheck, settings

# No test fails because the machine is slow: neither by a deadline for an example nor by one for drawing it.
settings.register_profile(
    "fedelect", derandomize=True, deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fedelect")

# A shell starts background jobs with SIGINT ignored, and children inherit that: their Ctrl-C tests would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
