"""Read the opinions in the clients' evaluation replies, and average them.

A client is not believed more than it must be: an opinion that is missing, nan, out of range or no number counts as
none, never as 0, and the reason is kept. What is left is averaged, robustly if so asked.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from flwr.app import Message, RecordDict

from fedelect.analytics import Average, average_opinion
from fedelect.errors import ConfigurationError
from fedelect.flower.privacy import EXAMPLES, OpinionPrivacy
from fedelect.vocabulary import ClientId, Floats

Opinion = str | Callable[[RecordDict], float]
"""Name of a metric in the clients' evaluation replies, or a function of such a reply into [0, 1]."""


_ACCURACIES = ("accuracy", "acc", "balanced_accuracy", "top1", "top1_accuracy")
_OTHER_SCORES = ("f1", "f1_score", "macro_f1", "auc", "auroc", "roc_auc", "iou", "miou", "dice")
_PLAIN_OPINIONS = frozenset((*_ACCURACIES, *_OTHER_SCORES))
_PREFIXES = ("eval", "evaluate", "val", "valid", "validation", "test", "client", "local")


def check_opinion(opinion: object) -> None:
    """Raise ConfigurationError unless this says where a reply holds its opinion."""
    if opinion is not None and not (isinstance(opinion, str) and opinion) and not callable(opinion):
        raise ConfigurationError(f"opinion: got {opinion!r}; allowed: a metric's name, a function, or None")


def find_opinion(replies: Iterable[Message], *, noisy: bool = False) -> str:
    """Return the one metric of evaluation replies that is plainly an opinion: accuracy, eval_acc, f1, auc and such.

    Args:
        replies: The replies.
        noisy: Whether opinions carry noise and may leave [0, 1].

    Raises:
        ConfigurationError: There is none, or more than one; the message lists the metrics that came.
    """
    replies = list(replies)
    metrics = list_metrics(replies)
    plain = {name: values for name, values in metrics.items() if _is_plain(name)}
    plain = {name: values for name, values in plain.items() if len(values) <= len(replies)}  # not twice in a reply
    candidates = sorted(name for name, values in plain.items() if noisy or _share_in_range(values) > 0.5)
    outside = ", ".join(f"{name} (as {plain[name][0]:.4g})" for name in sorted(plain.keys() - set(candidates)))
    if len(candidates) == 1:
        return candidates[0]
    came = ", ".join(sorted(metrics)) or "no metrics at all"
    found = f"several metrics may be the opinion: {', '.join(candidates)}" if candidates else "no metric is plainly it"
    found += f"; not in [0, 1] is {outside}" if outside else ""
    raise ConfigurationError(
        f"the clients' evaluation replies do not say which metric is their opinion: {found}; they hold {came}. "
        f'Name it, as in opinion="accuracy", or give a function of the reply into [0, 1]'
    )


def list_metrics(replies: Iterable[Message]) -> dict[str, list[float]]:
    """Return the numbers in evaluation replies by metric; lists and what is no number are left out."""
    metrics: dict[str, list[float]] = {}
    for reply in replies:
        for record in reply.content.metric_records.values():
            for name, value in record.items():
                if isinstance(value, int | float) and not isinstance(value, bool):
                    metrics.setdefault(name, []).append(float(value))
    return metrics


def _share_in_range(values: list[float]) -> float:
    return sum(0.0 <= value <= 1.0 for value in values) / len(values)  # one client may send anything


def strip_prefixes(name: str) -> str:
    """Return a metric's name in lower case, without words such as "eval" before it.

    >>> strip_prefixes("eval-Test F1")
    'f1'
    """
    words = re.split(r"[^a-z0-9]+", name.lower())
    while len(words) > 1 and words[0] in _PREFIXES:
        words = words[1:]
    return "_".join(words)


def _is_plain(name: str) -> bool:
    return strip_prefixes(name) in _PLAIN_OPINIONS


@dataclass(frozen=True, slots=True)
class Survey:
    """Opinions of a model.

    Attributes:
        opinions: (N,) nan where a client gave none that counts. With `privacy` they carry noise.
        noise: (N,) standard deviation of the noise on each; 0 without privacy.
        rejected: Why a reply did not count, by client.
    """

    opinions: Floats
    noise: Floats
    rejected: dict[ClientId, str]

    @property
    def given(self) -> int:
        """Number of opinions that count."""
        return int(np.count_nonzero(~np.isnan(self.opinions)))

    def restrict(self, clients: Sequence[ClientId]) -> "Survey":
        """Return the opinions of these clients alone."""
        mask = np.zeros(self.opinions.size, dtype=np.bool_)
        mask[list(clients)] = True
        return Survey(np.where(mask, self.opinions, np.nan), np.where(mask, self.noise, 0.0), self.rejected)


