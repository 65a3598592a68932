//go:build cloud

package store_test

import (
	"context"
	"os"
	"testing"
	"time"

	"almanac/internal/loopback"
	"almanac/internal/storetest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// runners are the DynamoDBs on loopback that the suite is run on: by name, the setting that holds the endpoint.
var runners = map[string]string{
	"emulator":       "ALMANAC_ENDPOINT",
	"dynamodb local": "ALMANAC_DYNAMODB_LOCAL",
}

func TestConformanceOnLoopback(t *testing.T) {
	for name, setting := range runners {
		t.Run(name, func(t *testing.T) {
			endpoint := os.Getenv(setting)
			if endpoint == "" {
				t.Fatalf(`%s is not set: start the local cloud, then eval "$(cloud env)"`, setting)
			}
			storetest.Run(t, harness(client(endpoint)))
		})
	}
}

// client speaks to a DynamoDB that lets everybody in. It tries once, so that the suite sees each answer as it is.
func client(endpoint string) *dynamodb.Client {
	return dynamodb.NewFromConfig(aws.Config{
		Region: "us-east-1", BaseEndpoint: &endpoint, HTTPClient: loopback.Client(30 * time.Second),
		Retryer: func() aws.Retryer { return aws.NopRetryer{} },
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	})
}
