"""The HTTP gateway and the commands that run the service. Knows ``workers`` and ``core``."""
