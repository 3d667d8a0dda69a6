"""Optimizers: from a loss to the ops that train its parameters."""
from ._skiff.optimizer import *  # noqa: F401,F403
