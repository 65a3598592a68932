// Package dynamodblocal starts and stops AWS's own DynamoDB Local: alone for the store's conformance suite, and beside
// LocalStack, which keeps its tables in it.
package dynamodblocal

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"almanac/localstack/internal/instance"
	"almanac/localstack/internal/process"
	"almanac/localstack/internal/step"
)

// Version is the one that localstack/dynamodb-local/pom.xml pins and that DIVERGENCES.md was written for.
const Version = "2.6.1"

const (
	ready    = 60 * time.Second // a start takes one second on an idle machine
	patience = 5 * time.Second  // it keeps nothing, so there is nothing that a stop would wait for
)

// Port is the usual one of the DynamoDB Local that is started alone.
const Port = 4870

// Server is one DynamoDB Local. It keeps everything in memory: a stop empties it. It accepts any credentials, and it
// listens on every address of the machine, since it has no setting for that.
type Server struct {
	Port   int
	Jars   string // the folder of Jars
	Dir    string // its working folder
	Record string
	Log    string
	Client *http.Client
}

// Jars is where DynamoDB Local is installed, for all instances.
func Jars(root string) string { return filepath.Join(root, ".local", "dynamodb-local") }

// Alone gives the one that belongs to no instance.
func Alone(root string, port int, client *http.Client) Server {
	folder := filepath.Join(root, ".local", "dynamodb")
	return Server{
		Port: port, Jars: Jars(root), Dir: folder, Client: client,
		Record: filepath.Join(folder, "run", "dynamodb-local.json"), Log: filepath.Join(folder, "logs", "dynamodb-local.log"),
	}
}

// Beside gives the one that keeps an instance's tables.
func Beside(i instance.Instance, client *http.Client) Server {
	return Server{Port: i.DynamoDBPort(), Jars: Jars(i.Root), Dir: i.Folder(), Record: i.DynamoDBRecord(), Log: i.DynamoDBLog(), Client: client}
}

// Endpoint is its address.
func (s Server) Endpoint() string { return fmt.Sprintf("http://127.0.0.1:%d", s.Port) }

// Running reports whether the recorded process lives.
func (s Server) Running() bool {
	r, err := process.Load(s.Record)
	return err == nil && r.Alive()
}

// Start starts it unless it runs, and returns once it answers.
func (s Server) Start(ctx context.Context) (already bool, err error) {
	if r, err := process.Load(s.Record); err == nil && r.Alive() {
		if r.Port != s.Port {
			return false, step.Fail(nil, fmt.Sprintf("DynamoDB Local runs on port %d already, not on %d", r.Port, s.Port), "stop it first: .local/bin/cloud dynamodb stop")
		}
		return true, s.waitReady(ctx)
	}
	if _, err := os.Stat(filepath.Join(s.Jars, "DynamoDBLocal-"+Version+".jar")); err != nil {
		return false, step.Fail(err, "DynamoDB Local "+Version+" is not in "+s.Jars, "run scripts/up, or .local/bin/cloud dynamodb start: both install it")
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return false, err
	}
	if _, err := process.Start(s.program(os.Getenv("PATH")), s.Record); err != nil {
		return false, step.Fail(err, err.Error(), "read its log below; Java 17 or later must be on PATH").WithLog(process.Tail(s.Log, 15))
	}
	return false, s.waitReady(ctx)
}

// program is its command line, as
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/DynamoDBLocal.UsageNotes.html has it.
func (s Server) program(path string) process.Program {
	return process.Program{
		Name: "DynamoDB Local", Path: "/usr/bin/env", Dir: s.Dir, Log: s.Log, Port: s.Port,
		Env: []string{"PATH=" + path, "HOME=" + s.Dir, "LANG=C.UTF-8"},
		Args: []string{
			"java", "-Xmx256m", "-XX:TieredStopAtLevel=1", // it lives for minutes: the quick compiler alone starts faster
			"-Djava.library.path=" + s.Jars, "-cp", filepath.Join(s.Jars, "*"), "com.amazonaws.services.dynamodbv2.local.main.ServerRunner",
			"-inMemory", "-sharedDb", "-disableTelemetry", "-port", fmt.Sprint(s.Port),
		},
	}
}

// Stop ends it.
func (s Server) Stop(ctx context.Context) (process.Outcome, error) {
	return process.Stop(ctx, s.Record, patience)
}

func (s Server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ready)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error // what it said last, while there was time to ask: that tells more than the end of the time
	for {
		err := s.ask(ctx)
		if err == nil {
			return s.checkVersion()
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if !s.Running() {
			return step.Fail(err, "DynamoDB Local ended", "read its log below; Java 17 or later must be on PATH (on Debian and Ubuntu: apt-get install openjdk-17-jre-headless)").
				WithLog(process.Tail(s.Log, 15))
		}
		select {
		case <-ctx.Done():
			return step.Fail(last, fmt.Sprintf("DynamoDB Local at %s did not answer within %s: %v", s.Endpoint(), ready, last), "its log is "+s.Log).WithLog(process.Tail(s.Log, 15))
		case <-tick.C:
		}
	}
}

// ask lists its tables. Any credentials do, and the signature is not looked at.
func (s Server) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Endpoint(), strings.NewReader("{}"))
	if err != nil {
		return err
	}
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810.ListTables")
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/"+instance.Region+"/dynamodb/aws4_request, SignedHeaders=host, Signature=none")
	res, err := s.Client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var answer struct{ TableNames *[]string }
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&answer); err != nil || answer.TableNames == nil {
		return fmt.Errorf("ListTables answers %s with no list of tables: %v", res.Status, err)
	}
	return nil
}

// checkVersion reads the version from what it printed at its start.
func (s Server) checkVersion() error {
	text, err := os.ReadFile(s.Log)
	if err != nil {
		return err
	}
	printed := ""
	for line := range strings.Lines(string(text)) { // the log is appended to: the last start counts
		if version, ok := strings.CutPrefix(line, "Version:"); ok {
			printed = strings.TrimSpace(version)
		}
	}
	if printed != Version {
		return step.Fail(nil, fmt.Sprintf("the DynamoDB Local that answers says that it is version %q, %s is pinned", printed, Version),
			"remove "+s.Jars+" and run the same command again")
	}
	return nil
}
