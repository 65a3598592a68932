import json
import os
import pathlib
import tempfile
import threading
import time
import unittest

from process_executor import function_process
from process_executor.environment import Environment
from process_executor.runtime_api import LARGEST_RESPONSE
from tests import bootstraps


class EnvironmentTest(unittest.TestCase):
    def environment(self, body=bootstraps.OBEDIENT, variables=None) -> Environment:
        code = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        bootstraps.write(code, body)
        made = Environment(code, variables or {}, os.environ["PATH"], 128, "$LATEST")
        self.addCleanup(made.close)
        made.start()
        return made

    def invoke(self, environment, seconds=20, request_id="request-1", **event):
        answer, log = environment.invoke(request_id, json.dumps(event).encode(), "arn:f", "Root=1", seconds)
        return answer, json.loads(answer.payload), log

    def test_event_and_answer(self):
        answer, got, log = self.invoke(self.environment(), text="Grüße", n=9007199254740993)
        self.assertFalse(answer.is_error)
        self.assertEqual(got["event"], {"text": "Grüße", "n": 9007199254740993})
        self.assertEqual(got["headers"]["Lambda-Runtime-Invoked-Function-Arn"], "arn:f")
        self.assertEqual(got["headers"]["Lambda-Runtime-Trace-Id"], "Root=1")
        remaining = int(got["headers"]["Lambda-Runtime-Deadline-Ms"]) / 1000 - time.time()
        self.assertTrue(15 < remaining <= 20, remaining)
        lines = log.splitlines()
        self.assertEqual(lines[0], "START RequestId: request-1 Version: $LATEST")
        self.assertEqual(lines[1], "initialized")
        self.assertEqual(lines[-2], "END RequestId: request-1")
        self.assertTrue(lines[-1].startswith("REPORT RequestId: request-1\tDuration: "), lines[-1])

    def test_the_process_stays_and_its_log_is_of_each_invocation(self):
        environment = self.environment()
        _, first, _ = self.invoke(environment)
        for text in ("one", "two"):
            _, got, log = self.invoke(environment, do="print", text=text)
            self.assertEqual(got["pid"], first["pid"])
            self.assertEqual(log.splitlines()[1:-2], [text])

    def test_variables(self):
        given = {"MINE": "x", "NUMBER": 128, "EMPTY": None, "LOCALSTACK_RUNTIME_ID": "hidden", "EDGE_PORT": "1", "AWS_REGION": "us-east-1", "TZ": "Mars"}
        os.environ["OF_THE_EMULATOR"] = "1"
        self.addCleanup(os.environ.pop, "OF_THE_EMULATOR")
        environment = self.environment(variables=given)
        _, got, _ = self.invoke(environment)
        env = got["env"]
        self.assertEqual((env["MINE"], env["NUMBER"], env["AWS_REGION"], env["TZ"]), ("x", "128", "us-east-1", ":UTC"))
        self.assertEqual(env["TMPDIR"], str(environment.temporary))
        self.assertEqual(os.path.realpath(got["cwd"]), os.path.realpath(env["LAMBDA_TASK_ROOT"]))
        for name in ("EMPTY", "LOCALSTACK_RUNTIME_ID", "EDGE_PORT", "OF_THE_EMULATOR"):
            self.assertNotIn(name, env)

    def test_each_environment_has_its_own_temporary_folder_which_goes_with_it(self):
        one, two = self.environment(), self.environment()
        self.assertEqual([self.invoke(e, do="file")[1] for e in (one, one, two)], [False, True, False])
        one.close()
        self.assertFalse(one.temporary.exists())
        self.assertTrue(two.temporary.exists())

    def test_an_error_of_the_function(self):
        answer, got, _ = self.invoke(self.environment(), do="error")
        self.assertTrue(answer.is_error)
        self.assertEqual(got, {"errorType": "Told", "errorMessage": "told to fail"})

    def test_a_crash_is_an_error_and_a_new_process_follows_in_the_same_folder(self):
        environment = self.environment()
        _, before, _ = self.invoke(environment)
        self.invoke(environment, do="file")
        for event, how in (({"do": "exit", "code": 7}, "with error: exit status 7"), ({"do": "exit", "code": 0}, "without providing a reason"), ({"do": "signal"}, "with error: signal: SIGABRT")):
            with self.subTest(how):
                answer, got, log = self.invoke(environment, **event)
                self.assertTrue(answer.is_error)
                self.assertEqual(got["errorType"], "Runtime.ExitError")
                self.assertEqual(got["errorMessage"], "RequestId: request-1 Error: Runtime exited " + how)
                self.assertIn(got["errorMessage"], log)
                _, after, _ = self.invoke(environment)
                self.assertNotEqual(after["pid"], before["pid"])
        self.assertTrue(self.invoke(environment, do="file")[1], "the temporary folder was emptied by a crash")

    def test_a_time_out_ends_the_process(self):
        environment = self.environment()
        _, before, _ = self.invoke(environment)
        began = time.monotonic()
        answer, log = environment.invoke("request-1", b'{"do":"sleep","seconds":60}', "arn:f", "", 1)
        got = json.loads(answer.payload)
        self.assertLess(time.monotonic() - began, 10)
        self.assertTrue(answer.is_error)
        self.assertEqual(got["errorType"], "Sandbox.Timedout")
        self.assertIn("Task timed out after 1.00 seconds", got["errorMessage"])
        self.assertIn("Task timed out", log)
        self.assertFalse(alive(before["pid"]))
        _, after, _ = self.invoke(environment)
        self.assertNotEqual(after["pid"], before["pid"])

    def test_children_go_with_the_process(self):
        environment = self.environment()
        _, child, _ = self.invoke(environment, do="child")
        self.assertTrue(alive(child))
        self.invoke(environment, do="exit", code=1)
        self.assertTrue(gone(child))

    def test_memory(self):
        environment = self.environment()
        _, _, small = self.invoke(environment)
        _, _, large = self.invoke(environment, do="allocate", bytes=64 << 20)
        if not os.path.exists("/proc/self/status"):
            self.assertNotIn("Max Memory Used", large)
            return
        self.assertGreaterEqual(peak(large), peak(small) + 50)
        self.assertLess(peak(small), 64, "the figure is of another process")
        self.assertIn("Memory Size: 128 MB", large)
        _, _, later = self.invoke(environment)
        self.assertEqual(peak(later), peak(large), "the figure is the most of the environment's life")

    def test_initialization_errors_are_the_answer_with_what_was_printed(self):
        for body, kind, message, printed in (
            (bootstraps.CANNOT_BEGIN, "Told", "no settings", "no settings"),
            (bootstraps.ENDS_AT_ONCE, "Runtime.ExitError", "exit status 3", "gone"),
        ):
            with self.subTest(kind):
                environment = self.environment(body)
                for _ in range(2):  # the second invocation tries again
                    answer, got, log = self.invoke(environment)
                    self.assertTrue(answer.is_error)
                    self.assertEqual(got["errorType"], kind)
                    self.assertIn(message, got["errorMessage"])
                    self.assertIn(printed, log.splitlines())

    def test_an_initialization_that_succeeds_later(self):
        environment = self.environment(bootstraps.BEGINS_LATER)
        self.assertTrue(self.invoke(environment)[0].is_error)
        self.assertFalse(self.invoke(environment)[0].is_error)

    def test_a_binary_that_cannot_be_run(self):
        for name, content in (("another architecture", b"\x7fELF" + bytes(60)), ("no file", None)):
            with self.subTest(name):
                code = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
                if content is not None:
                    (code / "bootstrap").write_bytes(content)
                    (code / "bootstrap").chmod(0o755)
                environment = Environment(code, {}, os.environ["PATH"], 128, "1")
                self.addCleanup(environment.close)
                environment.start()
                answer, got, _ = self.invoke(environment)
                self.assertTrue(answer.is_error)
                self.assertEqual(got["errorType"], "Runtime.InvalidEntrypoint")
                self.assertIn("bootstrap", got["errorMessage"])

    def test_a_process_that_is_never_ready(self):
        code = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        process = function_process.FunctionProcess(bootstraps.write(code, bootstraps.NEVER_READY), dict(os.environ))
        self.addCleanup(process.close)
        error = process.initialization_error(0.3)
        self.assertEqual(json.loads(error.payload)["errorType"], "Sandbox.Timedout")
        self.assertTrue(process.ended.is_set())

    def test_a_response_that_is_too_large(self):
        environment = self.environment()
        answer, got, during = self.invoke(environment, do="large", bytes=LARGEST_RESPONSE)
        self.assertTrue(answer.is_error)
        self.assertEqual(got["errorType"], "Function.ResponseSizeTooLarge")
        answer, _, after = self.invoke(environment, request_id="request-2", do="large", bytes=LARGEST_RESPONSE - 2)  # with its quotes just as much
        self.assertFalse(answer.is_error)
        self.assertIn("told 413", during + after)

    def test_a_stream_that_breaks_off_is_an_error(self):
        answer, log = self.environment().invoke("r", b'{"do":"broken-stream"}', "arn:f", "", 20)
        self.assertTrue(answer.is_error)
        self.assertEqual(answer.payload, b'{"half')

    def test_a_second_answer_is_refused(self):
        environment = self.environment()
        _, got, during = self.invoke(environment, do="twice")
        self.assertEqual(got, "first")
        _, _, after = self.invoke(environment, request_id="request-2")
        self.assertIn("second answer: 400", during + after)

    def test_extensions_are_refused(self):
        _, got, _ = self.invoke(self.environment(), do="extension")
        self.assertEqual(got["status"], 501)
        self.assertEqual(got["body"]["errorType"], "Extension.NotSupported")

    def test_close_while_an_invocation_runs(self):
        environment = self.environment()
        answers = []
        thread = threading.Thread(target=lambda: answers.append(environment.invoke("r", b'{"do":"sleep","seconds":60}', "arn:f", "", 50)))
        thread.start()
        time.sleep(0.2)
        environment.close()
        thread.join(10)
        self.assertFalse(thread.is_alive())
        self.assertTrue(answers[0][0].is_error)


def peak(log: str) -> int:
    return int(log.rsplit("Max Memory Used: ", 1)[1].split()[0])


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] != "Z"
    except OSError:
        return True


def gone(pid: int) -> bool:
    for _ in range(100):
        if not alive(pid):
            return True
        time.sleep(0.05)
    return False


if __name__ == "__main__":
    unittest.main()
