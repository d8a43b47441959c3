"""To be imported by a fork server: what it starts has the kernels loaded, as the workers of ``halfmoon up`` have."""

from core.train import warm_up

warm_up()
