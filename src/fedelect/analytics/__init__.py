"""A trained model -> what may be known of how good it is: opinions, an average, beliefs."""

from fedelect.analytics.averages import Average, average_opinion, check_average
from fedelect.analytics.democratized import Digest, Exchange, couplings_of, democratized
from fedelect.analytics.federated import federated
from fedelect.analytics.survey import Opinion, accuracy, judge, load_opinion, survey

__all__ = [
    "Average",
    "Digest",
    "Exchange",
    "Opinion",
    "accuracy",
    "average_opinion",
    "check_average",
    "couplings_of",
    "democratized",
    "federated",
    "judge",
    "load_opinion",
    "survey",
]
