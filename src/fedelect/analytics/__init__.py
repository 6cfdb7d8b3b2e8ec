"""FA and DA: turn a trained model into opinions, an average, beliefs."""

from fedelect.analytics.feedback import LinkedClients, democratized_feedback, federated_feedback, link_couplings
from fedelect.analytics.opinion_gain import OpinionGain
from fedelect.analytics.opinions import (
    Average,
    OpinionFunction,
    accuracy,
    average_opinion,
    check_average,
    judge,
    load_opinion,
    survey,
)
from fedelect.analytics.sampled_survey import SurveyAverage

__all__ = [
    "Average",
    "LinkedClients",
    "OpinionFunction",
    "OpinionGain",
    "SurveyAverage",
    "accuracy",
    "average_opinion",
    "check_average",
    "democratized_feedback",
    "federated_feedback",
    "judge",
    "link_couplings",
    "load_opinion",
    "survey",
]
