"""Rivals that are bandits over clients: bounds, posteriors, contexts."""

from fedelect.selectors.rivals.bandits.additive_thompson import AdditiveThompson as AdditiveThompson
from fedelect.selectors.rivals.bandits.client_thompson import ClientThompson as ClientThompson
from fedelect.selectors.rivals.bandits.client_ucb import ClientUcb as ClientUcb
from fedelect.selectors.rivals.bandits.context_ucb import ContextUcb as ContextUcb
from fedelect.selectors.rivals.bandits.rbcs_f import RbcsF as RbcsF

__all__ = ["AdditiveThompson", "ClientThompson", "ClientUcb", "ContextUcb", "RbcsF"]
