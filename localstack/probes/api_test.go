//go:build cloud

package probes

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider"
	cognito "github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// people makes a user pool with one user in the group "admin" and gives the pool, its client and the user's tokens.
func people(t *testing.T) (pool, clientID string, tokens *cognito.AuthenticationResultType) {
	t.Helper()
	c := cognitoidentityprovider.NewFromConfig(config())
	made, err := c.CreateUserPool(t.Context(), &cognitoidentityprovider.CreateUserPoolInput{PoolName: aws.String(name(t, ""))})
	if err != nil {
		t.Fatal(err)
	}
	pool = *made.UserPool.Id
	cl, err := c.CreateUserPoolClient(t.Context(), &cognitoidentityprovider.CreateUserPoolClientInput{
		UserPoolId: &pool, ClientName: aws.String("probe"), ExplicitAuthFlows: []cognito.ExplicitAuthFlowsType{cognito.ExplicitAuthFlowsTypeAllowUserPasswordAuth},
	})
	if err != nil {
		t.Fatal(err)
	}
	clientID = *cl.UserPoolClient.ClientId
	user, password := aws.String("person"), aws.String("Aa1-"+run+run)
	if _, err := c.CreateGroup(t.Context(), &cognitoidentityprovider.CreateGroupInput{UserPoolId: &pool, GroupName: aws.String("admin")}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AdminCreateUser(t.Context(), &cognitoidentityprovider.AdminCreateUserInput{UserPoolId: &pool, Username: user, MessageAction: cognito.MessageActionTypeSuppress}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AdminSetUserPassword(t.Context(), &cognitoidentityprovider.AdminSetUserPasswordInput{UserPoolId: &pool, Username: user, Password: password, Permanent: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AdminAddUserToGroup(t.Context(), &cognitoidentityprovider.AdminAddUserToGroupInput{UserPoolId: &pool, Username: user, GroupName: aws.String("admin")}); err != nil {
		t.Fatal(err)
	}
	signedIn, err := c.InitiateAuth(t.Context(), &cognitoidentityprovider.InitiateAuthInput{
		ClientId: &clientID, AuthFlow: cognito.AuthFlowTypeUserPasswordAuth, AuthParameters: map[string]string{"USERNAME": *user, "PASSWORD": *password},
	})
	if err != nil {
		t.Fatal(err)
	}
	return pool, clientID, signedIn.AuthenticationResult
}

// makeAPI makes an HTTP API whose one route needs a token of the pool for the audience, and gives its address.
func makeAPI(t *testing.T, pool, audience string) string {
	t.Helper()
	f := name(t, "-f")
	makeFunction(t, f, nil)
	var api struct {
		ID string `json:"apiId"`
	}
	call := func(path string, in, out any) {
		t.Helper()
		if err := raw().REST(t.Context(), "apigateway", http.MethodPost, path, in, out); err != nil {
			t.Fatalf("POST %s: %v", path, err)
		}
	}
	call("/v2/apis", map[string]any{"name": name(t, ""), "protocolType": "HTTP"}, &api)
	var authorizer struct {
		ID string `json:"authorizerId"`
	}
	call("/v2/apis/"+api.ID+"/authorizers", map[string]any{
		"name": "people", "authorizerType": "JWT", "identitySource": []string{"$request.header.Authorization"},
		"jwtConfiguration": map[string]any{"issuer": "https://cognito-idp." + region + ".amazonaws.com/" + pool, "audience": []string{audience}},
	}, &authorizer)
	var integration struct {
		ID string `json:"integrationId"`
	}
	call("/v2/apis/"+api.ID+"/integrations", map[string]any{
		"integrationType": "AWS_PROXY", "payloadFormatVersion": "2.0", "integrationUri": fmt.Sprintf("arn:aws:lambda:%s:%s:function:%s", region, account, f),
	}, &integration)
	call("/v2/apis/"+api.ID+"/routes", map[string]any{"routeKey": "GET /closed", "target": "integrations/" + integration.ID, "authorizationType": "JWT", "authorizerId": authorizer.ID}, nil)
	call("/v2/apis/"+api.ID+"/routes", map[string]any{"routeKey": "ANY /open/{token}", "target": "integrations/" + integration.ID}, nil)
	call("/v2/apis/"+api.ID+"/stages", map[string]any{"stageName": "$default", "autoDeploy": true}, nil)
	u, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("http://%s.execute-api.localhost:%s", api.ID, u.Port())
}

func get(t *testing.T, address, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func TestHTTPAPIAuthorizer(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	pool, clientID, tokens := people(t)
	address := makeAPI(t, pool, clientID)
	forged := func(token string) string {
		parts := strings.Split(token, ".")
		return parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2]))
	}
	for _, c := range []struct {
		name, token string
		want        int
	}{
		{"no token", "", 401}, {"no JWT", "abc", 401}, {"a forged signature", forged(*tokens.AccessToken), 401},
		{"an access token, whose client_id is the audience", *tokens.AccessToken, 200}, {"an id token, whose aud is the audience", *tokens.IdToken, 200},
	} {
		if got, body := get(t, address+"/closed", c.token); got != c.want {
			unlike(t, "%s: %d %s, want %d", c.name, got, body, c.want)
		}
	}
	_, body := get(t, address+"/closed", *tokens.AccessToken)
	var event struct {
		Version string
		Context struct {
			Authorizer struct {
				JWT struct{ Claims map[string]any }
			}
			HTTP struct{ Method, Path, SourceIP string }
		} `json:"requestContext"`
		Path string `json:"rawPath"`
	}
	if err := json.Unmarshal([]byte(body), &event); err != nil {
		t.Fatal(err)
	}
	if event.Version != "2.0" || event.Path != "/closed" || event.Context.HTTP.Method != "GET" || event.Context.HTTP.SourceIP == "" {
		unlike(t, "the function got %s", body)
	}
	// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-jwt-authorizer.html: claims are texts there, a
	// list as "[admin]".
	t.Logf("groups arrive as %T %v", event.Context.Authorizer.JWT.Claims["cognito:groups"], event.Context.Authorizer.JWT.Claims["cognito:groups"])
	if got, _ := get(t, address+"/open/abc", ""); got != 200 {
		unlike(t, "a route without an authorizer: %d, want 200", got)
	}
}

func TestHTTPAPIRefusesAnotherAudience(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	pool, _, tokens := people(t)
	address := makeAPI(t, pool, "somebody-else")
	for kind, token := range map[string]string{"access": *tokens.AccessToken, "id": *tokens.IdToken} {
		if got, body := get(t, address+"/closed", token); got != 401 {
			unlike(t, "an %s token for another audience: %d %s, want 401", kind, got, body)
		}
	}
}

func TestHTTPAPIPathForm(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	pool, clientID, _ := people(t)
	address := makeAPI(t, pool, clientID)
	id, _, _ := strings.Cut(strings.TrimPrefix(address, "http://"), ".")
	if got, body := get(t, endpoint+"/_aws/execute-api/"+id+"/$default/open/abc", ""); got != 200 {
		unlike(t, "the API by its path on loopback: %d %s", got, body)
	}
}

func TestLambdaFunctionURL(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	f := name(t, "-f")
	makeFunction(t, f, nil)
	made, err := functions().CreateFunctionUrlConfig(t.Context(), &lambda.CreateFunctionUrlConfigInput{FunctionName: &f, AuthType: lambdatypes.FunctionUrlAuthTypeNone})
	if err != nil {
		t.Fatal(err)
	}
	address := aws.ToString(made.FunctionUrl)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(u.Hostname(), ".localhost") {
		unlike(t, "the address is %s, which no client reaches", address)
		return
	}
	status, body := get(t, address+"a%20b/c?x=1&x=2", "a-token")
	var event struct {
		Version string
		Path    string `json:"rawPath"`
		Query   string `json:"rawQueryString"`
		Headers map[string]string
		Context struct {
			HTTP struct{ Method, SourceIP string }
		} `json:"requestContext"`
	}
	if err := json.Unmarshal([]byte(body), &event); err != nil {
		unlike(t, "%d %s", status, body)
		return
	}
	// https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html
	if status != 200 || event.Version != "2.0" || event.Query != "x=1&x=2" || event.Context.HTTP.Method != "GET" || event.Headers["authorization"] != "Bearer a-token" {
		unlike(t, "the function got %s", body)
	}
	t.Logf("the path arrives as %q", event.Path)
}
