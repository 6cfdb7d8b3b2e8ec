"""Worker processes: results as they come, exceptions raised in the parent, no process left behind."""

import functools
import os
import signal
import threading
from collections.abc import Generator
from typing import Any

import pytest

from fedelect._processes import as_failure, run_tasks, usable_cores, worker_count
from fedelect.errors import ConfigurationError, RunError


def square(number: int) -> int:
    """Square a number; die at 13, fail below 0."""
    if number == 13:
        os.kill(os.getpid(), signal.SIGKILL)
    if number < 0:
        raise ConfigurationError(f"{number} is negative")
    return number * number


def count(number: int) -> Generator[int, None, int]:
    """Count up to a number on the way to its square; fail at seven."""
    for step in range(number):
        if step == 7:
            raise ConfigurationError("seven is too far")
        yield step
    return number * number


def squares(*numbers: int, workers: int) -> dict[int, int]:
    return dict(run_tasks(square, [(number,) for number in numbers], workers=workers))


@pytest.mark.parametrize("workers", [1, 2, 9])
def test_every_task_has_its_result_under_its_index(workers: int) -> None:
    assert squares(3, 1, 4, 1, 5, workers=workers) == {0: 9, 1: 1, 2: 16, 3: 1, 4: 25}
    assert squares(workers=workers) == {}


@pytest.mark.parametrize("workers", [1, 2])
def test_an_exception_is_raised_here_with_a_note_of_where(workers: int) -> None:
    with pytest.raises(ConfigurationError, match="-2 is negative") as caught:
        squares(1, -2, 3, workers=workers)
    assert "In the worker" in caught.value.__notes__[0]


def test_a_lost_worker_is_told_and_takes_nobody_along() -> None:
    with pytest.raises(RunError, match="killed by signal 9"):
        squares(1, 13, 2, 3, workers=2)
    assert not [thread for thread in threading.enumerate() if "_talk" in thread.name]


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_generator_yields_comes_ahead_of_its_result_under_the_same_index(workers: int) -> None:
    told: list[tuple[int, int]] = []
    answers: dict[int, int] = {}
    requests = [(number,) for number in (3, 0, 2)]
    for index, answer in run_tasks(
        count, requests, workers=workers, progress=lambda index, value: told.append((index, value))
    ):
        answers[index] = answer
        assert [value for where, value in told if where == index] == list(range(requests[index][0]))
    assert answers == {0: 9, 1: 0, 2: 4} and len(told) == 5


@pytest.mark.parametrize("workers", [1, 2])
def test_a_generator_may_fail_on_the_way(workers: int) -> None:
    with pytest.raises(ConfigurationError, match="seven is too far"):
        dict(run_tasks(count, [(9,), (1,)], workers=workers))


@pytest.mark.parametrize("workers", [1, 2])
def test_partial_and_builtin_functions_can_be_sent(workers: int) -> None:
    assert dict(run_tasks(functools.partial(pow, 2), [(3,), (4,)], workers=workers)) == {0: 8, 1: 16}
    with pytest.raises(ZeroDivisionError) as caught:
        dict(run_tasks(divmod, [(3, 0), (4, 1)], workers=workers))
    assert "In the worker" in caught.value.__notes__[0]


def test_an_exception_that_cannot_travel_is_described() -> None:
    class Local(Exception):
        pass

    answer: Any = as_failure(Local("here"))
    assert isinstance(answer.error, RunError) and "Local in a worker: here" in str(answer.error)


def test_the_number_of_processes_is_what_was_asked_for_or_one_for_each_core() -> None:
    assert worker_count(3) == 3 and worker_count(None) == usable_cores() >= 1
    with pytest.raises(ConfigurationError, match="workers must be at least 1, got 0"):
        worker_count(0)
