package emulator

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"almanac/localstack/internal/instance"
	"almanac/localstack/internal/process"
)

// LocalStackVersion is the version that localstack/requirements-localstack.txt pins, that localstack/executor was written
// for and that DIVERGENCES.md describes.
const LocalStackVersion = "4.9.2"

var localStack = kind{
	version: LocalStackVersion, health: "/_localstack/health",
	// Seven seconds are usual, and sometimes it hangs. It keeps nothing, so that killing it loses nothing.
	patience: 10 * time.Second,
	program: func(i instance.Instance) process.Program {
		return process.Program{
			Path: filepath.Join(i.Venv(), "bin", "python"), Args: []string{"-m", "process_executor"}, Env: localStackEnv(i, os.Getenv),
		}
	},
}

// localStackEnv is LocalStack's whole environment: https://docs.localstack.cloud/references/configuration/ . localstack/compose.yaml
// gives its container the same behaviour.
func localStackEnv(i instance.Instance, getenv func(string) string) []string {
	return append([]string{
		"PATH=" + getenv("PATH"),
		"HOME=" + i.Temp(),
		"LANG=C.UTF-8",
		"PYTHONUNBUFFERED=1",
		// Functions get folders for temporary files below this one.
		"TMPDIR=" + i.Temp(),
		"XDG_CACHE_HOME=" + i.Temp(),
		"FILESYSTEM_ROOT=" + i.State(),
		"PYTHONPATH=" + filepath.Join(i.Root, "localstack", "executor"),
		"PYTHONDONTWRITEBYTECODE=1", // the repository stays as it is
		fmt.Sprintf("GATEWAY_LISTEN=127.0.0.1:%d", i.Port),
		"OVERRIDE_IN_DOCKER=0", // it would take a machine that is a container itself for its own
		// It may ask nobody in the network: no usage reports, no certificate, no name server.
		"DISABLE_EVENTS=1", "SKIP_SSL_CERT_DOWNLOAD=1", "DNS_ADDRESS=0",
		"LAMBDA_RUNTIME_EXECUTOR=process",
		fmt.Sprintf("PROCESS_EXECUTOR_SMTP=127.0.0.1:%d", i.SMTPPort()),
		fmt.Sprintf("DYNAMODB_LOCAL_PORT=%d", i.DynamoDBPort()),
	}, localStackSettings(i)...)
}

// localStackSettings are those that the container in localstack/compose.yaml has too.
func localStackSettings(i instance.Instance) []string {
	return []string{
		// The address in function URLs and queue URLs. Names that end in .localhost are this machine's (RFC 6761).
		fmt.Sprintf("LOCALSTACK_HOST=localhost:%d", i.Port),
		"SQS_ENDPOINT_STRATEGY=path",
		"S3_SKIP_SIGNATURE_VALIDATION=0", // signed links end
		// This DynamoDB passes requests on to DynamoDB Local as they are.
		"PROVIDER_OVERRIDE_DYNAMODB=v2", "PROVIDER_OVERRIDE_DYNAMODBSTREAMS=v2", "DYNAMODB_IN_MEMORY=1", "DYNAMODB_SHARE_DB=1",
		"LAMBDA_EVENT_SOURCE_MAPPING_POLL_INTERVAL_SEC=0.05", "LAMBDA_EVENT_SOURCE_MAPPING_MAX_BACKOFF_ON_EMPTY_POLL_SEC=0.2",
		"LAMBDA_EVENT_SOURCE_MAPPING_MAX_BACKOFF_ON_ERROR_SEC=1",
		"LAMBDA_RETRY_BASE_DELAY=1",
	}
}
