"""Which unfinished handshakes a listener keeps: a bounded number, fairly between addresses."""

import ipaddress
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

_Handshake = TypeVar("_Handshake", bound=Hashable)


def network_of(host: str) -> str:
    """Return what counts as one address: an IPv4 address, or the /64 of an IPv6 address.

    >>> network_of("192.0.2.7"), network_of("2001:db8::1:2%eth0"), network_of("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8::/64', '192.0.2.7')
    """
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))


class Handshakes(Generic[_Handshake]):
    """Handshakes that are under way, at most `limit` of them.

    One more pushes out the oldest of the address that has most. So an address that opens many loses its own, and
    those of other addresses go on; where all come from one address, the oldest go.

    Args:
        limit: Most handshakes at a time.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._of: dict[str, dict[_Handshake, None]] = {}  # address -> its handshakes, oldest first
        self._addresses: dict[_Handshake, str] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    def __iter__(self) -> Iterator[_Handshake]:
        return iter(self._addresses)

    def add(self, handshake: _Handshake, host: str) -> _Handshake | None:
        """Add a handshake with `host`; return the one to drop for it, which is no longer counted, or None."""
        address = network_of(host)
        self._addresses[handshake] = address
        self._of.setdefault(address, {})[handshake] = None
        if len(self._addresses) <= self._limit:
            return None
        most = max(self._of.values(), key=len)
        oldest = next(iter(most))
        self.discard(oldest)
        return oldest

    def discard(self, handshake: _Handshake) -> None:
        """Forget a handshake that has ended; nothing happens if it is forgotten already."""
        address = self._addresses.pop(handshake, None)
        if address is not None:
            del self._of[address][handshake]
            if not self._of[address]:
                del self._of[address]
