"""The ClientApp: nothing in it knows of fedelect."""

import json

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from pytorch_app.task import Net, load_data
from pytorch_app.task import test as test_fn
from pytorch_app.task import train as train_fn

app = ClientApp()


def load(msg: Message, context: Context):
    """Return the model that was received, and the node's own data."""
    model = Net()
    model.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    partition_id, num_partitions = context.node_config["partition-id"], context.node_config["num-partitions"]
    return model, *load_data(partition_id, num_partitions, context.run_config["batch-size"])


@app.train()
def train(msg: Message, context: Context):
    """Train the model on local data."""
    config = msg.content["config"]
    note_training(context, config["server-round"])
    torch.manual_seed(1000 * config["server-round"] + context.node_config["partition-id"])
    model, trainloader, _ = load(msg, context)
    train_loss = train_fn(model, trainloader, context.run_config["local-epochs"], config["lr"])
    metrics = MetricRecord({"train_loss": train_loss, "num-examples": len(trainloader.dataset)})
    return Message(RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics}), reply_to=msg)


@app.evaluate()
def evaluate(msg: Message, context: Context):
    """Evaluate the model on local data."""
    model, _, valloader = load(msg, context)
    eval_loss, eval_acc = test_fn(model, valloader)
    metrics = {
        "eval_loss": eval_loss,
        "eval_acc": eval_acc,
        "num-examples": len(valloader.dataset),
    }
    return Message(RecordDict({"metrics": MetricRecord(metrics)}), reply_to=msg)


def note_training(context: Context, server_round: int) -> None:
    """Add a line to the training log, if there is one."""
    if path := context.run_config["training-log"]:
        with open(path, "a") as file:
            file.write(json.dumps([server_round, context.node_config["partition-id"]]) + "\n")
