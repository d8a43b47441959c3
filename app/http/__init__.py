"""HTTP for all domains: middleware, access, limits, bodies, content negotiation, error handlers."""
