// Package settings keeps what the command line knows between calls, in a folder of its own: where the API is, and the
// tokens of whoever is signed in.
package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Folder is the configuration folder.
type Folder string

// Stack is what the command line needs of a deployed stack.
type Stack struct {
	Name     string `json:"stack"`
	API      string `json:"api"`       // base address, without a trailing slash
	SignIn   string `json:"sign_in"`   // where /oauth2/authorize and /oauth2/token are
	Cognito  string `json:"cognito"`   // the user pools' own API, for sign-in by password; empty where the issuer is no user pool
	ClientID string `json:"client_id"` // the public client that tokens are for
}

// Tokens are a sign-in.
type Tokens struct {
	Access  string    `json:"access_token"`
	Refresh string    `json:"refresh_token"`
	Expires time.Time `json:"expires"`
}

const (
	stackFile  = "stack.json"
	tokensFile = "tokens.json"
)

// ErrNotConfigured and ErrNotSignedIn say which command comes first.
var (
	ErrNotConfigured = errors.New("no stack is configured; run: almanac configure --outputs FILE (the file that `cdk deploy --outputs-file FILE` wrote)")
	ErrNotSignedIn   = errors.New("nobody is signed in; run: almanac login")
)

// Stack reads the configured stack, or ErrNotConfigured.
func (f Folder) Stack() (Stack, error) {
	var s Stack
	err := f.read(stackFile, &s)
	if errors.Is(err, fs.ErrNotExist) {
		return s, ErrNotConfigured
	}
	return s, err
}

// SaveStack writes it.
func (f Folder) SaveStack(s Stack) error { return f.write(stackFile, s) }

// Tokens reads the sign-in, or ErrNotSignedIn.
func (f Folder) Tokens() (Tokens, error) {
	var t Tokens
	err := f.read(tokensFile, &t)
	if errors.Is(err, fs.ErrNotExist) || err == nil && t.Access == "" {
		return t, ErrNotSignedIn
	}
	return t, err
}

// SaveTokens writes it, readable by its owner only.
func (f Folder) SaveTokens(t Tokens) error { return f.write(tokensFile, t) }

// Forget removes the sign-in: tokens of one stack must not be sent to another.
func (f Folder) Forget() error {
	err := os.Remove(filepath.Join(string(f), tokensFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (f Folder) read(name string, into any) error {
	path := filepath.Join(string(f), name)
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%s cannot be read (%w); remove it and run configure or login again", path, err)
	}
	return nil
}

// write replaces a file as a whole, so that a call that is killed leaves the old one.
func (f Folder) write(name string, v any) error {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	t, err := os.CreateTemp(string(f), name+".*") // 0600 by its own promise
	if err != nil {
		return err
	}
	_, err = t.Write(append(b, '\n'))
	err = errors.Join(err, t.Close())
	if err == nil {
		err = os.Rename(t.Name(), filepath.Join(string(f), name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(t.Name()))
	}
	return nil
}

const stackPrefix = "Almanac-"

// FromOutputs finds the stack in the file that `cdk deploy --outputs-file` writes. stage may be empty where the file
// holds one stack.
func FromOutputs(file []byte, stage string) (Stack, error) {
	var stacks map[string]map[string]string
	if err := json.Unmarshal(file, &stacks); err != nil {
		return Stack{}, fmt.Errorf("the outputs are no JSON object of stacks: %w", err)
	}
	var names []string
	for name := range stacks {
		if s, ok := strings.CutPrefix(name, stackPrefix); ok && (stage == "" || s == stage) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	switch len(names) {
	case 0:
		return Stack{}, fmt.Errorf("the outputs hold no stack %s%s", stackPrefix, or(stage, "<stage>"))
	case 1:
	default:
		return Stack{}, fmt.Errorf("the outputs hold %s; say which with --stage", strings.Join(names, ", "))
	}
	out := stacks[names[0]]
	s := Stack{Name: names[0], API: strings.TrimRight(out["ApiUrl"], "/"), SignIn: strings.TrimRight(out["SignInUrl"], "/")}
	for name, value := range map[string]string{"ApiUrl": s.API, "SignInUrl": s.SignIn} {
		if u, err := url.Parse(value); err != nil || u.Host == "" || u.Scheme != "https" && !local(u.Hostname()) {
			return s, fmt.Errorf("stack %s: output %s is %q; want an https address", s.Name, name, value)
		}
	}
	s.ClientID, _, _ = strings.Cut(or(out["UserPoolClientId"], out["Audience"]), ",")
	if s.ClientID == "" {
		return s, fmt.Errorf("stack %s has neither an output UserPoolClientId nor an output Audience: whom would tokens be for?", s.Name)
	}
	s.Cognito = cognito(s.SignIn, out["UserPoolId"])
	return s, nil
}

// cognito is where a user pool takes passwords.
func cognito(signIn, pool string) string {
	if pool == "" {
		return ""
	}
	if u, err := url.Parse(signIn); err == nil && local(u.Hostname()) {
		return signIn
	}
	// https://docs.aws.amazon.com/general/latest/gr/cognito_identity.html: a pool's id begins with its region.
	region, _, _ := strings.Cut(pool, "_")
	return "https://cognito-idp." + region + ".amazonaws.com"
}

func local(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || strings.HasSuffix(host, ".localhost")
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
