// Package seed puts into a deployed local cloud what the stack itself does not hold: people who may sign in, the demo's
// data, the webhook's secret and the sender's right to send mail. Each part may be done again without harm.
package seed

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider"
	cognito "github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	secretsmanagertypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/aws-sdk-go-v2/service/ses"

	"almanac/localstack/internal/deploy"
	"almanac/localstack/internal/instance"
	"almanac/localstack/internal/rawaws"
	"almanac/localstack/internal/step"
)

// Outputs of the stack that are read here.
const (
	OutPool    = "UserPoolId"
	OutBucket  = "DataBucket"
	OutSecrets = "SecretPrefix"
	OutSender  = "MailFrom"
)

// Names in the deployed app that the demo's definitions use.
const (
	FlightsKey  = "flights.sqlite" // the demo data's keys in the data bucket
	WeatherKey  = "weather.sqlite"
	DemoWebhook = "demo" // the webhook secret's name, behind the stack's prefix
)

// User is a person of the demo.
type User struct {
	Name     string `json:"name"`
	Group    string `json:"group"`
	Password string `json:"password"`
}

// Seeder seeds one instance.
type Seeder struct {
	Instance instance.Instance
	Outputs  deploy.Outputs
	HTTP     *http.Client
	Report   *step.Reporter
}

func (s Seeder) config() aws.Config {
	return aws.Config{
		Region: instance.Region, BaseEndpoint: aws.String(s.Instance.Endpoint()), HTTPClient: s.HTTP,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	}
}

func (s Seeder) raw() rawaws.Client {
	return rawaws.Client{
		Endpoint: s.Instance.Endpoint(), Region: instance.Region, HTTP: s.HTTP, Now: time.Now,
		Credentials: aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"},
	}
}

