"""LocalStack 4.9.2 listens on every address of the machine, whatever GATEWAY_LISTEN says. What it serves needs no password."""

import functools


def only() -> None:
    """Has every server of this process that names no address listen on loopback. To be called before one is made."""
    from twisted.internet import endpoints

    endpoints.TCP4ServerEndpoint = functools.partial(endpoints.TCP4ServerEndpoint, interface="127.0.0.1")
