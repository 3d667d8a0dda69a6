"""Learning rates and their schedules, computed by ops in the program."""
from ._skiff.learning_rate import *  # noqa: F401,F403