// All does every part.
func (s Seeder) All(ctx context.Context) error {
	parts := []struct {
		name string
		do   func(context.Context) (string, error)
	}{
		{"make the demo's users", s.Users},
		{"upload the demo data", s.Data},
		{"upload the demo's weather, of which readings are missing", s.IncompleteWeather},
		{"store the webhook's secret", s.Secret},
		{"verify the sender of mail", s.Mail},
	}
	for _, p := range parts {
		if err := s.Report.RunNote(p.name, func() (string, error) { return p.do(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

// Users makes one user per role with a password of this instance; the passwords are kept in a file that only its owner
// reads.
func (s Seeder) Users(ctx context.Context) (string, error) {
	if s.Instance.Cloud == instance.LocalStack { // its issuer reads the file; there is no user pool
		_, err := s.passwords()
		return "passwords in " + s.Instance.Users(), err
	}
	pool, err := s.Outputs.Get(OutPool)
	if err != nil {
		return "", err
	}
	users, err := s.passwords()
	if err != nil {
		return "", err
	}
	client := cognitoidentityprovider.NewFromConfig(s.config())
	for _, u := range users {
		_, err := client.AdminCreateUser(ctx, &cognitoidentityprovider.AdminCreateUserInput{
			UserPoolId: &pool, Username: &u.Name, MessageAction: cognito.MessageActionTypeSuppress,
			UserAttributes: []cognito.AttributeType{
				{Name: aws.String("email"), Value: aws.String(u.Name)}, {Name: aws.String("email_verified"), Value: aws.String("true")},
			},
		})
		if exists := new(cognito.UsernameExistsException); err != nil && !errors.As(err, &exists) {
			return "", fmt.Errorf("create user %s: %w", u.Name, err)
		}
		if _, err := client.AdminSetUserPassword(ctx, &cognitoidentityprovider.AdminSetUserPasswordInput{
			UserPoolId: &pool, Username: &u.Name, Password: &u.Password, Permanent: true,
		}); err != nil {
			return "", fmt.Errorf("set the password of %s: %w", u.Name, err)
		}
		if _, err := client.AdminAddUserToGroup(ctx, &cognitoidentityprovider.AdminAddUserToGroupInput{
			UserPoolId: &pool, Username: &u.Name, GroupName: &u.Group,
		}); err != nil {
			return "", fmt.Errorf("put user %s into group %s: %w", u.Name, u.Group, err)
		}
	}
	return "passwords in " + s.Instance.Users(), nil
}

// passwords reads the instance's users, or makes them with fresh passwords.
func (s Seeder) passwords() ([]User, error) {
	var users []User
	text, err := os.ReadFile(s.Instance.Users())
	if err == nil {
		if err := json.Unmarshal(text, &users); err != nil {
			return nil, step.Fail(err, fmt.Sprintf("%s is no list of users: %v", s.Instance.Users(), err), "delete it and run scripts/up: the users get new passwords")
		}
		return users, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, group := range []string{"admin", "operator", "viewer"} {
		// Letters of each kind, a digit and a sign satisfy any pool's policy; rand.Text has 128 random bits.
		users = append(users, User{Name: group + "@example.com", Group: group, Password: "Aa1-" + rand.Text()})
	}
	if text, err = json.MarshalIndent(users, "", "  "); err != nil {
		return nil, err
	}
	return users, os.WriteFile(s.Instance.Users(), append(text, '\n'), 0o600)
}

// Data uploads the demo's SQLite file unless the bucket has the same bytes already: a new upload is a new version of the
// source, and would be fetched anew by every function.
func (s Seeder) Data(ctx context.Context) (string, error) {
	return s.upload(ctx, s.Instance.FlightsDB(), FlightsKey, false)
}

// IncompleteWeather uploads the weather as it is before the demo mends it; not over one that was mended.
func (s Seeder) IncompleteWeather(ctx context.Context) (string, error) {
	return s.upload(ctx, s.Instance.IncompleteWeatherDB(), WeatherKey, true)
}

// Weather uploads the whole weather.
func (s Seeder) Weather(ctx context.Context) (string, error) {
	return s.upload(ctx, s.Instance.WeatherDB(), WeatherKey, false)
}

// upload uploads a data file unless the bucket has the same bytes already; or, where keep says so, some under this key.
func (s Seeder) upload(ctx context.Context, path, key string, keep bool) (string, error) {
	bucket, err := s.Outputs.Get(OutBucket)
	if err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", step.Fail(err, err.Error(), "run scripts/up, which makes the demo data")
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", err
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	client := s3.NewFromConfig(s.config(), func(o *s3.Options) { o.UsePathStyle = true })
	head, err := client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &bucket, Key: &key})
	if absent := new(s3types.NotFound); err != nil && !errors.As(err, &absent) {
		return "", fmt.Errorf("look for %s in bucket %s: %w", key, bucket, err)
	}
	if err == nil && (keep || head.Metadata["sha256"] == sum) {
		return "there already", nil
	}
	_, err = client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &bucket, Key: &key, Body: f, Metadata: map[string]string{"sha256": sum}, ContentType: aws.String("application/vnd.sqlite3"),
	})
	if err != nil {
		return "", fmt.Errorf("upload %s to bucket %s: %w", key, bucket, err)
	}
	return fmt.Sprintf("s3://%s/%s", bucket, key), nil
}

// Secret stores the secret that webhooks are signed with and that the webhook receiver verifies with.
func (s Seeder) Secret(ctx context.Context) (string, error) {
	prefix, err := s.Outputs.Get(OutSecrets)
	if err != nil {
		return "", err
	}
	id := prefix + DemoWebhook
	text, err := os.ReadFile(s.Instance.WebhookSecret())
	if err != nil {
		return "", step.Fail(err, err.Error(), "run scripts/up, which makes the webhook's secret")
	}
	want := strings.TrimSpace(string(text))
	client := secretsmanager.NewFromConfig(s.config())
	have, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &id})
	var missing *secretsmanagertypes.ResourceNotFoundException
	switch {
	case errors.As(err, &missing):
		_, err = client.CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: &id, SecretString: &want})
	case err == nil && aws.ToString(have.SecretString) == want:
		return "there already", nil
	case err == nil:
		_, err = client.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: &id, SecretString: &want})
	}
	if err != nil {
		return "", fmt.Errorf("store secret %s: %w", id, err)
	}
	return id, nil
}

// Mail verifies the sender's domain and puts the account into SES's sandbox, where mail to an address of any other
// domain is refused as AWS does it. So the demo's refused recipient is refused by the mail service itself.
func (s Seeder) Mail(ctx context.Context) (string, error) {
	sender, err := s.Outputs.Get(OutSender)
	if err != nil {
		return "", err
	}
	_, domain, ok := strings.Cut(sender, "@")
	if !ok {
		return "", fmt.Errorf("the stack's sender %q is no e-mail address", sender)
	}
	client := ses.NewFromConfig(s.config())
	if _, err := client.VerifyDomainIdentity(ctx, &ses.VerifyDomainIdentityInput{Domain: &domain}); err != nil {
		return "", fmt.Errorf("verify domain %s: %w", domain, err)
	}
	if _, err := client.VerifyEmailIdentity(ctx, &ses.VerifyEmailIdentityInput{EmailAddress: &sender}); err != nil {
		return "", fmt.Errorf("verify address %s: %w", sender, err)
	}
	if s.Instance.Cloud != instance.LocalStack { // whose account is always in the sandbox: localstack/executor
		err := s.raw().REST(ctx, "ses", http.MethodPost, "/v2/email/account/details", map[string]any{
			"MailType": "TRANSACTIONAL", "WebsiteURL": "https://" + domain, "ProductionAccessEnabled": false,
		}, nil)
		if err != nil {
			return "", fmt.Errorf("put the mail account into the sandbox: %w", err)
		}
	}
	return "only addresses at " + domain + " get mail", nil
}
