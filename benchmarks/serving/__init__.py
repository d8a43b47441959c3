"""Several gateways and workers as processes of their own behind a proxy, on a bucket, restarted one after the other
under load.
"""
