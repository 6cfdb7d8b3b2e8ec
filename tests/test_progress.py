"""Progress bars: what a redirected one prints."""

import io

from rich.console import Console

from fedelect._progress import TerminalBar


def test_a_redirected_bar_prints_a_line_every_half_minute_and_one_at_the_end() -> None:
    now_s, out = [0.0], io.StringIO()
    bar = TerminalBar("atlas of digits", "trainings", Console(file=out, width=100), clock=lambda: now_s[0])
    for finished in range(0, 101, 10):
        bar.show(finished, 100)
        now_s[0] += 10.0
    bar.stop()
    lines = out.getvalue().splitlines()
    assert [line.split("trainings")[0].split()[-1] for line in lines] == ["30/100", "60/100", "90/100", "100/100"]
    assert all(line.startswith("atlas of digits") for line in lines)


def test_a_short_job_that_is_redirected_prints_one_line() -> None:
    out = io.StringIO()
    bar = TerminalBar("atlas of digits", "trainings", Console(file=out, width=100), clock=lambda: 0.0)
    for finished in range(11):
        bar.show(finished, 10)
    bar.stop()
    assert [line for line in out.getvalue().splitlines() if "10/10 trainings" in line] == out.getvalue().splitlines()
