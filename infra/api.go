package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2authorizers"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2integrations"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"almanac/internal/api/routes"
	"almanac/internal/boot"
	"almanac/internal/schema"
)

// api is the HTTP entrance. It is made in two steps, since delivery writes its address into links while its function
// sends to delivery's queue.
type api struct {
	stack      awscdk.Stack
	scope      constructs.Construct
	deployment Deployment
	http       awsapigatewayv2.HttpApi
	authorizer awsapigatewayv2.IHttpRouteAuthorizer
	url        string // without a trailing slash
}

func newAPI(stack awscdk.Stack, d Deployment) api {
	a := api{stack: stack, scope: constructs.NewConstruct(stack, jsii.String("Api")), deployment: d}
	a.http = awsapigatewayv2.NewHttpApi(a.scope, jsii.String("Http"), &awsapigatewayv2.HttpApiProps{
		ApiName:            jsii.String("almanac-" + d.Profile.Stage),
		CreateDefaultStage: jsii.Bool(false), // made below, with throttling and logs
	})
	// No CORS: no page of another origin calls it.
	a.newHTTPStage()
	a.url = *a.http.ApiEndpoint()
	if d.Profile.Cloud.Local() {
		a.url = fmt.Sprintf("http://%s.execute-api.localhost:%d", *a.http.ApiId(), d.Settings.EndpointPort)
	}
	a.authorizer = a.newAuthorizer()
	output(stack, "ApiUrl", a.url)
	return a
}

// newHTTPStage makes the stage that serves at the root, throttled, with a line per request. The line has no path and no
// address: paths of links are secrets.
func (a api) newHTTPStage() {
	p := a.deployment.Profile
	stage := awsapigatewayv2.NewHttpStage(a.scope, jsii.String("Stage"), &awsapigatewayv2.HttpStageProps{
		HttpApi: a.http, StageName: jsii.String("$default"), AutoDeploy: jsii.Bool(true),
		Throttle: &awsapigatewayv2.ThrottleSettings{
			RateLimit: jsii.Number(float64(p.APIRate)), BurstLimit: jsii.Number(float64(p.APIBurst)),
		},
	})
	format, err := json.Marshal(map[string]string{
		"request": "$context.requestId", "at": "$context.requestTimeEpoch", "route": "$context.routeKey",
		"status": "$context.status", "latency_ms": "$context.responseLatency", "bytes": "$context.responseLength",
		"refused": "$context.authorizer.error", "failed": "$context.integrationErrorMessage",
	})
	if err != nil {
		panic(err) // a map of strings
	}
	logs := newLogs(a.scope, "AccessLogs", a.deployment)
	stage.Node().DefaultChild().(awsapigatewayv2.CfnStage).SetAccessLogSettings(&awsapigatewayv2.CfnStage_AccessLogSettingsProperty{
		DestinationArn: logs.LogGroupArn(), Format: jsii.String(string(format)),
	})
}

// newAuthorizer accepts tokens of the configured issuer, or of a user pool of the stack. API Gateway compares the
// audience with aud, or with client_id where there is no aud, as in Cognito's access tokens.
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-jwt-authorizer.html
func (a api) newAuthorizer() awsapigatewayv2.IHttpRouteAuthorizer {
	issuer, audience := a.deployment.Settings.Issuer, a.deployment.Settings.Audience
	if issuer == "" {
		pool := newSignIn(a.stack, a.scope, a.deployment)
		issuer, audience = pool.issuer, []string{pool.client}
	}
	output(a.stack, "Issuer", issuer)
	output(a.stack, "Audience", strings.Join(audience, ","))
	return awsapigatewayv2authorizers.NewHttpJwtAuthorizer(jsii.String("Tokens"), jsii.String(issuer),
		&awsapigatewayv2authorizers.HttpJwtAuthorizerProps{
			JwtAudience: jsii.Strings(audience...), IdentitySource: jsii.Strings("$request.header.Authorization"),
		})
}

// serve makes the function and the routes to it.
func (a api) serve(s storage, made delivery) {
	d := a.deployment
	f := newFunction(a.scope, d, functionSpec{
		ID: "Function", Folder: "api", Description: "The HTTP API, downloads and unsubscriptions",
		Size: d.Profile.API,
		Environment: map[string]string{
			boot.EnvSchedulesTable: *s.schedules.TableName(),
			boot.EnvFilesBucket:    *s.files.BucketName(),
			boot.EnvQueryQueue:     *made.query.queue.QueueUrl(),
			boot.EnvPublicURL:      a.url,
		},
		Rights: []awsiam.PolicyStatement{
			onTable(s.schedules, "dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem"),
			onIndexes(s.schedules, schema.IndexDirectory),
			toSend(d, made.query.queue),
			onObjects(s.files, "files/", "s3:GetObject"), // whose signature a link carries for a minute
		},
	})
	output(a.stack, "ApiFunction", *f.FunctionName())
	to := awsapigatewayv2integrations.NewHttpLambdaIntegration(jsii.String("Function"), f,
		&awsapigatewayv2integrations.HttpLambdaIntegrationProps{
			PayloadFormatVersion: awsapigatewayv2.PayloadFormatVersion_VERSION_2_0(),
			// One permission for the whole API; which route is whose, the routes say.
			ScopePermissionToRoute: jsii.Bool(false),
		})
	a.route(to, "/{proxy+}", a.authorizer, awsapigatewayv2.HttpMethod_ANY)
	for path, methods := range publicRoutes() {
		a.route(to, path, awsapigatewayv2.NewHttpNoneAuthorizer(), methods...)
	}
}

func (a api) route(to awsapigatewayv2.HttpRouteIntegration, path string, who awsapigatewayv2.IHttpRouteAuthorizer, methods ...awsapigatewayv2.HttpMethod) {
	a.http.AddRoutes(&awsapigatewayv2.AddRoutesOptions{
		Path: jsii.String(path), Methods: &methods, Integration: to, Authorizer: who,
	})
}

// publicRoutes are the routes that want no token, by path: those that the API's own table calls public.
func publicRoutes() map[string][]awsapigatewayv2.HttpMethod {
	public := map[string][]awsapigatewayv2.HttpMethod{}
	for _, r := range routes.Table {
		if r.Right == routes.Public {
			path := gatewayPath(r.Path)
			public[path] = append(public[path], awsapigatewayv2.HttpMethod(r.Method))
		}
	}
	for _, methods := range public {
		slices.Sort(methods)
	}
	return public
}

var rest = regexp.MustCompile(`\{([a-z]+)\.\.\.\}`)

// gatewayPath spells a net/http pattern as API Gateway does: the rest of a path is {name+} there.
func gatewayPath(pattern string) string { return rest.ReplaceAllString(pattern, "{$1+}") }
