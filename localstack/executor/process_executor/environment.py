"""One execution environment: a folder for temporary files, and one process after the other in it."""

import pathlib
import shutil
import tempfile
import time

from process_executor.function_process import FunctionProcess
from process_executor.runtime_api import Answer, Invocation

# What LocalStack adds for the program that serves functions inside of its containers. Processes have no such program.
_NOT_FOR_FUNCTIONS = (
    "LOCALSTACK_HOSTNAME", "LOCALSTACK_RUNTIME_ID", "LOCALSTACK_RUNTIME_ENDPOINT", "LOCALSTACK_FUNCTION_ACCOUNT_ID",
    "LOCALSTACK_USER", "LOCALSTACK_INIT_LOG_LEVEL", "LOCALSTACK_POST_INVOKE_WAIT_MS", "LOCALSTACK_MAX_PAYLOAD_SIZE", "EDGE_PORT",
)


class Environment:
    """Holds a function's process between invocations. A process that ended is replaced at the next invocation; the
    temporary folder stays until the environment is closed, as /tmp does on AWS
    (https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html)."""

    def __init__(self, code: pathlib.Path, variables: dict[str, object], path: str, memory_mb: int, version: str) -> None:
        self._code = code
        self._memory_mb = memory_mb
        self._version = version
        self.temporary = pathlib.Path(tempfile.mkdtemp(prefix="lambda-"))
        given = {name: str(value) for name, value in variables.items() if value is not None and name not in _NOT_FOR_FUNCTIONS}
        self.variables = {
            **given, "PATH": path, "LANG": "en_US.UTF-8", "TZ": ":UTC", "LAMBDA_TASK_ROOT": str(code),
            "TMPDIR": str(self.temporary), "HOME": str(self.temporary),
        }
        self._process: FunctionProcess | None = None
        self._closed = False

    def start(self) -> None:
        """Starts the process and returns when it is ready, or has failed. A failure is the next invocation's answer, so
        that its log tells what the process printed."""
        self._process = FunctionProcess(self._code, self.variables)
        self._failed = self._process.initialization_error()

    def close(self) -> None:
        self._closed = True
        if self._process:
            self._process.close()
        shutil.rmtree(self.temporary, ignore_errors=True)

    def invoke(self, request_id: str, payload: bytes, function_arn: str, trace_id: str, seconds: int) -> tuple[Answer, str]:
        """Gives the answer and the log of the invocation, with Lambda's own lines around what the function printed."""
        if self._process is None or (self._process.ended.is_set() and self._failed is None):
            if self._process:
                self._process.close()
            self.start()
        process, began = self._process, time.time()
        if self._failed is not None:
            answer, self._failed = self._failed, None  # the next invocation tries again
            process.close()
        else:
            invocation = Invocation(request_id, payload, function_arn, trace_id, int((began + seconds) * 1000))
            answer = process.invoke(invocation, seconds)
        milliseconds = (time.time() - began) * 1000
        return answer, self._log(request_id, process, answer, milliseconds)

    def lines(self) -> list[str]:
        return self._process.take_lines() if self._process else []

    def _log(self, request_id: str, process: FunctionProcess, answer: Answer, milliseconds: float) -> str:
        # https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs.html
        peak = process.peak_memory_mb()
        report = [
            f"REPORT RequestId: {request_id}", f"Duration: {milliseconds:.2f} ms",
            f"Billed Duration: {int(milliseconds) + 1} ms", f"Memory Size: {self._memory_mb} MB",
        ]
        if peak is not None:
            report.append(f"Max Memory Used: {peak} MB")
        lines = [f"START RequestId: {request_id} Version: {self._version}", *process.take_lines()]
        if process.ended.is_set() and answer.is_error:
            lines.append(f"RequestId: {request_id} {answer.payload.decode(errors='replace')}")
        return "\n".join([*lines, f"END RequestId: {request_id}", "\t".join(report) + "\t"]) + "\n"
