"""LocalStack 4.9.2 listens on every address of the machine, whatever GATEWAY_LISTEN says. What it serves needs no password."""

import functools

from twisted.internet import endpoints


def only() -> None:
    """Has every server of this process that names no address listen on loopback. To be called before LocalStack starts."""
    endpoints.TCP4ServerEndpoint = functools.partial(endpoints.TCP4ServerEndpoint, interface="127.0.0.1")
