"""Functions for the tests: bootstraps in Python that speak the Runtime API as a real runtime does."""

import pathlib
import sys

_RUNTIME = """#!{python} -S
import http.client, json, os, signal, subprocess, sys, time
api = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])

def call(method, path, body=None, headers={{}}, **more):
    api.request(method, path, body, headers, **more)
    answer = api.getresponse()
    return answer, answer.read()

def next_event():
    answer, body = call("GET", "/2018-06-01/runtime/invocation/next")
    return answer.headers["Lambda-Runtime-Aws-Request-Id"], json.loads(body), answer.headers

def respond(request_id, value, kind="response"):
    return call("POST", "/2018-06-01/runtime/invocation/" + request_id + "/" + kind, json.dumps(value))

{body}
"""

# Does what its event tells it.
OBEDIENT = """
print("initialized", flush=True)
while True:
    request_id, event, headers = next_event()
    do = event.get("do")
    if do == "print":
        print(event["text"], flush=True)
    if do == "error":
        respond(request_id, {"errorType": "Told", "errorMessage": "told to fail"}, "error")
        continue
    if do == "exit":
        print("about to exit", flush=True)
        sys.exit(event["code"])
    if do == "signal":
        os.kill(os.getpid(), signal.SIGABRT)
    if do == "sleep":
        time.sleep(event["seconds"])
    if do == "child":
        child = subprocess.Popen(["sleep", "60"])
        respond(request_id, child.pid)
        continue
    if do == "allocate":
        block = bytearray(event["bytes"])
    if do == "large":
        answer, body = respond(request_id, "x" * event["bytes"])
        print("told", answer.status, flush=True)
        continue
    if do == "twice":
        respond(request_id, "first")
        answer, body = respond(request_id, "second")
        print("second answer:", answer.status, flush=True)
        continue
    if do == "broken-stream":
        def parts():
            yield b'{"half'
        api.putrequest("POST", "/2018-06-01/runtime/invocation/" + request_id + "/response")
        api.putheader("Transfer-Encoding", "chunked")
        api.putheader("Trailer", "Lambda-Runtime-Function-Error-Type")
        api.endheaders()
        api.send(b"6\\r\\n{\\"half\\r\\n0\\r\\nLambda-Runtime-Function-Error-Type: Told\\r\\n\\r\\n")
        api.getresponse().read()
        continue
    if do == "file":
        path = os.path.join(os.environ["TMPDIR"], "kept")
        before = os.path.exists(path)
        open(path, "w").close()
        respond(request_id, before)
        continue
    if do == "extension":
        answer, body = call("POST", "/2020-01-01/extension/register", "{}", {"Lambda-Extension-Name": "x"})
        respond(request_id, {"status": answer.status, "body": json.loads(body)})
        continue
    respond(request_id, {"event": event, "pid": os.getpid(), "env": dict(os.environ), "cwd": os.getcwd(), "headers": dict(headers)})
"""

# Reports that it cannot begin, as the runtimes of AWS do.
CANNOT_BEGIN = """
print("no settings", flush=True)
call("POST", "/2018-06-01/runtime/init/error", json.dumps({"errorType": "Told", "errorMessage": "no settings"}))
sys.exit(1)
"""

ENDS_AT_ONCE = "print('gone', flush=True); sys.exit(3)"

NEVER_READY = "time.sleep(60)"

# Cannot begin the first time, and can the second.
BEGINS_LATER = """
path = os.path.join(os.environ["TMPDIR"], "tried")
if not os.path.exists(path):
    open(path, "w").close()
    sys.exit(4)
""" + OBEDIENT


def write(folder: pathlib.Path, body: str) -> pathlib.Path:
    """Makes the folder a function's code."""
    bootstrap = folder / "bootstrap"
    bootstrap.write_text(_RUNTIME.format(python=sys.executable, body=body))
    bootstrap.chmod(0o755)
    return folder
