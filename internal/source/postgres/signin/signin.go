// Package signin finds out how to sign in to a PostgreSQL: by a secret of AWS Secrets Manager, or by a token of RDS IAM
// authentication.
package signin

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/rds/auth"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/smithy-go"

	"almanac/internal/failure"
	"almanac/internal/source/postgres"
)

// SecretsManager reads one secret's current value.
type SecretsManager interface {
	GetSecretValue(ctx context.Context, in *secretsmanager.GetSecretValueInput, opts ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error)
}

// Secrets keeps logins by the ARN of their secret for as long as the process lives: one is read again when it was
// refused, which is what its rotation comes to. It is safe for concurrent use.
type Secrets struct {
	API  SecretsManager
	mu   sync.Mutex
	kept map[string]postgres.Login
}

// Login signs in by a secret whose value is JSON as RDS and Secrets Manager make it, of which username and password are
// read: https://docs.aws.amazon.com/secretsmanager/latest/userguide/reference_secret_json_structure.html. The user is the
// secret's, since one that is rotated by alternating users names another each time; the host never is.
func (s *Secrets) Login(arn string) postgres.SignIn {
	return func(ctx context.Context, fresh bool) (postgres.Login, error) {
		s.mu.Lock()
		login, there := s.kept[arn]
		s.mu.Unlock()
		if there && !fresh {
			return login, nil
		}
		out, err := s.API.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &arn})
		if err != nil {
			return login, unreadable(arn, err)
		}
		if login, err = parse(arn, out); err != nil {
			return login, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.kept == nil {
			s.kept = map[string]postgres.Login{}
		}
		s.kept[arn] = login
		return login, nil
	}
}

// unreadable tells the refusals of Secrets Manager from what may pass:
// https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_GetSecretValue.html
func unreadable(arn string, err error) error {
	var answer smithy.APIError
	if errors.As(err, &answer) {
		switch answer.ErrorCode() {
		case "AccessDeniedException", "DecryptionFailure":
			return failure.Wrap(failure.SourceAccessDenied, err, "the secret %s may not be read: name it in the setting sourceSecrets, and its key, if it has one of its own, in sourceKeys", failure.Cut(arn, 200))
		case "ResourceNotFoundException":
			return failure.Wrap(failure.SourceUnknown, err, "there is no secret %s: correct the source's secret", failure.Cut(arn, 200))
		}
	}
	return failure.Wrap(failure.SourceUnavailable, err, "the secret %s could not be read", failure.Cut(arn, 200))
}

// parse reads a secret. Its errors hold nothing of it.
func parse(arn string, out *secretsmanager.GetSecretValueOutput) (postgres.Login, error) {
	var v struct {
		Username string `json:"username"`
		Password string `json:"password"`
	}
	if out.SecretString == nil || json.Unmarshal([]byte(*out.SecretString), &v) != nil || v.Username == "" || v.Password == "" {
		return postgres.Login{}, failure.New(failure.SourceAccessDenied, `the secret %s is not one of a database: its value must be a JSON object with the texts "username" and "password"`, failure.Cut(arn, 200))
	}
	return postgres.Login{User: v.Username, Password: v.Password}, nil
}

// Token signs in as a user by a token in place of a password, signed anew each time and good for 15 minutes. The database
// must have the user in its role rds_iam, and the functions the right rds-db:connect:
// https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/UsingWithRDS.IAMDBAuth.Connecting.html
func Token(cfg aws.Config, address, user string) postgres.SignIn {
	return func(ctx context.Context, _ bool) (postgres.Login, error) {
		token, err := auth.BuildAuthToken(ctx, address, cfg.Region, user, cfg.Credentials)
		if err != nil {
			return postgres.Login{}, failure.Wrap(failure.SourceUnavailable, err, "no token could be signed for the user %s of %s", failure.Cut(user, 80), address)
		}
		return postgres.Login{User: user, Password: token}, nil
	}
}
