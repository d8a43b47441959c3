"""halfmoon up: the whole service on one machine, its processes supervised."""
