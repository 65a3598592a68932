"""What LocalStack finds by its entry points."""

import os
import pathlib

from localstack import config
from localstack.runtime import hooks
from localstack.services.lambda_.invocation.lambda_models import FunctionVersion, InvocationResult
from localstack.services.lambda_.invocation.plugins import RuntimeExecutorPlugin
from localstack.services.lambda_.invocation.runtime_executor import RuntimeExecutor

from process_executor import loopback, mail, refusals
from process_executor.environment import Environment

# The setting with the SMTP server, host:port.
SMTP_SETTING = "PROCESS_EXECUTOR_SMTP"


class ProcessExecutor(RuntimeExecutor):
    """LocalStack's view of one execution environment."""

    def __init__(self, id: str, function_version: FunctionVersion) -> None:
        super().__init__(id, function_version)
        self._environment: Environment | None = None

    def start(self, env_vars: dict[str, str]) -> None:
        made = self.function_version.config
        self._environment = Environment(
            made.code.get_unzipped_code_location(), env_vars, os.environ["PATH"], made.memory_size, self.function_version.id.qualifier
        )
        self._environment.start()

    def stop(self) -> None:
        if self._environment:
            self._environment.close()

    def invoke(self, payload: dict[str, str]) -> InvocationResult:
        request_id = payload["invoke-id"]
        answer, logs = self._environment.invoke(
            request_id, payload["payload"].encode(), payload["invoked-function-arn"], payload.get("trace-id", ""),
            self.function_version.config.timeout,
        )
        return InvocationResult(request_id, answer.payload, is_error=answer.is_error, logs=logs)

    def get_address(self) -> str:
        return "127.0.0.1"

    def get_endpoint_from_executor(self) -> str:
        return "127.0.0.1"

    def get_runtime_endpoint(self) -> str:
        """Unused: a process speaks to its own Runtime API, not to LocalStack's program inside of a container."""
        return f"http://127.0.0.1:{config.GATEWAY_LISTEN[0].port}/_localstack_lambda/{self.id}"

    def get_logs(self) -> str:
        return "\n".join(self._environment.lines()) if self._environment else ""

    @classmethod
    def prepare_version(cls, function_version: FunctionVersion) -> None:
        made = function_version.config
        refusals.check_configuration(made.package_type, made.runtime, len(made.layers or []))
        made.code.prepare_for_execution()
        refusals.check_code(pathlib.Path(made.code.get_unzipped_code_location()))

    @classmethod
    def cleanup_version(cls, function_version: FunctionVersion) -> None:
        """Nothing to do: LocalStack removes the code itself."""


class ProcessExecutorPlugin(RuntimeExecutorPlugin):
    name = "process"

    def load(self, *_: object, **__: object) -> type[RuntimeExecutor]:
        return ProcessExecutor


@hooks.on_infra_start()
def listen_on_loopback() -> None:
    loopback.only()


@hooks.on_infra_start()
def send_mail_to_smtp() -> None:
    if server := os.environ.get(SMTP_SETTING):
        mail.install(server, os.environ.get("AWS_DEFAULT_REGION", "us-east-1"))


@hooks.on_infra_start()
def use_running_dynamodb_local() -> None:
    """Leaves the DynamoDB Local on DYNAMODB_LOCAL_PORT to whoever started it. LocalStack would fetch one from the network
    and start it in a session of its own, in which a stop that must end everything could not find it."""
    if not config.DYNAMODB_LOCAL_PORT:
        return
    from localstack.services.dynamodb.server import DynamodbServer

    DynamodbServer.start_dynamodb = lambda self: True
    DynamodbServer.stop_dynamodb = lambda self: None
