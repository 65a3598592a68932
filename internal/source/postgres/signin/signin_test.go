package signin

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/smithy-go"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/source/postgres"
)

const arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:reports-AbCdEf"

type manager struct {
	value *string
	err   error
	asked []string
}

func (m *manager) GetSecretValue(_ context.Context, in *secretsmanager.GetSecretValueInput, _ ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error) {
	m.asked = append(m.asked, *in.SecretId)
	return &secretsmanager.GetSecretValueOutput{SecretString: m.value}, m.err
}

func TestASecretIsReadOnceAndAgainWhenItWasRefused(t *testing.T) {
	m := &manager{value: aws.String(`{"engine":"postgres","host":"elsewhere.example","username":"reports","password":"first","dbname":"x","port":5432}`)}
	s := &Secrets{API: m}
	signIn := s.Login(arn)
	for range 2 {
		if l, err := signIn(t.Context(), false); err != nil || l != (postgres.Login{User: "reports", Password: "first"}) {
			t.Fatalf("%v %v", l, err)
		}
	}
	if len(m.asked) != 1 || m.asked[0] != arn {
		t.Fatalf("asked for %v", m.asked)
	}
	m.value = aws.String(`{"username":"reports_clone","password":"second"}`)
	want := postgres.Login{User: "reports_clone", Password: "second"}
	if l, err := signIn(t.Context(), true); err != nil || l != want {
		t.Fatalf("%v %v", l, err)
	}
	// kept for every source with the secret, and for none with another
	if l, err := s.Login(arn)(t.Context(), false); err != nil || l != want || len(m.asked) != 2 {
		t.Fatalf("%v %v, asked %d times", l, err, len(m.asked))
	}
	m.err = errors.New("no route")
	if l, err := signIn(t.Context(), false); err != nil || l != want {
		t.Fatalf("%v %v", l, err)
	}
	_, err := s.Login(arn+"x")(t.Context(), false)
	failuretest.Want(t, err, failure.SourceUnavailable)
}

func TestSecretsThatCannotBeUsed(t *testing.T) {
	for name, row := range map[string]struct {
		m    manager
		code failure.Code
		says string
	}{
		"no right":        {manager{err: &smithy.GenericAPIError{Code: "AccessDeniedException"}}, failure.SourceAccessDenied, "sourceSecrets"},
		"no key":          {manager{err: &smithy.GenericAPIError{Code: "DecryptionFailure"}}, failure.SourceAccessDenied, "sourceKeys"},
		"not there":       {manager{err: &smithy.GenericAPIError{Code: "ResourceNotFoundException"}}, failure.SourceUnknown, "there is no secret " + arn},
		"throttled":       {manager{err: &smithy.GenericAPIError{Code: "ThrottlingException"}}, failure.SourceUnavailable, "could not be read"},
		"bytes":           {manager{}, failure.SourceAccessDenied, "JSON object"},
		"no JSON":         {manager{value: aws.String("hunter2")}, failure.SourceAccessDenied, "JSON object"},
		"cut off":         {manager{value: aws.String(`{"username":"u","password":"hunter2`)}, failure.SourceAccessDenied, "JSON object"},
		"no password":     {manager{value: aws.String(`{"username":"hunter2"}`)}, failure.SourceAccessDenied, "JSON object"},
		"no user":         {manager{value: aws.String(`{"password":"hunter2"}`)}, failure.SourceAccessDenied, "JSON object"},
		"a number":        {manager{value: aws.String(`{"username":"u","password":1}`)}, failure.SourceAccessDenied, "JSON object"},
		"a webhook's own": {manager{value: aws.String(`{"current":"whsec_hunter2"}`)}, failure.SourceAccessDenied, "JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (&Secrets{API: &row.m}).Login(arn)(t.Context(), false)
			f := failuretest.Want(t, err, row.code)
			if !strings.Contains(f.Message, row.says) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v", err)
			}
		})
	}
}

// The token is a presigned request without its scheme, for this user at this address and nothing else.
func TestToken(t *testing.T) {
	cfg := aws.Config{Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret-key", "session")}
	l, err := Token(cfg, "reports.example.com:5433", "almanac")(t.Context(), false)
	if err != nil || l.User != "almanac" {
		t.Fatalf("%v %v", l, err)
	}
	u, err := url.Parse("https://" + l.Password)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if u.Host != "reports.example.com:5433" || q.Get("Action") != "connect" || q.Get("DBUser") != "almanac" || q.Get("X-Amz-Expires") != "900" || q.Get("X-Amz-Security-Token") != "session" ||
		!strings.HasPrefix(q.Get("X-Amz-Credential"), "AKIDEXAMPLE/") || !strings.HasSuffix(q.Get("X-Amz-Credential"), "/eu-central-1/rds-db/aws4_request") || len(q.Get("X-Amz-Signature")) != 64 {
		t.Errorf("%s", l.Password)
	}
	cfg.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, errors.New("none") })
	_, err = Token(cfg, "reports.example.com:5433", "almanac")(t.Context(), false)
	failuretest.Want(t, err, failure.SourceUnavailable)
	_, err = Token(cfg, "reports.example.com", "almanac")(t.Context(), false)
	failuretest.Want(t, err, failure.SourceUnavailable)
}
