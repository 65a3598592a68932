package emulator

import (
	"context"
	"fmt"
	"time"

	"almanac/localstack/internal/instance"
	"almanac/localstack/internal/process"
)

// Issuer starts and stops the program that gives tokens to an instance's people, on a cloud that has no user pools.
type Issuer struct{ Instance instance.Instance }

// Running reports whether the recorded program lives.
func (s Issuer) Running() bool {
	rec, err := process.Load(s.Instance.IssuerRecord())
	return err == nil && rec.Alive()
}

// Build builds the program.
func (s Issuer) Build(ctx context.Context) error { return buildBeside(ctx, s.Instance, "issuer") }

func (s Issuer) beside() beside {
	i := s.Instance
	return beside{name: "issuer", record: i.IssuerRecord(), log: i.IssuerLog(), ports: []int{i.IssuerPort()}}
}

// Start starts the program unless it runs, and returns once it answers. It reads the file of people at each sign-in, so
// that they may be made later.
func (s Issuer) Start(ctx context.Context) (already bool, err error) {
	if s.Running() {
		return true, s.beside().waitReady(ctx)
	}
	i := s.Instance
	return false, s.beside().start(ctx, i, []string{
		"--listen", fmt.Sprintf("127.0.0.1:%d", i.IssuerPort()), "--users", i.Users(), "--key", i.IssuerKey(),
	})
}

// Stop ends the program.
func (s Issuer) Stop(ctx context.Context) (process.Outcome, error) {
	return process.Stop(ctx, s.Instance.IssuerRecord(), 10*time.Second)
}
