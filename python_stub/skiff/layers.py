"""Layers: functions that append ops to the default program and return the variables that these write."""
from ._skiff.layers import *  # noqa: F401,F403
