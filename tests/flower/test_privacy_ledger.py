"""What opinions cost is counted once, over processes, runs and settings, and never forgotten."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from flwr.app import Context, RecordDict
from tests.flower.test_opinion_privacy import asked, by_opendp, context, replies

from fedelect.errors import RunError
from fedelect.flower import OpinionPrivacy, PrivateOpinion
from fedelect.flower.ledger import PrivacyLedger

ROOT = Path(__file__).parents[2]

SPENDER = """
import sys
from tests.flower.test_opinion_privacy import context
from fedelect.flower import OpinionPrivacy
from fedelect.flower.ledger import PrivacyLedger

privacy = OpinionPrivacy(epsilon=5.0, releases=int(sys.argv[2]))
privacy.cost(20)
here = context(**{"privacy-ledger": sys.argv[1]})
print("ready", flush=True)
sys.stdin.readline()
print(sum(PrivacyLedger(here).spend(privacy, 20) is None for _ in range(40)), flush=True)
"""


def at(file: Path) -> Context:
    return context(**{"privacy-ledger": str(file)})


def spend(file: Path, privacy: OpinionPrivacy, times: int, examples: int = 20) -> list[str | None]:
    return [PrivacyLedger(at(file)).spend(privacy, examples) for _ in range(times)]


def test_a_ledger_outlives_the_node_and_the_run(tmp_path: Path) -> None:
    file = tmp_path / "ledger.json"
    privacy = OpinionPrivacy(epsilon=50.0, releases=2)
    mod = PrivateOpinion(privacy)
    for _ in range(2):
        assert not mod(asked(), at(file), replies).has_error()
    found = json.loads(file.read_text())
    assert (found["epsilon"], found["delta"], found["released"]) == (50.0, 1e-6, 2)
    assert found["rho"] == pytest.approx(privacy.budget)
    refused = mod(asked(), at(file), replies)
    assert refused.has_error() and "privacy budget is spent" in str(refused.error.reason)
    assert json.loads(file.read_text()) == found


def test_two_names_of_one_ledger_are_one_ledger(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "ledger.json")
    privacy = OpinionPrivacy(epsilon=50.0, releases=2)
    assert spend(tmp_path / "ledger.json", privacy, 1) == spend(tmp_path / "link.json", privacy, 1) == [None]
    assert all("budget is spent" in str(spend(tmp_path / name, privacy, 1)) for name in ("ledger.json", "link.json"))
    assert (tmp_path / "link.json").is_symlink() and not (tmp_path / "link.json.lock").exists()


@pytest.mark.integration
def test_processes_that_share_a_ledger_release_no_more_than_it_says(tmp_path: Path) -> None:
    file = tmp_path / "ledger.json"
    command = [sys.executable, "-c", SPENDER, str(file), "60"]
    processes = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    released = [int(process.communicate()[0]) for process in processes]
    assert sum(released) == 60 == json.loads(file.read_text())["released"]
    privacy = OpinionPrivacy(epsilon=5.0, releases=60)
    assert json.loads(file.read_text())["rho"] == pytest.approx(privacy.budget)


def test_the_cost_of_a_release_is_that_of_opendp_whatever_the_number_of_examples() -> None:
    privacy = OpinionPrivacy(epsilon=2.0, delta=1e-5, releases=25)
    for examples in (1, 7, 40, 5000):
        assert privacy.cost(examples) == pytest.approx(1 / (2 * (privacy.noise(40) * 40) ** 2), rel=1e-9)
    assert privacy.budget == pytest.approx(25 * privacy.cost(40))


def test_other_numbers_of_releases_add_up_to_the_one_promise(tmp_path: Path) -> None:
    file = tmp_path / "ledger.json"
    few, many = (OpinionPrivacy(epsilon=1.0, delta=1e-5, releases=releases) for releases in (10, 40))
    assert spend(file, few, 5) == [None] * 5
    answers = spend(file, many, 30)
    given = answers.count(None)
    assert given == 20  # half of the budget is left, and half of 40 releases fit into it
    rho = json.loads(file.read_text())["rho"]
    assert rho == pytest.approx(5 * few.cost(20) + 20 * many.cost(20))
    # Both kinds together, by OpenDP's own conversion: one Gaussian release of the same total cost.
    assert by_opendp(1 / (2 * rho) ** 0.5, 1, 1.0) <= 1.0 * (1 + 1e-6)
    assert all("privacy budget is spent" in str(answer) for answer in answers[20:])
    assert spend(file, few, 1) != [None]


@pytest.mark.parametrize("other", [{"epsilon": 50.0}, {"epsilon": 0.5}, {"epsilon": 1.0, "delta": 1e-3}])
def test_another_promise_on_the_same_ledger_is_refused(tmp_path: Path, other: dict[str, float]) -> None:
    file = tmp_path / "ledger.json"
    assert spend(file, OpinionPrivacy(epsilon=1.0, releases=5), 5) == [None] * 5
    before = file.read_bytes()
    (answer,) = spend(file, OpinionPrivacy(releases=10, **other), 1)
    assert answer is not None and f"{file} counts under epsilon 1, delta 1e-06, and has spent rho" in answer
    assert file.read_bytes() == before


def test_a_nodes_state_counts_in_the_same_way() -> None:
    here = Context(run_id=1, node_id=3, node_config={}, state=RecordDict(), run_config={})
    privacy = OpinionPrivacy(epsilon=1.0, releases=2)
    ledger = PrivacyLedger(here)
    assert [ledger.spend(privacy, 20) is None for _ in range(3)] == [True, True, False]
    assert "this node counts under epsilon 1" in str(ledger.spend(OpinionPrivacy(epsilon=9.0, releases=2), 20))


def test_every_changed_byte_of_a_ledger_is_found_and_nothing_is_released(tmp_path: Path) -> None:
    file = tmp_path / "ledger.json"
    privacy = OpinionPrivacy(epsilon=1.0, releases=5)
    spend(file, privacy, 3)
    text = file.read_bytes()
    assert text.endswith(b"}\n")
    for place in range(len(text) - 1):
        damaged = text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :]
        file.write_bytes(damaged)
        with pytest.raises(RunError, match=r"ledger\.json is damaged, so nobody knows what was spent"):
            PrivateOpinion(privacy)(asked(), at(file), replies)
        assert file.read_bytes() == damaged
    for lost in (b"", b'{"released": 3}', text[:40]):
        file.write_bytes(lost)
        with pytest.raises(RunError, match=r"ledger\.json is damaged"):
            spend(file, privacy, 1)


def test_a_ledger_that_cannot_be_written_lets_no_opinion_out(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot open the lock"):
        PrivateOpinion(OpinionPrivacy(epsilon=1.0, releases=5))(asked(), at(tmp_path / "nowhere" / "x.json"), replies)
