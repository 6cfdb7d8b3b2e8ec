"""The ClientApp: nothing in it knows of fedelect."""

import time

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from digits_app import task

app = ClientApp()


def share(context: Context):
    """The data of the node that this runs on."""
    config = context.node_config
    return task.load_share(int(config["partition-id"]), int(config["num-partitions"]))


@app.train()
def train(message: Message, context: Context) -> Message:
    """Train the model on the node's own data."""
    time.sleep(float(context.run_config["pause"]))
    inputs, labels, _, _ = share(context)
    epochs, step = int(context.run_config["local-epochs"]), float(context.run_config["step"])
    model = task.train(message.content["arrays"].to_numpy_ndarrays(), inputs, labels, epochs=epochs, step=step)
    metrics = MetricRecord({"num-examples": len(labels)})
    return Message(RecordDict({"arrays": ArrayRecord(model), "metrics": metrics}), reply_to=message)


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    """Say how good the model is on the node's own held-out data."""
    _, _, inputs, labels = share(context)
    score = task.accuracy(message.content["arrays"].to_numpy_ndarrays(), inputs, labels)
    metrics = MetricRecord({"accuracy": score, "num-examples": len(labels)})
    return Message(RecordDict({"metrics": metrics}), reply_to=message)
