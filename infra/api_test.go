package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"almanac/internal/api/routes"
	"almanac/internal/boot"
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
	eachWhere(t, hasHTTPAPI, func(t *testing.T, p Profile, tpl template) {
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
	eachWhere(t, hasHTTPAPI, func(t *testing.T, p Profile, tpl template) {
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
	eachWhere(t, func(c Cloud) bool { return c.UserPools }, func(t *testing.T, p Profile, tpl template) {
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
	d, err := deployment(variant{stage: "dev"}, map[string]any{"issuer": "https://login.example.com/realm", "audience": "almanac, almanac-ci"})
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

func hasHTTPAPI(c Cloud) bool { return c.HTTPAPI }

// functionEnvironment is the variables of the API's function.
func functionEnvironment(t *testing.T, tpl template) map[string]any {
	t.Helper()
	_, f := tpl.one(t, "AWS::Lambda::Function", "ApiFunction")
	variables, _ := get(f.Properties, "Environment", "Variables").(map[string]any)
	return variables
}

func TestWhereAnAuthorizerStandsTheFunctionReadsItsClaimsAndHasNoURL(t *testing.T) {
	eachWhere(t, hasHTTPAPI, func(t *testing.T, p Profile, tpl template) {
		for id, r := range tpl.Resources {
			if r.Type == "AWS::Lambda::Url" {
				t.Errorf("%s lets callers pass the authorizer by", id)
			}
		}
		for _, name := range []string{boot.EnvIssuer, boot.EnvAudience} {
			want(t, name, functionEnvironment(t, tpl)[name], nil)
		}
		_, authorizer := tpl.one(t, "AWS::ApiGatewayV2::Authorizer", "Api")
		want(t, "authorizer", authorizer.Properties["AuthorizerType"], "JWT")
	})
}

func TestWithoutHTTPAPIsAFunctionURLServesAndTheFunctionVerifiesTokens(t *testing.T) {
	eachWhere(t, func(c Cloud) bool { return !c.HTTPAPI }, func(t *testing.T, p Profile, tpl template) {
		if !p.Cloud.Local() {
			t.Fatalf("%s has no HTTP API", p.Stage)
		}
		id, u := tpl.one(t, "AWS::Lambda::Url", "ApiFunction")
		function, _ := tpl.one(t, "AWS::Lambda::Function", "ApiFunction")
		want(t, "function", get(u.Properties, "TargetFunctionArn", "Fn::GetAtt", 0), function)
		want(t, "authorization", u.Properties["AuthType"], "NONE")
		want(t, "CORS", u.Properties["Cors"], nil)
		want(t, "issuer", functionEnvironment(t, tpl)[boot.EnvIssuer], "http://127.0.0.1:4569")
		want(t, "audience", functionEnvironment(t, tpl)[boot.EnvAudience], "almanac")
		_, deliver := tpl.one(t, "AWS::Lambda::Function", "DeliveryDeliverQuery")
		if !mentions(get(deliver.Properties, "Environment", "Variables", boot.EnvPublicURL), id) {
			t.Error("links do not lead to the function URL")
		}
		for id, r := range tpl.Resources {
			if strings.HasPrefix(r.Type, "AWS::ApiGatewayV2::") || strings.HasPrefix(r.Type, "AWS::Cognito::") {
				t.Errorf("%s is a %s, which this cloud does not have", id, r.Type)
			}
		}
		for id, r := range tpl.of(t, "AWS::Lambda::Permission") {
			if r.Properties["Principal"] == "*" && !mentions(r.Properties["FunctionName"], function) {
				t.Errorf("%s opens another function", id)
			}
		}
	})
}

func TestAFunctionURLIsRefusedOutsideTheLocalStage(t *testing.T) {
	for _, stage := range []string{"dev", "production"} {
		d, err := deployment(variant{stage: stage}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, cloud := range map[string]Cloud{"the local cloud's": localstack, "AWS without HTTP APIs": {TLS: true, ScopedMail: true, SendCoversBatch: true, BootstrapRoles: true, UserPools: true}} {
			d.Profile.Cloud = cloud
			if _, err := synthesize(d); err == nil || !strings.Contains(err.Error(), stage) || !strings.Contains(err.Error(), "Cloud is") {
				t.Errorf("%s with %s: %v", stage, name, err)
			}
			// The construct refuses by itself too, for whoever passes the profile's check by.
			if _, err := newFunctionURL(d, nil); err == nil || !strings.Contains(err.Error(), "local stage only") {
				t.Errorf("%s with %s: the construct says %v", stage, name, err)
			}
		}
	}
}

func TestAnotherClientsTokensCanBeNamedWithoutUserPools(t *testing.T) {
	d, err := deployment(variant{"local", "localstack"}, map[string]any{"audience": "almanac, almanac-ci"})
	if err != nil {
		t.Fatal(err)
	}
	tpl, err := synthesize(d)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "audience", functionEnvironment(t, tpl)[boot.EnvAudience], "almanac,almanac-ci")
	want(t, "audience for people", tpl.Outputs["Audience"].Value, "almanac,almanac-ci")
}

func TestOutputsNameWhatPeopleAndScriptsNeed(t *testing.T) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		names := []string{
			"ApiFunction", "ApiUrl", "Audience", "DataBucket", "DeliverFunction", "DeliveryEventsFunction", "DispatchFunction", "ExhaustFunction",
			"FilesBucket", "Issuer", "MailEventsDlqUrl", "MailEventsQueueUrl", "MailEventsTopicArn", "MailFrom", "QueryRunsDlqUrl", "QueryRunsQueueUrl", "SchedulesTable", "SecretPrefix",
			"SignInUrl", "SnapshotDispatchFunction", "SnapshotPlanFunction", "SnapshotReconcileFunction", "SnapshotStepFunction", "SnapshotsBucket", "SnapshotsTable"}
		names = append([]string{"AlarmTopicArn", "ApiFunction", "ApiUrl", "AttemptMachineArn"}, names[2:]...)
		if p.Cloud.UserPools {
			names = append(names, "UserPoolClientId", "UserPoolDomain", "UserPoolId")
		} else {
			want(t, "sign-in", tpl.Outputs["SignInUrl"].Value, "http://127.0.0.1:4569")
		}
		want(t, "outputs", slices.Sorted(maps.Keys(tpl.Outputs)), names)
	})
}
