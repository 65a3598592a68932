package main

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"
)

// newFunctionURL serves the API's function at an address of its own, where a local cloud has no HTTP APIs. The URL asks
// nobody who they are: the function verifies tokens itself, by the issuer in its environment, and there is no throttle and
// no access log in front of it. On AWS that is refused.
// https://docs.aws.amazon.com/lambda/latest/dg/urls-auth.html
func newFunctionURL(d Deployment, f awslambda.Function) (address string, err error) {
	if !d.Profile.Cloud.Local() || d.Profile.Stage != "local" {
		return "", fmt.Errorf("stage %s: a function URL without an authorizer is for the local stage only; want an HTTP API", d.Profile.Stage)
	}
	u := f.AddFunctionUrl(&awslambda.FunctionUrlOptions{AuthType: awslambda.FunctionUrlAuthType_NONE})
	// The attribute is http://<id>.lambda-url.<region>.<the cloud's own host and port>/
	host := awscdk.Fn_Select(jsii.Number(2), awscdk.Fn_Split(jsii.String("/"), u.Url(), nil))
	return "http://" + *host, nil
}
