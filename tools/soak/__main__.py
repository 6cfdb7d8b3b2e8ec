"""A soak: simulated elections under faults and real processes under faults, in turn, for as long as you like.

    make soak MINUTES=60                            # or: python -m tools.soak --minutes 60 --seed 1
    python -m tools.soak --seed 1 --episode 17      # that one again

Everything is drawn from the seed (`plan.py`), so the plan of an episode is the same each time; what real processes make
of it depends on the machine. Before each episode comes a batch of the runs of `fedelect chaos`. Faults between
processes: SIGKILL, SIGSTOP, a disk that takes no more bytes (a limit on the size of files), strangers at every port,
Byzantine peers; in every second episode, as root, network namespaces with partitions, moments without any packet, and
loss. What this machine lacks is left out by name.

What must hold is in `episode.py`: one certificate for a slot, one value and one vote of a peer, and nobody honest
proven to have lied. No process ends by itself or is left behind, and all honest peers decide together again when
everything is mended. It prints a line for each episode, how to repeat what broke, and counts at the end and on Ctrl-C.
The folders of broken episodes are kept. Exit code 1 if anything broke.
"""

import argparse
import datetime
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tools.soak.episode import EpisodeRun
from tools.soak.network import missing_loss, missing_tools
from tools.soak.plan import Chaos, draw_chaos, draw_episode

from fedelect.testing.chaos import run_chaos


class Soak:
    """Counts and breakages so far.

    Args:
        seed: Draws everything.
        keep: Folder for what is left of broken episodes.
        slot_s: Seconds after which real peers give a slot up.
        first: Number of the first episode.
    """

    def __init__(self, seed: int, keep: Path, slot_s: float, first: int = 0) -> None:
        self._seed, self._keep, self._slot_s = seed, keep, slot_s
        self._without_network = missing_tools()
        self._began = time.monotonic()
        self.longest_mend_s = 0.0
        self.counts: Counter[str] = Counter()
        self.broken: list[str] = []
        self.next = first

    def play(self) -> None:
        """Play the batch of simulated runs and the episode of the next number."""
        number = self.next
        began, before = time.monotonic(), self.counts.copy()
        broken = self._play_chaos(draw_chaos(self._seed, number)) + self._play_episode(number)
        for text in broken:
            self.broken.append(f"episode {number}: {text}")
            say(f"BROKEN, episode {number}: {text}")
            say(f"again: python -m tools.soak --seed {self._seed} --episode {number}")
        state = "BROKEN" if broken else "sound"
        self.next = number + 1  # before the line below: its reader may interrupt
        say(f"episode {number}: {state}, {time.monotonic() - began:.0f} s; {_listed(self.counts - before)}")

    def report(self) -> None:
        """Print the counts."""
        minutes = (time.monotonic() - self._began) / 60.0
        say(f"seed {self._seed}, {minutes:.1f} minutes; {_listed(self.counts)}")
        say(f"all links up again after a fault: {self.longest_mend_s:.1f} s at the longest")
        for name, why in (("partition, blackout and loss", self._without_network), ("loss", missing_loss())):
            if why:
                say(f"left out, {name}: {why}")
        say(f"{len(self.broken)} broken" + "".join(f"\n  {text}" for text in self.broken))

    def _play_chaos(self, chaos: Chaos) -> list[str]:
        broken = []
        for seed in chaos.seeds:
            result = run_chaos(seed, chaos.plan)
            self.counts["simulated runs"] += 1
            self.counts["simulated slots decided"] += result.decided
            self.counts["simulated slots skipped"] += result.skipped
            late = chaos.plan.calm and result.undecided
            if not result.sound or late:
                broken.append(
                    f"simulated run, seed {seed}, {chaos.plan}: {result.split} slots split; {result.violations}; "
                    f"undecided {result.undecided if late else ()}"
                )
        return broken

    def _play_episode(self, number: int) -> list[str]:
        folder = Path(tempfile.mkdtemp(prefix="soak"))
        networked = not self._without_network and number % 2 == 1
        run = EpisodeRun(draw_episode(self._seed, number), folder, networked=networked, slot_s=self._slot_s)
        try:
            run.play()
            self.counts["episodes"] += 1
        finally:
            self.counts += run.counts
            self.longest_mend_s = max(self.longest_mend_s, run.longest_mend_s)
            if run.broken:
                shutil.copytree(folder, self._keep / f"seed{self._seed}-episode{number}", dirs_exist_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
        return run.broken


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()) if count)


def say(text: str) -> None:
    """Print a line with the time of day, at once."""
    print(f"{datetime.datetime.now():%H:%M:%S} {text}", flush=True)


def main() -> None:
    """Parse, play, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0, help="no new episode begins after these")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first episode, to go on where one ended")
    parser.add_argument("--episode", type=int, help="play this one only")
    parser.add_argument("--keep", type=Path, default=Path("runs/soak"), help="folder for what is left of broken ones")
    parser.add_argument("--slot-s", type=float, default=10.0, help="when peers give a slot up; longer if starved")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):  # SIGINT too: a shell may start it with SIGINT ignored
        signal.signal(number, signal.default_int_handler)
    first = options.first if options.episode is None else options.episode
    soak = Soak(options.seed, options.keep, options.slot_s, first)
    until = time.monotonic() + 60.0 * options.minutes
    try:
        while True:
            soak.play()
            if options.episode is not None or time.monotonic() >= until:
                break
    except KeyboardInterrupt:
        say(f"interrupted in episode {soak.next}; --first {soak.next} goes on with it")
    soak.report()
    sys.exit(1 if soak.broken else 0)


if __name__ == "__main__":
    main()
