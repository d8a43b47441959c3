"""Settings, logs, traces and system attributes of every process, gateway or worker."""
