"""Mail that leaves LocalStack. Its free edition keeps what was sent and delivers nothing; here a raw message goes on to an
SMTP server, as SES would deliver it. The account is in the sandbox, as each new one is
(https://docs.aws.amazon.com/ses/latest/dg/request-production-access.html): recipients must be verified."""

import email
import logging
import smtplib
from collections.abc import Callable
from email.utils import getaddresses, parseaddr

LOG = logging.getLogger(__name__)

# https://docs.aws.amazon.com/ses/latest/dg/quotas.html: a message by the API's version 1, with its attachments encoded.
LARGEST_MESSAGE = 10 << 20


def recipients_of(destinations: list[str], message: str) -> list[str]:
    """The addresses that the call names, or else those of the message's own headers."""
    named = destinations
    if not named:
        parsed = email.message_from_string(message)
        named = [str(value) for header in ("To", "Cc", "Bcc") for value in parsed.get_all(header, [])]
    return [address for _, address in getaddresses(named) if address]


def too_large(message: str) -> str | None:
    """What SES says of a message that is larger than it takes."""
    size = len(message.encode())
    return f"Message length is more than {LARGEST_MESSAGE} bytes long: '{size}'." if size > LARGEST_MESSAGE else None


def unverified(recipients: list[str], is_verified: Callable[[str], bool]) -> list[str]:
    return [address for address in recipients if not is_verified(address)]


def relay(server: str, sender: str, recipients: list[str], message: str) -> None:
    """Hands the message on as it is. What the server refuses stands in the log alone: on AWS it is a bounce, which the
    caller of SES is not told either."""
    host, _, port = server.rpartition(":")
    try:
        with smtplib.SMTP(host, int(port), timeout=30) as client:
            refused = client.sendmail(parseaddr(sender)[1], recipients, message.encode())
    except (OSError, smtplib.SMTPException) as e:
        LOG.warning("mail from %s to %s was not delivered: %s", sender, ", ".join(recipients), e)
        return
    for recipient, why in refused.items():
        LOG.warning("mail from %s to %s was refused: %s", sender, recipient, why)


def install(server: str, region: str) -> None:
    """Has moto's SES, which LocalStack calls, check messages and recipients and hand messages on to the server (host:port)."""
    from moto.ses.exceptions import InvalidParameterValue, MessageRejectedError
    from moto.ses.models import SESBackend
    from werkzeug.wrappers import Request

    # A message is a field of a form, and werkzeug takes 500,000 bytes of these by itself: less than a small attachment.
    # Base64, and the form's own encoding of it, make a message half as large again; one that is too large gets here too.
    Request.max_form_memory_size = 8 * LARGEST_MESSAGE

    send = SESBackend.send_raw_email

    def send_raw_email(self, source, destinations, raw_data):
        if complaint := too_large(raw_data):
            raise InvalidParameterValue(complaint)
        recipients = recipients_of(list(destinations or []), raw_data)
        failed = unverified(recipients, self._is_verified_address)
        if failed:
            raise MessageRejectedError(
                "Email address is not verified. The following identities failed the check in region "
                f"{region.upper()}: {', '.join(failed)}"
            )
        sent = send(self, source, destinations, raw_data)
        relay(server, source or sent.source, recipients, raw_data)
        return sent

    SESBackend.send_raw_email = send_raw_email
