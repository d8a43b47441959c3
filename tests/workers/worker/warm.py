"""Preloaded by a fork server: its forks have the kernels loaded, as the workers of ``halfmoon up`` have."""

from workers.worker.warm_up import warm_up

warm_up()
