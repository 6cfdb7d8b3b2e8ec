"""Which unfinished handshakes a listener keeps."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from fedelect.runtime.transport.handshakes import Handshakes, network_of


def test_where_all_come_from_one_address_the_oldest_goes() -> None:
    held: Handshakes[int] = Handshakes(3)
    assert [held.add(one, "127.0.0.1") for one in range(6)] == [None, None, None, 0, 1, 2]
    assert len(held) == 3


def test_an_address_that_opens_many_loses_its_own_and_not_the_only_one_of_another() -> None:
    held: Handshakes[str] = Handshakes(100)
    held.add("neighbour", "192.0.2.1")
    pushed_out = [held.add(f"stranger {n}", "198.51.100.9") for n in range(10_000)]
    assert "neighbour" not in pushed_out and pushed_out[99:] == [f"stranger {n}" for n in range(9_901)]


def test_an_attacker_with_a_whole_ipv6_network_counts_once() -> None:
    held: Handshakes[str] = Handshakes(10)
    held.add("neighbour", "2001:db8:1::7")
    assert "neighbour" not in [held.add(str(n), f"2001:db8:2::{n:x}") for n in range(1000)]


def test_what_has_ended_is_not_counted_and_may_end_twice() -> None:
    held: Handshakes[int] = Handshakes(2)
    held.add(1, "192.0.2.1")
    held.discard(1)
    held.discard(1)
    assert len(held) == 0
    assert [held.add(one, "192.0.2.1") for one in (2, 3, 4)] == [None, None, 2]


@given(st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=80), st.integers(1, 6))
def test_it_keeps_what_a_plain_list_would_keep(steps: list[tuple[int, bool]], limit: int) -> None:
    held: Handshakes[int] = Handshakes(limit)
    plain: list[tuple[int, str]] = []
    for number, (last, ends) in enumerate(steps):
        if ends and plain:
            gone = plain.pop(last % len(plain))[0]
            held.discard(gone)
        host = f"192.0.2.{last}"
        plain.append((number, host))
        dropped = held.add(number, host)
        if len(plain) <= limit:
            assert dropped is None
        else:
            counts = Counter(where for _, where in plain)
            candidates = {
                next(one for one, where in plain if where == host)
                for host, count in counts.items()
                if count == max(counts.values())
            }
            assert dropped in candidates
            plain = [(one, where) for one, where in plain if one != dropped]
        assert len(held) == len(plain) <= limit


def test_addresses_that_are_one_network() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff") != network_of("2001:db8:0:1::1")
    assert network_of("192.0.2.1") != network_of("192.0.2.2")
