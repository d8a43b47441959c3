"""The sockets that a gateway listens on, and the connections that it accepts."""
