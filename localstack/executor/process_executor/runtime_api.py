"""The Lambda Runtime API for one function process, on a port of its own.

https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html: the process asks for its next invocation, and answers it
with a response or an error; a process that cannot begin reports an initialization error.
"""

import dataclasses
import json
import queue
import re
import threading
from concurrent.futures import Future
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html: 6 MB; the number is the one of Lambda's own
# message for a response that is too large.
LARGEST_RESPONSE = 6_291_556

_BASE = "/2018-06-01/runtime/"
_ANSWER = re.compile(re.escape(_BASE) + r"invocation/([^/]+)/(response|error)$")
_EXTENSIONS = re.compile(r"^/20\d\d-\d\d-\d\d/(extension|logs|telemetry)(/|$)")


@dataclasses.dataclass(frozen=True)
class Invocation:
    """One event for the process."""

    request_id: str
    payload: bytes
    function_arn: str
    trace_id: str
    deadline_ms: int  # Unix time at which the function is ended


@dataclasses.dataclass(frozen=True)
class Answer:
    """What came back: the function's own bytes, or an error document of it or of this server."""

    payload: bytes
    is_error: bool


def error_document(kind: str, message: str) -> bytes:
    """An error as Lambda gives it to the caller."""
    return json.dumps({"errorType": kind, "errorMessage": message}).encode()


class RuntimeAPI:
    """Serves one process. ``ready`` becomes None once the process asks for its first invocation, or the initialization
    error that it reports instead."""

    def __init__(self) -> None:
        self.ready: Future[Answer | None] = Future()
        self._pending: queue.SimpleQueue[Invocation | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._current: str | None = None
        self._answer: Future[Answer] = Future()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False  # a thread that waits for the next invocation must not hold up the end
        self._server.api = self
        threading.Thread(target=self._server.serve_forever, daemon=True, name="lambda-runtime-api").start()

    @property
    def address(self) -> str:
        """Host and port, as AWS_LAMBDA_RUNTIME_API wants them."""
        return "127.0.0.1:%d" % self._server.server_address[1]

    def offer(self, invocation: Invocation) -> "Future[Answer]":
        """Gives the process its next invocation; the future is its answer."""
        with self._lock:
            self._current, self._answer = invocation.request_id, Future()
            answer = self._answer
        self._pending.put(invocation)
        return answer

    def fail(self, kind: str, message: str) -> None:
        """Ends what waits for the process, which is gone, with an error."""
        with self._lock:
            document = error_document(kind, f"RequestId: {self._current} {message}" if self._current else message)
            _settle(self.ready, Answer(document, True))
            _settle(self._answer, Answer(document, True))

    def close(self) -> None:
        self._pending.put(None)
        # shutdown waits for the serving thread's next look, half a second at most.
        threading.Thread(target=self._shut, daemon=True).start()

    def _shut(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    # What the process asks for.

    def next(self) -> Invocation | None:
        with self._lock:
            _settle(self.ready, None)
        return self._pending.get()

    def initialization_failed(self, document: bytes) -> None:
        with self._lock:
            _settle(self.ready, Answer(document, True))

    def answered(self, request_id: str, payload: bytes, is_error: bool) -> bool:
        """Takes the answer to the current invocation; False for any other, or for a second one."""
        with self._lock:
            if request_id != self._current:
                return False
            return _settle(self._answer, Answer(payload, is_error))


def _settle(future: Future, value: object) -> bool:
    if future.done():
        return False
    future.set_result(value)
    return True


class _Server(ThreadingHTTPServer):
    api: RuntimeAPI

    def handle_error(self, *_: object) -> None:
        """Nothing: a process that ended has left its connections, and how it ended is told to the caller."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16

    def log_message(self, *_: object) -> None:
        """Nothing: the function's log is the function's own."""

    def do_GET(self) -> None:
        if self._refused_extension():
            return
        if self.path != _BASE + "invocation/next":
            self._reply_error(404, "NotFound", f"no such call: GET {self.path}")
            return
        invocation = self.server.api.next()
        if invocation is None:
            self.close_connection = True
            self._reply_error(410, "Gone", "this environment has ended")
            return
        self._reply(200, invocation.payload, {
            "Content-Type": "application/json",
            "Lambda-Runtime-Aws-Request-Id": invocation.request_id,
            "Lambda-Runtime-Deadline-Ms": str(invocation.deadline_ms),
            "Lambda-Runtime-Invoked-Function-Arn": invocation.function_arn,
            "Lambda-Runtime-Trace-Id": invocation.trace_id,
        })

    def do_POST(self) -> None:
        body, trailers = self._body()
        if self._refused_extension():
            return
        if self.path == _BASE + "init/error":
            self.server.api.initialization_failed(body)
            self._reply(202, b'{"status":"OK"}', {})
            return
        matched = _ANSWER.match(self.path)
        if not matched:
            self._reply_error(404, "NotFound", f"no such call: POST {self.path}")
            return
        request_id, kind = matched.groups()
        if len(body) > LARGEST_RESPONSE:
            self._too_large(request_id)
            return
        # A response that breaks off while it is streamed says so in its trailers.
        is_error = kind == "error" or "lambda-runtime-function-error-type" in trailers
        if self.server.api.answered(request_id, body, is_error):
            self._reply(202, b'{"status":"OK"}', {})
        else:
            self._reply_error(400, "InvalidRequestID", f"{request_id} is not the current invocation, or was answered before")

    def _too_large(self, request_id: str) -> None:
        document = error_document(
            "Function.ResponseSizeTooLarge",
            f"Response payload size exceeded maximum allowed payload size ({LARGEST_RESPONSE} bytes).",
        )
        self.server.api.answered(request_id, document, True)
        self._reply_error(413, "RequestEntityTooLarge", f"Exceeded maximum allowed payload size ({LARGEST_RESPONSE} bytes).")

    def _refused_extension(self) -> bool:
        """Extensions would see their events never, so their first call is refused rather than left waiting."""
        if not _EXTENSIONS.match(self.path):
            return False
        self._reply_error(501, "Extension.NotSupported", "functions that run as processes have no extensions; LocalStack in its container has")
        return True

    def _reply_error(self, status: int, kind: str, message: str) -> None:
        self._reply(status, error_document(kind, message), {"Content-Type": "application/json"})

    def _reply(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def _body(self) -> tuple[bytes, dict[str, str]]:
        """The request's body and its trailers. Runtimes may stream a response in chunks (RFC 9112, section 7.1)."""
        if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
            return self.rfile.read(int(self.headers.get("Content-Length") or 0)), {}
        parts: list[bytes] = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()  # the line end behind a chunk
        trailers: dict[str, str] = {}
        while line := self.rfile.readline().strip():
            name, _, value = line.decode("latin-1").partition(":")
            trailers[name.strip().lower()] = value.strip()
        return b"".join(parts), trailers
