package emulator

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"almanac/localstack/internal/instance"
	"almanac/localstack/internal/process"
)

// MiniStackVersion is the version that localstack/requirements.txt pins and that DIVERGENCES.md was written for.
const MiniStackVersion = "1.5.33"

var miniStack = kind{
	version: MiniStackVersion, health: "/_ministack/health",
	patience: 30 * time.Second, // it writes its state to disk then
	program: func(i instance.Instance) process.Program {
		return process.Program{Path: filepath.Join(i.Venv(), "bin", "ministack"), Env: miniStackEnv(i, os.Getenv)}
	},
}

// miniStackEnv is the emulator's whole environment. Functions inherit it (DIVERGENCES.md), so nothing of the person's
// own environment goes in but what a process needs to run.
func miniStackEnv(i instance.Instance, getenv func(string) string) []string {
	env := []string{
		"PATH=" + getenv("PATH"),
		"HOME=" + i.Temp(),
		"LANG=C.UTF-8",
		"PYTHONUNBUFFERED=1",
		// Function processes, unpacked code and the emulator's pid file stay inside the instance.
		"TMPDIR=" + i.Temp(),
		"AUTH=true", // signatures and IAM policies are enforced
		"BIND_HOST=127.0.0.1",
		fmt.Sprintf("GATEWAY_PORT=%d", i.Port),
		fmt.Sprintf("SMTP_HOST=127.0.0.1:%d", i.SMTPPort()),
		// Reaches the functions, so that their SDK clients come back here.
		"AWS_ENDPOINT_URL=" + i.Endpoint(),
		"MINISTACK_REGION=" + instance.Region,
		"MINISTACK_ACCOUNT_ID=" + instance.Account,
		// State is kept over scripts/down and scripts/up. It is written at a clean stop only.
		"PERSIST_STATE=1", "STATE_DIR=" + i.State(),
		"S3_PERSIST=1", "S3_DATA_DIR=" + i.Objects(),
		// Listeners on fixed ports that nobody here uses, and that two instances would quarrel about.
		"SFTP_ENABLED=0", "IOT_MTLS_ENABLED=0",
	}
	return env
}
