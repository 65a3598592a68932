package main

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscognito"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// signIn is the stack's own user pool: who may call the API, and in which group.
type signIn struct {
	issuer string
	client string // id of the public client, the audience of its tokens
}

// CallbackURL is where the command line waits for the code of a sign-in.
const CallbackURL = "http://localhost:8765/callback"

// groups are the roles that the API knows, the mightiest first.
var groups = []string{"admin", "operator", "viewer"}

func newSignIn(stack awscdk.Stack, scope constructs.Construct, d Deployment) signIn {
	pool := awscognito.NewUserPool(scope, jsii.String("Users"), userPool(d))
	for i, g := range groups {
		pool.AddGroup(jsii.String(g), &awscognito.UserPoolGroupOptions{GroupName: jsii.String(g), Precedence: jsii.Number(float64(i))})
	}
	domain := pool.AddDomain(jsii.String("Domain"), &awscognito.UserPoolDomainOptions{
		// Unique in the region over all accounts.
		CognitoDomain: &awscognito.CognitoDomainOptions{DomainPrefix: jsii.String("almanac-" + d.Profile.Stage + "-" + *stack.Account())},
	})
	client := pool.AddClient(jsii.String("CommandLine"), publicClient(d))
	issuer := fmt.Sprintf("https://cognito-idp.%s.%s/%s", *stack.Region(), *stack.UrlSuffix(), *pool.UserPoolId())
	output(stack, "UserPoolId", *pool.UserPoolId())
	output(stack, "UserPoolClientId", *client.UserPoolClientId())
	output(stack, "UserPoolDomain", *domain.DomainName())
	output(stack, "SignInUrl", signInURL(stack, d, *domain.DomainName()))
	return signIn{issuer: issuer, client: *client.UserPoolClientId()}
}

func userPool(d Deployment) *awscognito.UserPoolProps {
	mfa := awscognito.Mfa_OPTIONAL
	if d.Profile.MFARequired {
		mfa = awscognito.Mfa_REQUIRED
	}
	if d.Profile.Cloud.Local() {
		mfa = awscognito.Mfa_OFF
	}
	return &awscognito.UserPoolProps{
		SelfSignUpEnabled: jsii.Bool(false), // an administrator invites
		// By user name, not by e-mail alias: with the alias a token's username is a random id, and nobody could read an audit.
		SignInAliases:       &awscognito.SignInAliases{Username: jsii.Bool(true)},
		SignInCaseSensitive: jsii.Bool(false),
		AutoVerify:          &awscognito.AutoVerifiedAttrs{Email: jsii.Bool(true)},
		AccountRecovery:     awscognito.AccountRecovery_EMAIL_ONLY,
		Mfa:                 mfa,
		MfaSecondFactor:     &awscognito.MfaSecondFactor{Otp: jsii.Bool(true), Sms: jsii.Bool(false)},
		PasswordPolicy: &awscognito.PasswordPolicy{
			MinLength: jsii.Number(12), RequireDigits: jsii.Bool(true), RequireLowercase: jsii.Bool(true),
			RequireUppercase: jsii.Bool(true), RequireSymbols: jsii.Bool(true),
		},
		DeletionProtection: jsii.Bool(d.Profile.Retain),
		RemovalPolicy:      d.removal(),
	}
}

// publicClient is a program on a person's machine: it keeps no secret and proves itself by PKCE.
func publicClient(d Deployment) *awscognito.UserPoolClientOptions {
	return &awscognito.UserPoolClientOptions{
		GenerateSecret: jsii.Bool(false),
		AuthFlows:      &awscognito.AuthFlow{UserPassword: jsii.Bool(d.Profile.PasswordLogin), UserSrp: jsii.Bool(false)},
		OAuth: &awscognito.OAuthSettings{
			Flows:        &awscognito.OAuthFlows{AuthorizationCodeGrant: jsii.Bool(true), ImplicitCodeGrant: jsii.Bool(false)},
			CallbackUrls: jsii.Strings(CallbackURL),
			Scopes:       &[]awscognito.OAuthScope{awscognito.OAuthScope_OPENID(), awscognito.OAuthScope_EMAIL()},
		},
		SupportedIdentityProviders: &[]awscognito.UserPoolClientIdentityProvider{awscognito.UserPoolClientIdentityProvider_COGNITO()},
		PreventUserExistenceErrors: jsii.Bool(true),
		EnableTokenRevocation:      jsii.Bool(true),
		AccessTokenValidity:        awscdk.Duration_Hours(jsii.Number(1)),
		IdTokenValidity:            awscdk.Duration_Hours(jsii.Number(1)),
		RefreshTokenValidity:       awscdk.Duration_Days(jsii.Number(7)),
	}
}

// signInURL is where /oauth2/authorize and /oauth2/token are.
func signInURL(stack awscdk.Stack, d Deployment, prefix string) string {
	if d.Profile.Cloud.Local() {
		return fmt.Sprintf("http://127.0.0.1:%d", d.Settings.EndpointPort)
	}
	// https://docs.aws.amazon.com/cognito/latest/developerguide/cognito-user-pools-assign-domain-prefix.html
	return fmt.Sprintf("https://%s.auth.%s.amazoncognito.com", prefix, *stack.Region())
}
