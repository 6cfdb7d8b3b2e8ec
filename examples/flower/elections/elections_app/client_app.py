"""The ClientApp: an ordinary one, but for the line that keeps its evaluation on the client."""

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from elections_app import work
from fedelect.flower import ELECTION_ACTION, ElectionMod, read_slot

app = ClientApp()


def share(context: Context, part: str):
    """The node's own (inputs, labels) to train or to judge on; its node config names the file."""
    with np.load(str(context.node_config["data"]), allow_pickle=False) as data:
        return data[f"{part}_inputs"], data[f"{part}_labels"]


@app.train()
def train(message: Message, context: Context) -> Message:
    """Train the model on the node's own data."""
    inputs, labels = share(context, "train")
    settings = context.run_config
    slot, round_ = read_slot(message)
    model = work.train(
        message.content["arrays"]["model"].numpy(),
        inputs,
        labels,
        loss=settings["loss"],
        step=settings["step"],
        epochs=settings["epochs"],
        batch=settings["batch"],
        seed=settings["seed"],
        slot=slot,
        round_=round_,
        client=int(context.node_config["partition-id"]),
    )
    metrics = MetricRecord({"num-examples": len(labels)})
    return Message(RecordDict({"arrays": ArrayRecord({"model": Array(model)}), "metrics": metrics}), reply_to=message)


@app.evaluate(ELECTION_ACTION, mods=[ElectionMod(opinion="accuracy")])
def evaluate(message: Message, context: Context) -> Message:
    """Judge the model on the node's own held-out data. The mod hands this to the peer; the server never gets it."""
    inputs, labels = share(context, "test")
    opinion = work.judge(message.content["arrays"]["model"].numpy(), inputs, labels)
    metrics = MetricRecord({"accuracy": opinion, "num-examples": len(labels)})
    return Message(RecordDict({"metrics": metrics}), reply_to=message)