def read_survey(
    replies: Mapping[ClientId, Message],
    *,
    clients: int,
    opinion: Opinion,
    privacy: OpinionPrivacy | None = None,
    examples: dict[ClientId, int] | None = None,
) -> Survey:
    """The opinions in the clients' evaluation replies.

    Args:
        replies: The replies by client.
        clients: N.
        opinion: Where a reply holds its opinion.
        privacy: The noise that the clients add, if they do.
        examples: Over how many examples each client gives its opinions, by client, for `privacy` only: what a client
            says in its first reply is added, and later replies that say something else do not count.
    """
    known = {} if examples is None else examples
    survey = Survey(np.full(clients, np.nan), np.zeros(clients), {})
    for client, reply in replies.items():
        try:
            noise = 0.0 if privacy is None else _noise(reply.content, privacy, known.get(client))
            survey.opinions[client] = _check_range(_read(reply.content, opinion), noise)
            survey.noise[client] = noise
            if privacy is not None:
                known.setdefault(client, int(_number(reply.content, EXAMPLES)))
        except _NoOpinionError as reason:
            survey.rejected[client] = str(reason)
        except Exception as error:  # whatever a reply makes the user's function raise
            survey.rejected[client] = f"{_UNREADABLE}{type(error).__name__}: {error}"
    return survey


_UNREADABLE = "its reply cannot be read: "


def refuse_broken_opinion(survey: Survey, replies: Mapping[ClientId, Message]) -> None:
    """Raise ConfigurationError if the user's function of a reply raised for each of the replies; one may be odd."""
    reasons = list(survey.rejected.values())
    if len(replies) < 2 or len(reasons) < len(replies) or not all(reason.startswith(_UNREADABLE) for reason in reasons):
        return
    content = next(iter(replies.values())).content
    held = "; ".join(f"{name!r} with {', '.join(record) or 'nothing'}" for name, record in content.items())
    raise ConfigurationError(
        f"opinion= raised {reasons[0].removeprefix(_UNREADABLE)}, and likewise for every other reply; a reply holds "
        f"the records {held}. Mend the function, as in opinion=lambda reply: reply['metrics']['accuracy']"
    )


def average_survey(survey: Survey, *, average: Average, trim: float) -> tuple[float | None, float]:
    """Return the average of the opinions, None if there are none, and the standard deviation of the noise on it.

    Raises:
        ConfigurationError: They carry noise, and that of this average is not known.
    """
    noise = _noise_of_mean(survey)
    if noise > 0.0 and average != "mean":  # of opinions far apart a median has several times the mean's noise
        raise ConfigurationError(f"the noise on the {average!r} average of noisy opinions is not known; use 'mean'")
    return average_opinion(survey.opinions, average, trim=trim), noise


def _noise_of_mean(survey: Survey) -> float:
    """Standard deviation of the noise on the mean opinion."""
    present = ~np.isnan(survey.opinions)
    return math.sqrt(float(np.square(survey.noise[present]).sum())) / max(int(present.sum()), 1)


class _NoOpinionError(Exception):
    """Why a reply holds no opinion."""


def _noise(content: RecordDict, privacy: OpinionPrivacy, known: int | None) -> float:
    """The noise on an opinion, by the number of examples that the reply claims."""
    claimed = _number(content, EXAMPLES)
    if known is not None and claimed != known:
        raise _NoOpinionError(f"it now claims {claimed:g} examples, and {known} in its first reply")
    return privacy.noise(claimed)


def _read(content: RecordDict, opinion: Opinion) -> object:
    return _number(content, opinion) if isinstance(opinion, str) else opinion(content)


def _number(content: RecordDict, name: str) -> float:
    found = [record[name] for record in content.metric_records.values() if name in record]
    if len(found) != 1:
        raise _NoOpinionError(f"its reply holds {len(found)} metrics called {name!r} instead of one")
    value = found[0]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _NoOpinionError(f"its {name!r} is {_short(value)}, which is no number")
    return float(value)


def _check_range(value: object, noise: float) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise _NoOpinionError(f"its opinion is {_short(value)}, which is no number")
    reach = _NOISES * noise
    if not -reach <= value <= 1.0 + reach:  # nan fails too
        allowed = "[0, 1]" if noise == 0 else f"[{-reach:.3g}, {1 + reach:.3g}]"
        raise _NoOpinionError(f"its opinion {_short(value)} is not in {allowed}")
    return float(value)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


_NOISES = 6.0  # an honest noisy opinion is further out than this once in a billion times
