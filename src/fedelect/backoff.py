"""Leave failing clients out for a while, and take them back.

For drivers of real clients, between availability and `ask`: a selector sees the result as `available`. A client that
fails (error, time-out, refused update) is left out for one slot, then two, four and so on, up to a cap; one success
forgives all. If too few clients remain, those left out longest return.
"""

from collections.abc import Collection, Mapping
from typing import Any

from fedelect.errors import StateError
from fedelect.vocabulary import ClientId

LONGEST_PAUSE = 32
"""Most slots for which a client is left out."""


class FailureBackoff:
    """Which clients are left out, and until when. Saved with a run."""

    def __init__(self) -> None:
        self._failures: dict[ClientId, int] = {}  # in a row
        self._until: dict[ClientId, int] = {}  # last slot in which the client is left out
        self._since: dict[ClientId, int] = {}  # slot of its last failure

    def record(self, slot: int, *, failed: Collection[ClientId], succeeded: Collection[ClientId]) -> None:
        """Record who failed and who delivered an update in `slot`."""
        for client in succeeded:
            self._failures.pop(client, None)
            self._until.pop(client, None)
            self._since.pop(client, None)
        for client in failed:
            self._failures[client] = self._failures.get(client, 0) + 1
            pause = min(2 ** min(self._failures[client] - 1, 30), LONGEST_PAUSE)
            self._until[client] = slot + pause
            self._since[client] = slot

    def list_left_out(self, slot: int) -> list[ClientId]:
        """Return the clients left out in `slot`, sorted."""
        return sorted(client for client, until in self._until.items() if slot <= until)

    def filter(self, available: Collection[ClientId], slot: int, *, needed: int) -> list[ClientId]:
        """Return the available clients that are not left out in `slot`, at least `needed` if there are as many.

        Those that failed longest ago return first; among them, those with the fewest failures in a row.
        """
        pausing = set(self.list_left_out(slot))
        usable = [client for client in available if client not in pausing]
        returning = sorted(
            (client for client in available if client in pausing),
            key=lambda client: (self._since[client], self._failures[client], client),
        )
        usable += returning[: max(0, needed - len(usable))]
        return sorted(usable)

    def state(self) -> dict[str, list[list[int]]]:
        """Return the state as JSON-able values."""
        clients = sorted(self._failures)
        return {"clients": [[one, self._failures[one], self._until[one], self._since[one]] for one in clients]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state.

        Raises:
            StateError: It is damaged.
        """
        try:
            rows = [tuple(map(int, row)) for row in state["clients"]]
            self._failures = {client: failures for client, failures, _, _ in rows}
            self._until = {client: until for client, _, until, _ in rows}
            self._since = {client: since for client, _, _, since in rows}
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the saved list of failing clients is damaged: {error!r}") from error
