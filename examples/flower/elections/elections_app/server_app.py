"""The ServerApp: FedAvg aggregates, and the clients elect who trains."""

import time
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Context
from flwr.common.serde import recorddict_to_proto
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from fedelect.flower import PeerElected

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the federation, or go on with it."""
    config = context.run_config
    if config["pace"] > 0:
        send_one_by_one(grid, config["pace"])
    if config["witness"]:
        note_everything(grid, Path(config["witness"]))
    strategy = PeerElected(
        FedAvg(),
        roster=config["roster"],
        rounds_per_slot=config["rounds-per-slot"],
        run=config["run-folder"],
        start=config["start"],
        wait_s=config["wait"],
    )
    strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord({"model": Array(np.zeros((config["rows"], config["columns"])))}),
        num_rounds=config["rounds-per-slot"] * config["slots"],
        timeout=config["timeout"],
    )


def send_one_by_one(grid: Grid, pace_s: float) -> None:
    """Let seconds pass between messages, so that SuperNodes on one machine do not all start a process at once."""
    push = grid.push_messages

    def pushed(messages):
        ids = []
        for message in messages:
            ids += push([message])
            time.sleep(pace_s)
        return ids

    grid.push_messages = pushed


def note_everything(grid: Grid, folder: Path) -> None:
    """Keep a copy of every message that reaches this app: TYPE.bin as it came over the wire, or TYPE.error."""
    folder.mkdir(parents=True, exist_ok=True)
    pull = grid.pull_messages

    def pulled(message_ids):
        replies = list(pull(message_ids))
        for reply in replies:
            name = f"{len(list(folder.iterdir())):05d}.{reply.metadata.message_type}"
            if reply.has_error():
                (folder / f"{name}.error").write_text(str(reply.error.reason), encoding="utf-8")
            else:
                (folder / f"{name}.bin").write_bytes(recorddict_to_proto(reply.content).SerializeToString())
        return replies

    grid.pull_messages = pulled
