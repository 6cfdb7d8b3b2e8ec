"""Noise on opinions: calibrated, accounted for, unclipped, and widening exploration."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest
from flwr.app import ArrayRecord, ConfigRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from tests.flower.fake_grid import Worker, federation, initial_arrays
from tests.flower.test_failures import node
from tests.flower.test_goal_directed import L, N, directed, records

from fedelect.equations.indices import noise_adjusted, ucb_index
from fedelect.errors import ConfigurationError
from fedelect.flower import OpinionPrivacy, PrivateOpinion, introduce
from fedelect.flower.opinions import read_survey
from fedelect.records import read_run
from fedelect.selectors import QuickInitUcb

PRIVACY = OpinionPrivacy(epsilon=50.0, delta=1e-6, releases=40)


def test_the_noise_has_the_stated_spread_and_no_bias() -> None:
    released = np.array([PRIVACY.release(0.75, 20) for _ in range(4000)]) - 0.75
    scale = PRIVACY.noise(20)
    # Six standard errors of the mean and of the standard deviation: fails once in a hundred million runs by chance.
    assert abs(released.mean()) < 6 * scale / math.sqrt(4000)
    assert abs(released.std() / scale - 1) < 6 / math.sqrt(2 * 4000)
    within = np.mean(np.abs(released) < scale)
    assert abs(within - 0.6827) < 6 * math.sqrt(0.6827 * 0.3173 / 4000)


@pytest.mark.parametrize(("epsilon", "releases", "examples"), [(0.5, 1, 10), (1.0, 200, 30), (8.0, 40, 500)])
def test_the_budget_is_kept_and_used_up_over_the_whole_horizon(epsilon: float, releases: int, examples: int) -> None:
    privacy = OpinionPrivacy(epsilon=epsilon, delta=1e-6, releases=releases, largest_noise=1e6)
    spent = privacy.example_level(examples)
    assert 0.999 * epsilon < spent <= epsilon * (1 + 1e-9)
    assert privacy.client_level(examples) > spent
    assert privacy.noise(examples) == pytest.approx(privacy.noise(1) / examples)


def test_the_accounting_is_that_of_opendps_own_composition() -> None:
    privacy = OpinionPrivacy(epsilon=2.0, delta=1e-5, releases=25)
    assert by_opendp(privacy.noise(40), 25, 1 / 40) == pytest.approx(2.0, rel=1e-3)
    assert privacy.client_level(40) == pytest.approx(by_opendp(privacy.noise(40), 25, 1.0), rel=1e-6)
    # With many examples a client as a whole has next to no protection, and OpenDP's tighter conversion overflows.
    cost = 25 / privacy.noise(4000) ** 2 / 2
    assert privacy.client_level(4000) == pytest.approx(cost + 2 * math.sqrt(cost * math.log(1e5)), rel=1e-6)


def by_opendp(scale: float, releases: int, moved: float) -> float:
    library: Any = dp
    library.enable_features("contrib")
    domain, metric = library.atom_domain(T=float, nan=False), library.absolute_distance(T=float)
    once = library.m.make_gaussian(domain, metric, scale=scale)
    profile = library.c.make_zCDP_to_approxDP(library.c.make_composition([once] * releases)).map(moved)
    return float(profile.epsilon(1e-5))


def test_a_stricter_promise_or_more_releases_need_more_noise() -> None:
    base = PRIVACY.noise(20)
    assert OpinionPrivacy(epsilon=25.0, releases=40).noise(20) > base
    assert OpinionPrivacy(epsilon=50.0, releases=80).noise(20) > base
    assert OpinionPrivacy(epsilon=50.0, delta=1e-9, releases=40).noise(20) > base
    assert PRIVACY.noise(40) == pytest.approx(base / 2)


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 0.0, "releases": 1},
        {"epsilon": math.inf, "releases": 1},
        {"epsilon": 1.0, "releases": 0},
        {"epsilon": 1.0, "releases": 1, "delta": 0.0},
        {"epsilon": 1.0, "releases": 1, "delta": 1.0},
        {"epsilon": 1.0, "releases": 1, "largest_noise": 0.0},
    ],
)
def test_promises_that_are_none_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        OpinionPrivacy(**options)


def test_what_cannot_be_protected_is_not_released() -> None:
    for opinion in (1.1, -0.1, math.nan):
        with pytest.raises(ConfigurationError):
            PRIVACY.release(opinion, 20)
    for examples in (0, -3, 2.5, math.nan, math.inf):
        with pytest.raises(ConfigurationError):
            PRIVACY.noise(examples)
    with pytest.raises(ConfigurationError, match="more than 1 allowed"):
        OpinionPrivacy(epsilon=0.01, releases=100).noise(1)


def asked(kind: str = "evaluate") -> Message:
    federation(1)
    content = RecordDict({"arrays": initial_arrays(), "config": ConfigRecord()})
    return Message(content, dst_node_id=3, message_type=kind)


def context(**node_config: str | int) -> Context:
    return Context(run_id=1, node_id=3, node_config=dict(node_config), state=RecordDict(), run_config={})


def replies(message: Message, context: Context) -> Message:
    content = RecordDict({"arrays": ArrayRecord([np.ones(2)]), "notes": ConfigRecord({"secret": "the labels"})})
    content["metrics"] = MetricRecord({"accuracy": 0.75, "loss": 0.123, "num-examples": 20})
    return Message(content, reply_to=message)


def test_only_the_noisy_opinion_and_the_number_of_examples_leave_the_client() -> None:
    reply = PrivateOpinion(PRIVACY)(asked(), context(), replies)
    assert list(reply.content) == ["metrics"]
    metrics = reply.content["metrics"]
    assert isinstance(metrics, MetricRecord) and set(metrics) == {"accuracy", "num-examples"}
    assert metrics["accuracy"] != 0.75 and metrics["num-examples"] == 20


def test_training_and_errors_pass_through_the_mod() -> None:
    mod = PrivateOpinion(PRIVACY)
    assert "arrays" in mod(asked("train"), context(), replies).content
    failed = mod(asked(), context(), lambda message, _: Message(Error(2, "no"), reply_to=message))
    assert failed.has_error()


def test_a_client_refuses_to_release_more_than_it_promised() -> None:
    mod, here = PrivateOpinion(OpinionPrivacy(epsilon=50.0, releases=2)), context()
    assert not mod(asked(), here, replies).has_error() and not mod(asked(), here, replies).has_error()
    refused = mod(asked(), here, replies)
    assert refused.has_error() and "privacy budget is spent: 2 opinions cost rho" in str(refused.error.reason)


def test_an_app_without_the_metric_is_told_which_one_is_missing() -> None:
    with pytest.raises(ConfigurationError, match="no metric 'recall'"):
        PrivateOpinion(PRIVACY, opinion="recall")(asked(), context(), replies)


def noisy(run: Path, **options: Any) -> None:
    grid, workers = federation(N)
    mods = [PrivateOpinion(PRIVACY) for _ in workers]
    contexts = [context() for _ in workers]
    for client, worker in enumerate(workers):
        node(grid, client).answer = _behind(mods[client], contexts[client], worker)
    directed(run, privacy=PRIVACY, **options).start(grid, initial_arrays(), num_rounds=12 * L)


def _behind(mod: PrivateOpinion, here: Context, worker: Worker) -> Any:
    def app(message: Message, _: Context) -> Message:
        answer = worker(message)
        assert isinstance(answer, RecordDict)
        return Message(answer, reply_to=message)

    return lambda message: mod(message, here, app).content


def test_the_noisy_average_is_told_unclipped_with_its_noise(tmp_path: Path) -> None:
    noisy(tmp_path / "run")
    rows = records(tmp_path / "run")
    expected = PRIVACY.noise(20) / math.sqrt(N)
    assert all(row.opinions is None and row.reward_noise == pytest.approx(expected) for row in rows)
    assert read_run(tmp_path / "run").header.scenario["privacy"] == {"epsilon": 50.0, "delta": 1e-6, "releases": 40}
    # The index that won is that of the widened exploration: at one pull, mean + mu' sqrt(ln t).
    row = rows[4]
    assert row.slot == 5 and len(row.indices) == 1
    rewards = [float(one.reward or 0) for one in rows[:4]]
    best = max(rewards)  # all members of the best cold-start group together have its reward as their mean
    wide = noise_adjusted(0.1, expected**2)
    assert row.indices[0] == pytest.approx(ucb_index(best, 1, slot=5, exploration=wide), abs=1e-9)
    assert wide > 0.1


@pytest.mark.parametrize("average", ["median", "trimmed"])
def test_a_robust_average_of_noisy_opinions_is_refused_for_its_noise_is_not_known(tmp_path: Path, average: str) -> None:
    with pytest.raises(ConfigurationError, match='allowed: "mean", the only one whose noise is known'):
        noisy(tmp_path / "run", average=average)


def test_more_slots_than_releases_are_refused_at_the_start(tmp_path: Path) -> None:
    grid, _ = federation(N)
    with pytest.raises(ConfigurationError, match="41 slots, but the clients give only 40 opinions"):
        directed(tmp_path / "run", privacy=PRIVACY).start(grid, initial_arrays(), num_rounds=41 * L)
    assert not grid.sent and not (tmp_path / "run").exists()


def test_an_app_may_call_its_number_of_examples_as_it_likes() -> None:
    def app(message: Message, _: Context) -> Message:
        return Message(RecordDict({"own": MetricRecord({"accuracy": 0.75, "n": 20})}), reply_to=message)

    reply = PrivateOpinion(PRIVACY, examples="n")(asked(), context(), app)
    survey = read_survey({0: reply}, clients=1, opinion="accuracy", privacy=PRIVACY)
    assert not survey.rejected and survey.noise[0] == PRIVACY.noise(20)


def test_a_client_cannot_claim_fewer_examples_later_to_be_allowed_more_noise() -> None:
    def said(opinion: float, examples: int) -> Message:
        metrics = MetricRecord({"accuracy": opinion, "num-examples": examples})
        return Message(RecordDict({"metrics": metrics}), reply_to=asked())

    known: dict[int, int] = {}
    for reply, counts in (
        (said(99.0, 15), False),
        (said(0.5, 20), True),
        (said(0.5, 15), False),
        (said(1.1, 20), True),
    ):
        survey = read_survey({0: reply}, clients=1, opinion="accuracy", privacy=PRIVACY, examples=known)
        assert survey.given == counts
    assert known == {0: 20}


@pytest.mark.parametrize(("opinion", "examples"), [(math.nan, 20.0), (0.5, 0.0), (0.5, math.nan), (0.5, 2.5)])
def test_what_is_not_released_is_not_counted(opinion: float, examples: float) -> None:
    def app(message: Message, _: Context) -> Message:
        metrics = MetricRecord({"accuracy": opinion, "num-examples": examples})
        return Message(RecordDict({"metrics": metrics}), reply_to=message)

    here = context()
    with pytest.raises(ConfigurationError):
        PrivateOpinion(PRIVACY)(asked(), here, app)
    assert "fedelect" not in here.state


def test_an_opinion_far_outside_its_noise_or_with_made_up_examples_does_not_count(tmp_path: Path) -> None:
    grid, workers = federation(N)
    reach = 6 * PRIVACY.noise(20)
    workers[0].opinion = lambda honest: 1 + reach + 1e-3
    workers[1].opinion = lambda honest: 1 + reach - 1e-3
    workers[2].opinion = lambda honest: math.nan

    def claims(examples: Any) -> Any:
        def answer(message: Message) -> RecordDict | Error | None:
            if message.metadata.message_type == "train":
                return workers[3](message)
            return RecordDict({"metrics": MetricRecord({"accuracy": 0.5, "num-examples": examples})})

        return answer

    for client, examples in ((3, 0), (4, -20), (5, math.nan), (6, [20])):
        node(grid, client).answer = claims(examples)
    strategy = directed(tmp_path / "run", privacy=PRIVACY, quorum=0.25)
    strategy.start(grid, initial_arrays(), num_rounds=L)
    (row,) = records(tmp_path / "run")
    assert row.reward_noise == pytest.approx(PRIVACY.noise(20) / math.sqrt(N - 6))  # 0, 2, 3, 4, 5 and 6 do not count


def test_a_selector_that_needs_each_opinion_is_refused_with_privacy(tmp_path: Path) -> None:
    selector = QuickInitUcb(clients=N, budget=3, seed=1)
    selector.needs = frozenset({"opinions"})  # type: ignore[misc]
    with pytest.raises(ConfigurationError, match="only a noisy average"):
        directed(tmp_path / "run", selector=selector, privacy=PRIVACY)


def test_a_node_says_its_name_from_its_config() -> None:
    app = ClientApp()
    introduce(app)
    for config, name in (({"client": "berlin", "partition-id": 3}, "berlin"), ({"partition-id": 3}, "3")):
        reply = app(asked("query.fedelect"), context(**config))
        identity = reply.content["identity"]
        assert isinstance(identity, ConfigRecord) and identity["client"] == name
    with pytest.raises(ConfigurationError, match="--node-config"):
        app(asked("query.fedelect"), context())
