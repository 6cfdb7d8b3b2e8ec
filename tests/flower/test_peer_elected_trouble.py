"""Elections on Flower in which something goes wrong at the clients: hostile answers, peers and nodes that are down."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from tests.flower.elected_kit import CLIENTS, Federation, elective, runner, start, statuses
from tests.flower.fake_grid import initial_arrays
from tests.runtime.federation_kit import make_federation

from fedelect.errors import AvailabilityError, ConfigurationError, RunError
from fedelect.flower import ElectionMod
from fedelect.flower.election_messages import ELECTION, MOST_CERTIFICATES, ElectionAnswer, read_answer
from fedelect.protocol import Certificate, decode_record, encode
from fedelect.seeds import stream

Hostile = Callable[[Message, RecordDict], RecordDict]


@pytest.fixture
def fed(tmp_path: Path) -> Iterator[Federation]:
    with elective(tmp_path, max_faulty=1, silent_intervals=10, resend_s=0.2, slot_s=10.0) as made:
        yield made


def changed(**fields: Any) -> Hostile:
    def change(message: Message, honest: RecordDict) -> RecordDict:
        return RecordDict({"fedelect": ConfigRecord(dict(honest.config_records["fedelect"]) | fields)})

    return change


HOSTILE: dict[str, Hostile] = {
    "nothing": lambda message, honest: RecordDict(),
    "opinion": lambda message, honest: RecordDict({"metrics": MetricRecord({"accuracy": 0.7})}),
    "arrays": lambda message, honest: RecordDict({"fedelect": ArrayRecord([np.ones(3)])}),
    "other slot": changed(done=99),
    "negative slot": changed(done=-1),
    "slot as text": changed(done="1"),
    "slot as truth": changed(done=True),
    "outcome": changed(outcome="\x1b[2J" * 1000),
    "certificates as text": changed(certificates=["46450106"]),
    "certificates as bytes": changed(certificates=b"FE"),
    "no frame": changed(certificates=[b"", b"FE", stream(1, "no frame").bytes(200)]),
    "too many": changed(certificates=[b"x"] * (MOST_CERTIFICATES + 1)),
    "too large": changed(certificates=[bytes(9 * 1024 * 1024)]),
    "another field": changed(note="hello"),
    "another record": lambda message, honest: RecordDict({**honest, "more": ConfigRecord()}),
}


def test_hostile_answers_are_named_in_the_log_and_change_nothing(
    fed: Federation, caplog: pytest.LogCaptureFixture
) -> None:
    kinds = iter(HOSTILE)

    def hostile(message: Message, honest: RecordDict) -> RecordDict:
        return honest if message.metadata.message_type == "train" else HOSTILE[next(kinds)](message, honest)

    fed.answer(2, hostile)
    strategy = start(fed, len(HOSTILE) - 1)
    assert statuses(fed) == ["done"] * (len(HOSTILE) - 1)
    assert len(strategy.certificates) == len(HOSTILE)
    named = [line.getMessage() for line in caplog.records if "peer02 takes no part" in line.getMessage()]
    assert len(named) == len(HOSTILE)
    assert all("counts for nothing" in line and len(line) < 300 and line.isprintable() for line in named)


def test_no_cohort_trains_on_what_only_looks_like_a_certificate(fed: Federation, tmp_path: Path) -> None:
    """All show: in slot 2 one with a signature too few, in slot 3 forged ones, in slot 4 slot 1's; then honest ones."""
    with elective(tmp_path / "o") as other:
        foreign = encode(start(other, 1).certificates[0])

    def forged(message: Message, honest: RecordDict) -> RecordDict:
        if message.metadata.message_type == "train":
            return honest
        answer = honest["fedelect"]
        assert isinstance(answer, ConfigRecord)
        slot, shown = int(str(answer["done"])), answer["certificates"]
        if slot == 1:
            first.append(shown)
        if not 2 <= slot <= 4:
            return honest
        assert isinstance(shown, list)
        made = {2: [short(shown[-1])], 3: [unsigned(shown[-1]), foreign], 4: first[0]}[slot]
        return ElectionAnswer(slot=slot, outcome="agreed", certificates=tuple(made)).content()

    first: list[Any] = []
    for client in range(CLIENTS):
        fed.answer(client, forged)
    strategy = start(fed, 5)
    assert statuses(fed) == ["done", "skipped", "skipped", "skipped", "done"]
    assert {slot for worker in fed.workers for slot, _ in worker.trained} == {1, 5}
    # The peers did elect in slots 2 to 4; the server learns of that with the next honest answer, and links it.
    assert [one.slot for one in strategy.certificates] == [1, 2, 3, 4, 5, 6]


def short(frame: object) -> bytes:
    certificate = certified(frame)
    return encode(Certificate(certificate.statement, certificate.signatures[:2]))


def unsigned(frame: object) -> bytes:
    certificate = certified(frame)
    return encode(
        Certificate(certificate.statement, tuple((client, bytes(64)) for client, _ in certificate.signatures))
    )


def certified(frame: object) -> Certificate:
    assert isinstance(frame, bytes)
    certificate = decode_record(frame)
    assert isinstance(certificate, Certificate)
    return certificate


