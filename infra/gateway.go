package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2authorizers"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2integrations"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"almanac/internal/api/routes"
)

// gateway is an HTTP API in front of the API's function. Its authorizer lets nobody to the function without a token,
// but for the public routes.
type gateway struct {
	scope      constructs.Construct
	deployment Deployment
	http       awsapigatewayv2.HttpApi
}

func newGateway(scope constructs.Construct, d Deployment, accepted tokens, f awslambda.Function) (address string) {
	g := gateway{scope: scope, deployment: d}
	g.http = awsapigatewayv2.NewHttpApi(scope, jsii.String("Http"), &awsapigatewayv2.HttpApiProps{
		ApiName:            jsii.String("almanac-" + d.Profile.Stage),
		CreateDefaultStage: jsii.Bool(false), // made below, with throttling and logs
	})
	// No CORS: no page of another origin calls it.
	g.newHTTPStage()
	to := awsapigatewayv2integrations.NewHttpLambdaIntegration(jsii.String("Function"), f,
		&awsapigatewayv2integrations.HttpLambdaIntegrationProps{
			PayloadFormatVersion: awsapigatewayv2.PayloadFormatVersion_VERSION_2_0(),
			// One permission for the whole API; which route is whose, the routes say.
			ScopePermissionToRoute: jsii.Bool(false),
		})
	g.route(to, "/{proxy+}", newAuthorizer(accepted), awsapigatewayv2.HttpMethod_ANY)
	for path, methods := range publicRoutes() {
		g.route(to, path, awsapigatewayv2.NewHttpNoneAuthorizer(), methods...)
	}
	if d.Profile.Cloud.Local() {
		return fmt.Sprintf("http://%s.execute-api.localhost:%d", *g.http.ApiId(), d.Settings.EndpointPort)
	}
	return *g.http.ApiEndpoint()
}

// newHTTPStage makes the stage that serves at the root, throttled, with a line per request. The line has no path and no
// address: paths of links are secrets.
func (g gateway) newHTTPStage() {
	p := g.deployment.Profile
	stage := awsapigatewayv2.NewHttpStage(g.scope, jsii.String("Stage"), &awsapigatewayv2.HttpStageProps{
		HttpApi: g.http, StageName: jsii.String("$default"), AutoDeploy: jsii.Bool(true),
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
	logs := newLogs(g.scope, "AccessLogs", g.deployment)
	stage.Node().DefaultChild().(awsapigatewayv2.CfnStage).SetAccessLogSettings(&awsapigatewayv2.CfnStage_AccessLogSettingsProperty{
		DestinationArn: logs.LogGroupArn(), Format: jsii.String(string(format)),
	})
}

// newAuthorizer accepts the issuer's tokens. API Gateway compares the audience with aud, or with client_id where there is
// no aud, as in Cognito's access tokens.
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-jwt-authorizer.html
func newAuthorizer(accepted tokens) awsapigatewayv2.IHttpRouteAuthorizer {
	return awsapigatewayv2authorizers.NewHttpJwtAuthorizer(jsii.String("Tokens"), jsii.String(accepted.issuer),
		&awsapigatewayv2authorizers.HttpJwtAuthorizerProps{
			JwtAudience: jsii.Strings(accepted.audience...), IdentitySource: jsii.Strings("$request.header.Authorization"),
		})
}

func (g gateway) route(to awsapigatewayv2.HttpRouteIntegration, path string, who awsapigatewayv2.IHttpRouteAuthorizer, methods ...awsapigatewayv2.HttpMethod) {
	g.http.AddRoutes(&awsapigatewayv2.AddRoutesOptions{
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
