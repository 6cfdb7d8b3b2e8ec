"""How fast a neighbour is read: a token bucket of bytes. Time is an argument."""


class Pace:
    """Token bucket of one neighbour; full at first.

    Args:
        rate: Bytes a second that it gains.
        burst: Most bytes that it holds.
        debt: Most bytes that it owes; a larger debt is forgiven.
    """

    def __init__(self, *, rate: float, burst: float, debt: float) -> None:
        self._rate, self._burst, self._debt = rate, burst, debt
        self._left, self._at_s = burst, 0.0

    def charge(self, cost: float, now_s: float) -> float:
        """Take `cost` bytes; return the seconds until the debt is paid, 0 if there is none."""
        gained = self._rate * max(0.0, now_s - self._at_s)
        self._at_s = max(self._at_s, now_s)
        self._left = max(min(self._burst, self._left + gained) - cost, -self._debt)
        return max(0.0, -self._left / self._rate)
