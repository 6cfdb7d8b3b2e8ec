"""A trained model -> what may be known of how good it is: opinions, an average, beliefs."""

from fedelect.analytics.averages import Average as Average
from fedelect.analytics.averages import average_opinion as average_opinion
from fedelect.analytics.averages import check_average as check_average
from fedelect.analytics.democratized import Digest as Digest
from fedelect.analytics.democratized import Exchange as Exchange
from fedelect.analytics.democratized import couplings_of as couplings_of
from fedelect.analytics.democratized import democratized as democratized
from fedelect.analytics.federated import federated as federated
from fedelect.analytics.survey import Opinion as Opinion
from fedelect.analytics.survey import accuracy as accuracy
from fedelect.analytics.survey import judge as judge
from fedelect.analytics.survey import load_opinion as load_opinion
from fedelect.analytics.survey import survey as survey

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
