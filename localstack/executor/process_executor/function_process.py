"""One process of a function, from its start to its end, with what it printed."""

import os
import pathlib
import select
import signal
import subprocess
import threading

from process_executor.runtime_api import Answer, Invocation, RuntimeAPI, error_document

# How long a process may take until it asks for its first invocation. On AWS 10 seconds
# (https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html#runtimes-lifecycle-ib); a little more for
# a busy machine, and less than the 20 after which LocalStack gives up by itself.
INITIALIZATION_SECONDS = 15.0


class FunctionProcess:
    """Runs ``bootstrap`` of a folder in a process group of its own. The group stays in the session of whoever starts it,
    so that a session that is ended takes its functions with it."""

    def __init__(self, folder: pathlib.Path, environment: dict[str, str]) -> None:
        self.api = RuntimeAPI()
        self.ended = threading.Event()
        self._lines_lock = threading.Lock()
        self._printed = bytearray()
        self._peak_kb = 0
        self._process: subprocess.Popen | None = None
        try:
            self._process = subprocess.Popen(
                [str(folder / "bootstrap")],
                cwd=folder,
                env={**environment, "AWS_LAMBDA_RUNTIME_API": self.api.address},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        except OSError as e:
            # No file, no right to run it, or a binary of another architecture; Lambda's own name for these.
            self.api.fail("Runtime.InvalidEntrypoint", f"Error: {folder / 'bootstrap'}: {e.strerror}")
            self.ended.set()
            return
        os.set_blocking(self._process.stdout.fileno(), False)
        threading.Thread(target=self._read, daemon=True, name="lambda-output").start()
        threading.Thread(target=self._watch, daemon=True, name="lambda-process").start()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def initialization_error(self, seconds: float = INITIALIZATION_SECONDS) -> Answer | None:
        """Waits until the process is ready for invocations, and gives the error if it cannot be."""
        try:
            return self.api.ready.result(seconds)
        except TimeoutError:
            self.kill()
            return Answer(error_document("Sandbox.Timedout", f"Error: the initialization timed out after {seconds:.2f} seconds"), True)

    def invoke(self, invocation: Invocation, seconds: float) -> Answer:
        """Gives the process one event. A process that takes longer is ended, as on AWS."""
        answer = self.api.offer(invocation)
        if self.ended.is_set():
            self._fail_waiting()
        try:
            return answer.result(seconds)
        except TimeoutError:
            self.kill()
            message = f"RequestId: {invocation.request_id} Error: Task timed out after {seconds:.2f} seconds"
            return Answer(error_document("Sandbox.Timedout", message), True)

    def kill(self) -> None:
        """Ends the process with its group, and returns when it is gone."""
        if self._process is None:
            return
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.ended.wait(10)

    def close(self) -> None:
        self.kill()
        self.api.close()

    def take_lines(self) -> list[str]:
        """What it printed since the last call. What it wrote before its answer arrived is in it for certain: it lies in
        the pipe by then and is read here."""
        with self._lines_lock:
            self._read_available()
            text, self._printed = self._printed.decode(errors="replace"), bytearray()
        return text.splitlines()

    def peak_memory_mb(self) -> int | None:
        """The most memory that it ever had resident, rounded up, or None if the system does not tell. The kernel tells it
        of living processes only (proc(5), VmHWM); of one that has ended the last figure that was seen is given. The
        figure of wait4 is no use: it begins with the size of the process that forked."""
        if self._process is not None:
            try:
                status = pathlib.Path(f"/proc/{self._process.pid}/status").read_text()
                self._peak_kb = max([self._peak_kb, *(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))])
            except OSError:
                pass
        return -(-self._peak_kb // 1024) or None

    def _read(self) -> None:
        """Reads what the process prints until nobody holds the pipe any more, so that it never waits for a reader."""
        while True:
            select.select([self._process.stdout], [], [])
            with self._lines_lock:
                if not self._read_available():
                    return

    def _watch(self) -> None:
        """Waits for the end of the process; whatever it started is of its group and goes with it."""
        self._process.wait()
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self.ended.set()
        self._fail_waiting()

    def _read_available(self) -> bool:
        """Reads what lies in the pipe; False at its end."""
        pipe = self._process.stdout if self._process else None
        while pipe is not None:
            chunk = pipe.read(1 << 16)
            if chunk is None:
                return True  # nothing at the moment
            if not chunk:
                return False
            self._printed += chunk
        return False

    def _fail_waiting(self) -> None:
        self.api.fail("Runtime.ExitError", f"Error: Runtime exited {self._how_it_ended()}")

    def _how_it_ended(self) -> str:
        code = self._process.returncode if self._process else None
        if not code:
            return "without providing a reason"
        if code > 0:
            return f"with error: exit status {code}"
        return f"with error: signal: {signal.Signals(-code).name}"
