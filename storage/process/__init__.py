"""What every process has, gateway and worker: settings, logs, traces, and attributes that the system knows."""
