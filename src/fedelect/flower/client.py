"""Optional parts of a client app, one line each: its own name and properties, and noise on its opinion."""

import math

from flwr.app import ConfigRecord, Context, Error, Message, MessageType, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import ClientAppCallable

from fedelect.errors import ConfigurationError
from fedelect.flower.ledger import PrivacyLedger
from fedelect.flower.nodes import INTRODUCTION, INTRODUCTION_KEY, INTRODUCTION_RECORD
from fedelect.flower.privacy import EXAMPLES, OpinionPrivacy
from fedelect.flower.properties import PROPERTIES, PROPERTIES_RECORD, PropertySource, report_properties

NAME_KEYS = ("client", "partition-id")
"""Keys of the node config from which a node takes its name, the first one it has."""

_REFUSED = 2  # Flower's code for "the client app failed"


def introduce(app: ClientApp, *, properties: PropertySource | None = None) -> None:
    """Let the nodes that run `app` say their name, `client` of their node config, else `partition-id`; and properties.

    The name is needed only where nodes are not registered with one. Name and properties are worth as much as the
    node's word: where clients may lie, use node authentication and registered names.

    Args:
        app: The client app.
        properties: What the server's `available=` sees of a node: keys of its node config (`["region", "gpu"]`), or a
            function of the context into a dict of numbers, texts and the like. Nothing else of the config is sent.
    """
    if isinstance(properties, str):
        raise ConfigurationError(f"properties: got the text {properties!r}; allowed: a list of keys, [{properties!r}]")

    @app.query(INTRODUCTION.partition(".")[2])
    def answer(message: Message, context: Context) -> Message:
        name = next((context.node_config[key] for key in NAME_KEYS if key in context.node_config), None)
        if name is None:
            raise ConfigurationError(
                "this node has no name; start it with --node-config 'client=\"NAME\"' (any name that no other has)"
            )
        record = ConfigRecord({INTRODUCTION_KEY: str(name)})
        return Message(RecordDict({INTRODUCTION_RECORD: record}), reply_to=message)

    if properties is None:
        return

    @app.query(PROPERTIES.partition(".")[2])
    def report(message: Message, context: Context) -> Message:
        record = report_properties(properties, context)
        return Message(RecordDict({PROPERTIES_RECORD: record}), reply_to=message)


class PrivateOpinion:
    """A mod for `@app.evaluate(mods=[...])`: noise on the opinion, and nothing else of the reply leaves the client.

    The app's reply must hold the opinion, a mean of values in [0, 1] over its evaluation examples, and their number.
    All other records and metrics of the reply are dropped, for they would tell what the noise hides.

    The mod adds up what its opinions cost (rho) and refuses what would exceed (epsilon, delta), also when `releases`
    changes; another epsilon or delta is refused. It counts in the node's state, which lives as long as the run and the
    SuperNode do; in a file, if the node config names one as `privacy-ledger`, which also outlives restarts and new
    runs, and which processes may share. Use the file wherever the promise is meant.

    Args:
        privacy: The promise; the server is given the same.
        opinion: Name of the metric that is the opinion.
        examples: Name of the app's metric that tells over how many examples it was taken; the server is sent it as
            "num-examples", whatever the app calls it.
    """

    def __init__(self, privacy: OpinionPrivacy, *, opinion: str = "accuracy", examples: str = EXAMPLES) -> None:
        self._privacy = privacy
        self._opinion = opinion
        self._examples = examples

    def __call__(self, message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        """Evaluate, then add the noise."""
        reply = call_next(message, context)
        if not message.metadata.message_type.startswith(MessageType.EVALUATE) or reply.has_error():
            return reply
        opinion, examples = (self._metric(reply.content, name) for name in (self._opinion, self._examples))
        if math.isnan(opinion):
            raise ConfigurationError(f"the metric {self._opinion!r} is nan; an opinion is a number in [0, 1]")
        self._privacy.noise(examples)  # raises if no opinion over this number can be released
        # Before the release: what cannot be written down is not given.
        refusal = PrivacyLedger(context).spend(self._privacy, int(examples))
        if refusal is not None:
            return Message(Error(_REFUSED, refusal), reply_to=message)
        noisy = self._privacy.release(min(max(opinion, 0.0), 1.0), int(examples))
        kept = MetricRecord({self._opinion: noisy, EXAMPLES: int(examples)})
        return Message(RecordDict({"metrics": kept}), reply_to=message)

    def _metric(self, content: RecordDict, name: str) -> float:
        for record in content.metric_records.values():
            if name in record:
                return float(record[name])  # type: ignore[arg-type]
        raise ConfigurationError(f"the evaluation reply has no metric {name!r}; name the one that it has")
