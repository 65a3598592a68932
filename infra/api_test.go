package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"almanac/internal/api/routes"
)

func TestOnlyThePublicRoutesOfTheRouteTableGoWithoutAToken(t *testing.T) {
	var public []string
	for _, r := range routes.Table {
		if r.Right == routes.Public {
			public = append(public, r.Method+" "+r.Path)
		}
	}
	if len(public) == 0 {
		t.Fatal("the route table has no public route; this test would assert nothing")
	}
	slices.Sort(public)
	eachStage(t, func(t *testing.T, p Profile, tpl template) {
		var open, closed []string
		authorizer, _ := tpl.one(t, "AWS::ApiGatewayV2::Authorizer", "Api")
		for id, r := range tpl.of(t, "AWS::ApiGatewayV2::Route") {
			key, _ := r.Properties["RouteKey"].(string)
			switch r.Properties["AuthorizationType"] {
			case "NONE":
				open = append(open, key)
			case "JWT":
				closed = append(closed, key)
				want(t, id+" authorizer", r.Properties["AuthorizerId"], map[string]string{"Ref": authorizer})
			default:
				t.Errorf("%s is authorized by %v", key, r.Properties["AuthorizationType"])
			}
		}
		slices.Sort(open)
		want(t, "routes without a token", open, public)
		want(t, "routes with a token", closed, []string{"ANY /{proxy+}"})
	})
}

func TestGatewayPathsSpellTheRestOfAPathAsAPIGatewayDoes(t *testing.T) {
	want(t, "path", gatewayPath("/files/{token}"), "/files/{token}")
	want(t, "path", gatewayPath("/console/{file...}"), "/console/{file+}")
}

func TestTheAPIThrottlesLogsAndAllowsNoOtherOrigin(t *testing.T) {
	eachStage(t, func(t *testing.T, p Profile, tpl template) {
		_, http := tpl.one(t, "AWS::ApiGatewayV2::Api", "Api")
		want(t, "CORS", http.Properties["CorsConfiguration"], nil)
		_, stage := tpl.one(t, "AWS::ApiGatewayV2::Stage", "Api")
		want(t, "rate", get(stage.Properties, "DefaultRouteSettings", "ThrottlingRateLimit"), p.APIRate)
		want(t, "burst", get(stage.Properties, "DefaultRouteSettings", "ThrottlingBurstLimit"), p.APIBurst)
		group, _ := get(stage.Properties, "AccessLogSettings", "DestinationArn", "Fn::GetAtt", 0).(string)
		want(t, "access log", tpl.Resources[group].Type, "AWS::Logs::LogGroup")
		format, _ := get(stage.Properties, "AccessLogSettings", "Format").(string)
		for _, secret := range []string{"$context.path", "sourceIp", "authorizer.claims"} {
			if strings.Contains(format, secret) {
				t.Errorf("the access log has %s", secret)
			}
		}
		_, integration := tpl.one(t, "AWS::ApiGatewayV2::Integration", "Api")
		want(t, "payload", integration.Properties["PayloadFormatVersion"], "2.0")
	})
}

func TestSignInIsByInvitationWithACodeAndAProof(t *testing.T) {
	eachStage(t, func(t *testing.T, p Profile, tpl template) {
		_, pool := tpl.one(t, "AWS::Cognito::UserPool", "Api")
		want(t, "self sign-up off", get(pool.Properties, "AdminCreateUserConfig", "AllowAdminCreateUserOnly"), true)
		id, client := tpl.one(t, "AWS::Cognito::UserPoolClient", "Api")
		want(t, "secret", client.Properties["GenerateSecret"], false)
		want(t, "flows", client.Properties["AllowedOAuthFlows"], []string{"code"})
		want(t, "callback", client.Properties["CallbackURLs"], []string{"http://localhost:8765/callback"})
		byPassword := slices.Contains(some(client.Properties["ExplicitAuthFlows"]), any("ALLOW_USER_PASSWORD_AUTH"))
		want(t, "sign-in by password in one call", byPassword, p.PasswordLogin)
		var names []string
		for _, g := range tpl.of(t, "AWS::Cognito::UserPoolGroup") {
			names = append(names, g.Properties["GroupName"].(string))
		}
		slices.Sort(names)
		want(t, "groups", names, []string{"admin", "operator", "viewer"})
		_, authorizer := tpl.one(t, "AWS::ApiGatewayV2::Authorizer", "Api")
		want(t, "audience", get(authorizer.Properties, "JwtConfiguration", "Audience"), []any{map[string]string{"Ref": id}})
	})
}

func TestAnotherIssuerReplacesTheUserPool(t *testing.T) {
	d, err := deployment("dev", map[string]any{"issuer": "https://login.example.com/realm", "audience": "almanac, almanac-ci"})
	if err != nil {
		t.Fatal(err)
	}
	tpl, err := synthesize(d)
	if err != nil {
		t.Fatal(err)
	}
	for id, r := range tpl.Resources {
		if strings.HasPrefix(r.Type, "AWS::Cognito::") {
			t.Errorf("%s is there beside the other issuer", id)
		}
	}
	_, authorizer := tpl.one(t, "AWS::ApiGatewayV2::Authorizer", "Api")
	want(t, "tokens", authorizer.Properties["JwtConfiguration"], map[string]any{
		"Issuer": "https://login.example.com/realm", "Audience": []string{"almanac", "almanac-ci"}})
}

func TestOutputsNameWhatPeopleAndScriptsNeed(t *testing.T) {
	eachStage(t, func(t *testing.T, p Profile, tpl template) {
		want(t, "outputs", slices.Sorted(maps.Keys(tpl.Outputs)), []string{
			"ApiFunction", "ApiUrl", "Audience", "DataBucket", "DeliverFunction", "DispatchFunction", "ExhaustFunction",
			"FilesBucket", "Issuer", "MailFrom", "QueryRunsDlqUrl", "QueryRunsQueueUrl", "SchedulesTable", "SecretPrefix",
			"SignInUrl", "UserPoolClientId", "UserPoolDomain", "UserPoolId"})
	})
}
