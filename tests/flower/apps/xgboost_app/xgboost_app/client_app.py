"""The ClientApp: nothing in it knows of fedelect."""

import json

import xgboost as xgb
from flwr.app import Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from xgboost_app.task import PARAMETERS, load_data, measure_auc, pack, unpack

app = ClientApp()


@app.train()
def train(msg: Message, context: Context):
    """Grow trees on local data: on top of the model that came, or, in round 1, the first ones."""
    config, epochs = msg.content["config"], context.run_config["local-epochs"]
    note_training(context, config["server-round"])
    data, _ = load_data(context.node_config["partition-id"], context.node_config["num-partitions"])
    if config["server-round"] == 1:
        booster = xgb.train(PARAMETERS, data, num_boost_round=epochs)
    else:
        booster = unpack(msg.content["arrays"])
        for _ in range(epochs):
            booster.update(data, booster.num_boosted_rounds())
        if context.run_config["train-method"] == "bagging":  # the new trees alone
            booster = booster[booster.num_boosted_rounds() - epochs : booster.num_boosted_rounds()]
    metrics = MetricRecord({"num-examples": data.num_row()})
    return Message(RecordDict({"arrays": pack(booster), "metrics": metrics}), reply_to=msg)


@app.evaluate()
def evaluate(msg: Message, context: Context):
    """Evaluate the model on local data."""
    _, data = load_data(context.node_config["partition-id"], context.node_config["num-partitions"])
    metrics = {"auc": measure_auc(unpack(msg.content["arrays"]), data), "num-examples": data.num_row()}
    return Message(RecordDict({"metrics": MetricRecord(metrics)}), reply_to=msg)


def note_training(context: Context, server_round: int) -> None:
    """Add a line to the training log, if there is one."""
    if path := context.run_config["training-log"]:
        with open(path, "a") as file:
            file.write(json.dumps([server_round, context.node_config["partition-id"]]) + "\n")
