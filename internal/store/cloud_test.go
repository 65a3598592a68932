//go:build cloud

package store_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"almanac/internal/storetest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// runners are the DynamoDBs on loopback that the suite is run on: by name, the setting that holds the endpoint.
var runners = map[string]string{
	"emulator": "ALMANAC_ENDPOINT",
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
		Region: "us-east-1", BaseEndpoint: &endpoint, HTTPClient: &http.Client{Timeout: 30 * time.Second, Transport: ownBody{}},
		Retryer: func() aws.Retryer { return aws.NopRetryer{} },
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	})
}

// ownBody hands the transport a body that nobody else closes. The SDK closes the request's body when the answer's head is
// there (smithy-go, transport/http/client.go); a server on loopback can answer before the transport has seen the body's
// end, which then takes the close for a failed upload and cuts the connection.
type ownBody struct{}

func (ownBody) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body == nil {
		return http.DefaultTransport.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	req.Body.Close() // a RoundTripper closes the body, on errors too
	if err != nil {
		return nil, err
	}
	out := req.Clone(req.Context())
	out.Body = io.NopCloser(bytes.NewReader(body))
	return http.DefaultTransport.RoundTrip(out)
}
