"""For every suite: a property may take as long as the machine needs; budgets belong to the benchmarks."""

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
