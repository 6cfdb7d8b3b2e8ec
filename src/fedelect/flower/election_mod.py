"""Mod of the ClientApp that gives the evaluation to the client's own peer and sends the server certificates only."""

from pathlib import Path
from typing import final

from flwr.app import Context, Message
from flwr.clientapp.typing import ClientAppCallable

from fedelect.errors import ConfigurationError, RunError
from fedelect.flower.election_messages import ELECTION, RECORD, ElectionAnswer, ElectionRequest, read_request
from fedelect.flower.exchange import LOG
from fedelect.flower.opinions import Opinion, check_opinion, read_survey
from fedelect.runtime.control import ControlClient

PEER_KEY = "peer"
"""Key of the node config that names the peer's folder: `--node-config 'peer="/path/fed/peer07"'`."""

_MARGIN_S = 10.0


@final
class ElectionMod:
    """A mod for `@app.evaluate(ELECTION_ACTION, mods=[ElectionMod()])`.

    The app's own evaluate function judges the model. Its reply stays here: the opinion in it goes to the peer of this
    SuperNode (`fedelect peer FOLDER --control`), and the mod waits for the election to end. Errors are logged on this
    node; the server gets one of a few fixed words, since an error's text may hold anything.

    Args:
        opinion: Name of the metric in the reply that is the opinion, in [0, 1], or a function of the reply.
        folder: The peer's folder; None for `peer` of the node config.
    """

    def __init__(self, *, opinion: Opinion = "accuracy", folder: str | Path | None = None) -> None:
        check_opinion(opinion)
        self._opinion = opinion
        self._folder = folder

    def __call__(self, message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        """Judge the model, take part in the election, and answer."""
        if message.metadata.message_type != ELECTION:
            raise ConfigurationError(
                f"ElectionMod answers {ELECTION!r} messages only, got {message.metadata.message_type!r}: "
                f"register it by @app.evaluate(ELECTION_ACTION, mods=[ElectionMod()])"
            )
        slot = 0
        try:
            request = read_request(message.content)
            slot = request.slot
            answer = self._elect(request, self._judge(request, message, context, call_next), context)
        except Exception:  # its text must not reach the server
            LOG.exception("slot %d: this node takes no part in the election", slot)
            answer = ElectionAnswer(slot=slot, outcome="failed")
        return Message(answer.content(), reply_to=message)

    def _judge(
        self, request: ElectionRequest, message: Message, context: Context, call_next: ClientAppCallable
    ) -> float | None:
        """Return the app's opinion of the model; None if there is no model yet, or no opinion."""
        if request.judged == 0:
            return None
        try:
            del message.content[RECORD]  # the app's function sees what any evaluation holds
            reply = call_next(message, context)
        except Exception:
            LOG.exception(
                "slot %d: the app could not judge the model; the peer elects without its opinion", request.slot
            )
            return None
        if reply.has_error():
            LOG.warning("slot %d: no opinion: error %d", request.slot, reply.error.code)
            return None
        survey = read_survey({0: reply}, clients=1, opinion=self._opinion)
        for reason in survey.rejected.values():
            LOG.warning("slot %d: no opinion: %s", request.slot, reason)
        return float(survey.opinions[0]) if survey.given else None

    def _elect(self, request: ElectionRequest, opinion: float | None, context: Context) -> ElectionAnswer:
        try:
            with ControlClient(self._where(context)) as peer:
                greeting = peer.greeting
                if (greeting.client, greeting.configuration) != (request.client, request.configuration.hex()):
                    LOG.error(
                        "slot %d: the peer here is client %d of federation %s, the server takes this node for client "
                        "%d of %s; register the SuperNode under its peer's name in the roster, and give all one roster",
                        *(request.slot, greeting.client, greeting.configuration),
                        *(request.client, request.configuration.hex()),
                    )
                    return ElectionAnswer(slot=request.slot, outcome="stranger")
                heard = peer.elect(
                    request.slot,
                    judged=request.judged,
                    opinion=opinion,
                    certificates=tuple(certificate.hex() for certificate in request.certificates),
                    after=request.after,
                    within_s=greeting.slot_s + _MARGIN_S,
                )
        except RunError as error:
            LOG.error("slot %d: %s", request.slot, error)
            return ElectionAnswer(slot=request.slot, outcome="unreached")
        if not heard.decided:
            LOG.warning("slot %d: skipped: %s", request.slot, heard.reason)
        shown = tuple(bytes.fromhex(certificate) for certificate in heard.certificates)
        return ElectionAnswer(slot=request.slot, outcome="agreed" if heard.decided else "skipped", certificates=shown)

    def _where(self, context: Context) -> Path:
        folder = self._folder or context.node_config.get(PEER_KEY)
        if folder is None:
            raise ConfigurationError(
                f"this node does not know its peer; start it with --node-config '{PEER_KEY}=\"FOLDER\"'"
            )
        return Path(str(folder))