@pytest.mark.integration  # waits for the end of a slot by the clock
def test_without_a_quorum_of_peers_the_slot_is_skipped_nobody_trains_and_the_model_stays(
    fed: Federation, caplog: pytest.LogCaptureFixture
) -> None:
    def stop_and_start(message: Message) -> bool:
        slot = slot_of(message)
        if slot == 2 and not away:
            away.extend([0, 1])
            for client in away:
                fed.peers.stop(client)
        if slot == 3 and away:
            for client in away:
                fed.peers.start(client)
            away.clear()
        return False

    away: list[int] = []
    fed.grid.refuse = stop_and_start
    start(fed, 3, start="warm")
    assert statuses(fed) == ["done", "skipped", "done"]
    assert {slot for worker in fed.workers for slot, _ in worker.trained} == {1, 3}
    assert "of 4 clients asked: 2 unreached, 2 skipped" in caplog.text or "2 skipped, 2 unreached" in caplog.text
    judged = [message.content for message in fed.grid.sent if slot_of(message) in (2, 3)]
    models = {content.array_records["arrays"]["a"].numpy().tobytes() for content in judged}
    assert len(judged) == 2 * CLIENTS and len(models) == 1  # in slot 3 the model of slot 1 is judged again


def slot_of(message: Message) -> int:
    """The slot that a message asks to elect for; 0 if it asks something else."""
    record = message.content.get("fedelect")
    return int(str(record["slot"])) if isinstance(record, ConfigRecord) else 0


def test_one_peer_that_is_down_is_gone_on_without(fed: Federation, caplog: pytest.LogCaptureFixture) -> None:
    fed.peers.stop(3)
    start(fed, 1)
    assert statuses(fed) == ["done"]
    assert "3 agreed, 1 unreached" in caplog.text or "1 unreached, 3 agreed" in caplog.text


def test_a_node_that_goes_down_is_gone_on_without_although_its_peer_is_up(fed: Federation) -> None:
    def goes(message: Message) -> bool:
        if slot_of(message) == 1 and len(fed.grid.nodes) == CLIENTS:
            fed.grid.nodes.remove(fed.node(0))  # its peer is up, but nobody tells it to begin
        return False

    fed.grid.refuse = goes
    strategy = start(fed, 1, wait_s=0.1)
    assert [one.slot for one in strategy.certificates] == [1, 2]
    assert [client for client, _ in strategy.certificates[-1].signatures] == [1, 2, 3]


def test_a_node_that_never_answers_is_not_waited_for_once_there_is_a_certificate(
    fed: Federation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("fedelect.flower.certificate_source.GRACE_S", 0.2)
    honest = fed.answers[1]
    fed.node(1).answer = lambda message: None if slot_of(message) and honest(message) else honest(message)
    fed.strategy(rounds_per_slot=1).start(fed.grid, initial_arrays(), num_rounds=1, timeout=100_000)
    assert statuses(fed) == ["done"]
    assert "peer01 takes no part in the election: no answer within" in caplog.text


def test_a_node_beside_anothers_peer_takes_no_part(fed: Federation, caplog: pytest.LogCaptureFixture) -> None:
    answers = runner(fed.apps[0], 0, {"peer": str(fed.peers.folders[1])})
    fed.node(0).answer = lambda message: answers(message)
    start(fed, 1)
    assert "1 stranger" in caplog.text and "the peer here is client 1" in caplog.text
    assert statuses(fed) == ["done"]


def test_fewer_nodes_than_must_sign_stop_the_run(fed: Federation) -> None:
    fed.grid.nodes[:] = fed.grid.nodes[:2]
    with pytest.raises(AvailabilityError, match="3 are needed"):
        start(fed, 1, wait_s=0.1)


def test_nodes_that_know_of_no_peer_fail_without_words_to_the_server(
    fed: Federation, caplog: pytest.LogCaptureFixture
) -> None:
    for client in range(CLIENTS):
        fed.node(client).answer = runner(fed.apps[client], client, {})
    with pytest.raises(RunError, match="4 failed"):
        start(fed, 1, abandoned_allowed=0)
    assert "--node-config" in caplog.text
    assert all(
        read_answer(message.records, 1) == ElectionAnswer(slot=1, outcome="failed") for message in fed.grid.received
    )


def test_the_mod_is_for_elections_only() -> None:
    with pytest.raises(ConfigurationError, match="a metric's name"):
        ElectionMod(opinion="")
    message = Message(RecordDict(), dst_node_id=1, message_type="evaluate")
    with pytest.raises(ConfigurationError, match="ELECTION_ACTION"):
        ElectionMod()(message, None, lambda *_: message)  # type: ignore[arg-type]
    strange = Message(RecordDict({"fedelect": ConfigRecord({"slot": 1})}), dst_node_id=1, message_type=ELECTION)
    reply = ElectionMod()(strange, None, lambda *_: strange)  # type: ignore[arg-type]
    assert read_answer(reply.content, 0).outcome == "failed"


def test_an_answer_shows_no_more_certificates_than_it_may() -> None:
    many = ElectionAnswer(slot=3, outcome="agreed", certificates=(b"x",) * (MOST_CERTIFICATES + 5))
    assert len(read_answer(many.content(), 3).certificates) == MOST_CERTIFICATES
    large = ElectionAnswer(slot=3, outcome="agreed", certificates=(bytes(3 * 1024 * 1024),) * 5)
    assert len(read_answer(large.content(), 3).certificates) == 2


def test_a_roster_that_is_none_is_refused(tmp_path: Path, fed: Federation) -> None:
    with pytest.raises(ConfigurationError, match="peers init"):
        fed.strategy(roster=tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match="names: got 1 names for 4 clients"):
        fed.strategy(names=["one"])
    make_federation(tmp_path / "sound", fed.where)
    assert fed.strategy(roster=tmp_path / "sound" / "server").certificates == ()
