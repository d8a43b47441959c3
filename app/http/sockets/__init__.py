"""The sockets that a gateway listens on, the connections that it accepts, and their time-outs."""
