"""HTTP below the domains: middleware, access, limits, bodies, errors as answers."""
