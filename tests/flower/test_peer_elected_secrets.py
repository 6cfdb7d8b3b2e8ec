"""The witness at the server's door can complain: every way in which an app could leak an opinion is caught by it."""

import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flwr.app import ConfigRecord, Context, Message, MetricRecord
from flwr.clientapp.typing import ClientAppCallable
from tests.flower.elected_kit import TRAINING, L, elective
from tests.flower.fake_grid import initial_arrays
from tests.flower.server_view import Received, complaints
from tests.leaks import encodings, peer_secrets, telling, traces

from fedelect.errors import RunError


def as_metric(reply: Message, opinion: float) -> None:
    reply.content["metrics"] = MetricRecord({"accuracy": opinion})


def as_examples(reply: Message, opinion: float) -> None:
    reply.content["metrics"] = MetricRecord({"num-examples": 20})


def in_a_field(reply: Message, opinion: float) -> None:
    answer(reply)["note"] = "fine"


def as_text_in_the_outcome(reply: Message, opinion: float) -> None:
    answer(reply)["outcome"] = f"agreed ({opinion:.6f})"


def as_a_short_float_in_the_outcome(reply: Message, opinion: float) -> None:
    answer(reply)["outcome"] = struct.pack("<f", opinion).hex()


def beside_the_certificates(reply: Message, opinion: float) -> None:
    answer(reply)["certificates"] = [*_shown(reply), struct.pack(">d", opinion)]


def behind_a_certificate(reply: Message, opinion: float) -> None:
    answer(reply)["certificates"] = [one + struct.pack("<f", opinion) for one in _shown(reply)]


def in_the_slot(reply: Message, opinion: float) -> None:
    answer(reply)["done"] = int.from_bytes(struct.pack("<d", opinion), "little")


LEAKS: tuple[Callable[[Message, float], None], ...] = (
    as_metric,
    as_examples,
    in_a_field,
    as_text_in_the_outcome,
    as_a_short_float_in_the_outcome,
    beside_the_certificates,
    behind_a_certificate,
    in_the_slot,
)


def answer(reply: Message) -> ConfigRecord:
    record = reply.content["fedelect"]
    assert isinstance(record, ConfigRecord)
    return record


def _shown(reply: Message) -> list[bytes]:
    return list(answer(reply)["certificates"])  # type: ignore[arg-type]


def leaking(said: dict[int, float], client: int) -> list[Any]:
    """A mod outside ours that knows what the app thought: client 1 tries one leak after the other, from slot 2."""

    def mod(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        asked = message.content.get("fedelect")
        slot = int(str(asked["slot"])) if isinstance(asked, ConfigRecord) else 0
        reply = call_next(message, context)
        if client == 1 and 2 <= slot < 2 + len(LEAKS):
            LEAKS[slot - 2](reply, said[client])
        return reply

    return [mod]


def test_every_leak_of_an_app_is_caught_and_its_answers_do_not_count(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    slots = len(LEAKS) + 2
    with elective(tmp_path, mods=leaking) as fed:
        strategy = fed.strategy(rounds_per_slot=1)
        strategy.start(fed.grid, initial_arrays(), num_rounds=slots, timeout=60)
        secrets = peer_secrets(fed.peers.folders.values())
    answers = [message for message in fed.grid.received if message.kind != "train"]
    for slot in range(1, slots + 2):
        of_slot = answers[4 * (slot - 1) : 4 * slot]
        guilty = [bool(complaints([message], secrets, fed.peers.config, TRAINING)) for message in of_slot]
        assert sum(guilty) == (2 <= slot < 2 + len(LEAKS)), f"slot {slot}: {LEAKS[slot - 2].__name__}"
    assert caplog.text.count("peer01 takes no part in the election: its answer counts for nothing") == len(LEAKS)
    assert [one.slot for one in strategy.certificates] == list(range(1, slots + 2))  # by the others' answers


def test_a_leak_in_a_training_reply_is_caught_too(tmp_path: Path) -> None:
    def mods(said: dict[int, float], client: int) -> list[Any]:
        def mod(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
            reply = call_next(message, context)
            if message.metadata.message_type == "train" and client in said:
                reply.content.metric_records["metrics"]["loss"] = said[client]
            return reply

        return [mod]

    with elective(tmp_path, mods=mods) as fed:
        fed.strategy().start(fed.grid, initial_arrays(), num_rounds=2 * L, timeout=60)
        secrets = peer_secrets(fed.peers.folders.values())
    found = complaints(fed.grid.received, secrets, fed.peers.config, TRAINING)
    assert found and all("(train) holds the " in one for one in found)


def test_an_app_that_fails_while_it_judges_tells_the_server_nothing_of_it(tmp_path: Path) -> None:
    with elective(tmp_path) as fed:
        fed.workers[2].opinion = failing
        fed.workers[1].opinion = lambda honest: math.nan
        fed.workers[0].opinion = lambda honest: 1.5
        fed.strategy().start(fed.grid, initial_arrays(), num_rounds=2 * L, timeout=60)
        secrets = peer_secrets(fed.peers.folders.values())
    assert secrets["opinion"]  # of client 3; the others elect without one
    assert complaints(fed.grid.received, secrets, fed.peers.config, TRAINING) == []


def failing(honest: float) -> float:
    raise ValueError(f"the score is {honest!r}")


def test_a_client_without_the_mod_answers_with_an_error_and_not_with_its_opinion(tmp_path: Path) -> None:
    """The message is of a type of its own: an app that only has a plain evaluate function has none for it."""
    with elective(tmp_path) as fed:
        for client in range(4):
            fed.node(client).answer = fed.workers[client]  # replies to plain `evaluate` with its accuracy
        with pytest.raises(RunError, match="came to nothing"):
            fed.strategy(abandoned_allowed=0).start(fed.grid, initial_arrays(), num_rounds=L, timeout=300)
    assert [message.error for message in fed.grid.received] == [
        "ValueError: No evaluate.fedelect function registered"
    ] * 4


def test_the_search_knows_the_usual_forms_of_a_number() -> None:
    value = 0.8231707317073171
    long, short = encodings(value)
    for code in (struct.pack("<d", value), struct.pack(">d", value), b"0.8231707317073171", b"0.823171", b"0.82317"):
        assert code in long.values()
    assert struct.pack("<f", value) in short.values() and struct.pack(">f", value) in short.values()
    assert telling(value) and not any(map(telling, (0.0, 1.0, 0.5, 0.25, math.nan)))
    noise = Received("train", b"..." + struct.pack(">f", value) + b"...")
    secrets = {"opinion": {value, 0.0, 0.5}}
    assert traces(noise.content, secrets, beside=noise.content) == [f"the opinion {value!r} as float32 >"]
    assert traces(noise.content, secrets) == []  # such bytes may be a model's
    assert traces(b"at 127.0.0.1:0", {"mean": {0.0, math.nan}}, beside=bytes(100)) == []
