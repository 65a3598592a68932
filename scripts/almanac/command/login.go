package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"almanac/scripts/almanac/settings"
)

func (p *Program) configure(_ context.Context, c *call) error {
	if c.outputs == "" {
		return usage("usage: almanac configure --outputs FILE [--stage STAGE]")
	}
	b, err := os.ReadFile(c.outputs)
	if err != nil {
		return err
	}
	stack, err := settings.FromOutputs(b, c.stage)
	if err != nil {
		return usage("%s: %v", c.outputs, err)
	}
	if old, err := p.folder.Stack(); err == nil && old != stack {
		if err := p.folder.Forget(); err != nil {
			return err
		}
	}
	if err := p.folder.SaveStack(stack); err != nil {
		return err
	}
	p.printf("%s: the API is %s\n", stack.Name, stack.API)
	return nil
}

// maxPassword is the longest password that is read, in bytes.
const maxPassword = 1024

func (p *Program) login(ctx context.Context, c *call) error {
	stack, err := p.folder.Stack()
	if err != nil {
		return err
	}
	if c.passwordStdin != (c.user != "") {
		return usage("login: --user and --password-stdin belong together; without both, the browser is used")
	}
	var tokens settings.Tokens
	if c.passwordStdin {
		b, err := io.ReadAll(io.LimitReader(p.In, maxPassword))
		if err != nil {
			return err
		}
		password := strings.TrimRight(string(b), "\r\n")
		if password == "" {
			return usage("login: standard input holds no password")
		}
		if tokens, err = p.signIn(stack).Password(ctx, c.user, password); err != nil {
			return p.refusedSignIn(err)
		}
	} else if tokens, err = p.signIn(stack).Browser(ctx, p.showSignIn); err != nil {
		return p.refusedSignIn(err)
	}
	if err := p.folder.SaveTokens(tokens); err != nil {
		return err
	}
	p.printf("Signed in to %s.\n", stack.Name)
	return nil
}

func (p *Program) showSignIn(address string) {
	fmt.Fprintf(p.Err, "Sign in at\n\n  %s\n\n", address)
	if err := p.Browse(address); err != nil {
		fmt.Fprintln(p.Err, "(no browser could be opened: copy the address)")
	}
}

func (p *Program) refusedSignIn(err error) error {
	return fmt.Errorf("%w: %w", settings.ErrNotSignedIn, err)
}
