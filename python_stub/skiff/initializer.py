"""How parameters get their first values."""
from ._skiff.initializer import *  # noqa: F401,F403
