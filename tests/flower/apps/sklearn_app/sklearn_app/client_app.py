"""The ClientApp: nothing in it knows of fedelect."""

import json
import warnings

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from sklearn.metrics import log_loss

from sklearn_app.task import LABELS, create_model, get_model_params, load_data, set_model_params

app = ClientApp()


def load(msg: Message, context: Context):
    """Return the model that was received, and the node's own data."""
    model = create_model(context.run_config["local-epochs"])
    set_model_params(model, msg.content["arrays"].to_numpy_ndarrays())
    return model, *load_data(context.node_config["partition-id"], context.node_config["num-partitions"])


@app.train()
def train(msg: Message, context: Context):
    """Train the model on local data."""
    note_training(context, msg.content["config"]["server-round"])
    model, inputs, labels, _, _ = load(msg, context)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few epochs do not converge, and need not
        model.fit(inputs, labels)
    metrics = {
        "num-examples": len(labels),
        "train_logloss": log_loss(labels, model.predict_proba(inputs), labels=LABELS),
        "train_accuracy": model.score(inputs, labels),
    }
    content = RecordDict({"arrays": ArrayRecord(get_model_params(model)), "metrics": MetricRecord(metrics)})
    return Message(content, reply_to=msg)


@app.evaluate()
def evaluate(msg: Message, context: Context):
    """Evaluate the model on local data."""
    model, _, _, inputs, labels = load(msg, context)
    metrics = {
        "num-examples": len(labels),
        "test_logloss": log_loss(labels, model.predict_proba(inputs), labels=LABELS),
        "accuracy": model.score(inputs, labels),
    }
    return Message(RecordDict({"metrics": MetricRecord(metrics)}), reply_to=msg)


def note_training(context: Context, server_round: int) -> None:
    """Add a line to the training log, if there is one."""
    if path := context.run_config["training-log"]:
        with open(path, "a") as file:
            file.write(json.dumps([server_round, context.node_config["partition-id"]]) + "\n")
