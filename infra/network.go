package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// Network places the functions that read sources into a VPC that is there, next to databases that are in none but it. The
// zero Network is none: the functions then reach what the Internet reaches.
type Network struct {
	VPC            string
	Subnets        []string // private ones, each in a zone of its own
	SecurityGroups []string // of the functions: databases let them in
	Way            string   // how they reach AWS: viaNAT or viaEndpoints
	RouteTables    []string // of the subnets; viaEndpoints
}

// The ways out of the VPC. A function in one has no address of its own on the Internet:
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc-internet.html
const (
	// viaNAT: by the NAT gateways that the VPC has; the stack makes none.
	viaNAT = "nat"
	// viaEndpoints: by endpoints of the services that the functions call, which the stack makes. Mails (the API of SES) and
	// webhooks leave by the VPC's NAT gateways all the same, or not at all.
	viaEndpoints = "endpoints"
)

// Sources are the rights to sign in to databases.
type Sources struct {
	Secrets []string // ARNs of secrets; a last "-??????" stands for the suffix that AWS makes
	Keys    []string // ARNs of the KMS keys of those secrets that have one of their own
	Users   []string // ARNs of database users that sign in by IAM authentication
}

var (
	vpcForm    = regexp.MustCompile(`^vpc-[0-9a-f]{8,17}$`)
	subnetForm = regexp.MustCompile(`^subnet-[0-9a-f]{8,17}$`)
	groupForm  = regexp.MustCompile(`^sg-[0-9a-f]{8,17}$`)
	routeForm  = regexp.MustCompile(`^rtb-[0-9a-f]{8,17}$`)
	// https://docs.aws.amazon.com/secretsmanager/latest/userguide/auth-and-access_iam-policies.html
	secretARNForm = regexp.MustCompile(`^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@!-]{1,512}(-\?{6})?$`)
	keyARNForm    = regexp.MustCompile(`^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]{1,128}$`)
	// https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/UsingWithRDS.IAMDBAuth.IAMPolicy.html
	userARNForm = regexp.MustCompile(`^arn:aws[a-z-]*:rds-db:[a-z0-9-]+:[0-9]{12}:dbuser:[A-Za-z0-9-]{1,128}/[A-Za-z0-9_$.-]{1,63}$`)
)

// forms reads a list whose entries have one form.
func (in *inputs) forms(key string, form *regexp.Regexp, want string) (out []string) {
	for _, part := range in.list(key) {
		switch {
		case !form.MatchString(part):
			in.bad(key, part, want)
		case slices.Contains(out, part):
			in.bad(key, part, "each one once")
		default:
			out = append(out, part)
		}
	}
	return out
}

func (in *inputs) databases(s *Settings) {
	s.Sources = Sources{
		Secrets: in.forms("sourceSecrets", secretARNForm, "ARNs of secrets, separated by commas, such as arn:aws:secretsmanager:eu-central-1:111122223333:secret:reports-AbCdEf, or with -?????? in place of its suffix"),
		Keys:    in.forms("sourceKeys", keyARNForm, "ARNs of KMS keys, separated by commas"),
		Users:   in.forms("sourceUsers", userARNForm, "ARNs of database users, separated by commas, such as arn:aws:rds-db:eu-central-1:111122223333:dbuser:db-ABCDEFGHIJKL01234/almanac"),
	}
	if len(s.Sources.Keys) > 0 && len(s.Sources.Secrets) == 0 {
		in.bad("sourceKeys", in.text("sourceKeys"), "nothing without sourceSecrets, whose keys they are")
	}
}

func (in *inputs) network(p Profile, s *Settings) {
	n := Network{VPC: in.text("vpc"), Way: in.text("network")}
	n.Subnets = in.forms("subnets", subnetForm, "ids of private subnets, separated by commas, each in a zone of its own")
	n.SecurityGroups = in.forms("securityGroups", groupForm, "ids of security groups, separated by commas")
	n.RouteTables = in.forms("routeTables", routeForm, "ids of the subnets' route tables, separated by commas")
	defer func() { s.Network = n }()
	if n.VPC == "" {
		for _, key := range []string{"subnets", "securityGroups", "network", "routeTables"} {
			if v := in.text(key); v != "" {
				in.bad(key, v, "nothing without vpc")
			}
		}
		return
	}
	if p.Cloud.Local() {
		in.bad("vpc", n.VPC, "nothing: the functions of the local stage are processes of this machine")
	}
	if !vpcForm.MatchString(n.VPC) {
		in.bad("vpc", n.VPC, "the id of a VPC, such as vpc-0123456789abcdef0")
	}
	// Lambda takes at most 16 subnets and 5 security groups: https://docs.aws.amazon.com/lambda/latest/api/API_VpcConfig.html
	if c := len(n.Subnets); c < 1 || c > 16 {
		in.bad("subnets", in.text("subnets"), "1 to 16 private subnets of the VPC; two or more, so that one zone may fail")
	}
	if c := len(n.SecurityGroups); c < 1 || c > 5 {
		in.bad("securityGroups", in.text("securityGroups"), "1 to 5 security groups, which the databases let in")
	}
	switch {
	case n.Way != viaNAT && n.Way != viaEndpoints:
		in.bad("network", n.Way, `"nat", by the NAT gateways that the VPC has, or "endpoints", which the stack makes`)
	case n.Way == viaEndpoints && len(n.RouteTables) == 0:
		in.bad("routeTables", "", "the ids of the subnets' route tables, to which the ways to S3 and DynamoDB are added")
	case n.Way == viaNAT && len(n.RouteTables) > 0:
		in.bad("routeTables", in.text("routeTables"), `nothing beside network "nat"`)
	}
}

// readRights are those of a function that reads sources.
func (d Deployment) readRights(stack awscdk.Stack) (out []awsiam.PolicyStatement) {
	s := d.Settings.Sources
	if len(s.Secrets) > 0 {
		out = append(out, allow(s.Secrets, "secretsmanager:GetSecretValue"))
	}
	if len(s.Keys) > 0 {
		decrypt := allow(s.Keys, "kms:Decrypt")
		// https://docs.aws.amazon.com/secretsmanager/latest/userguide/security-encryption.html
		decrypt.AddCondition(jsii.String("StringEquals"), map[string]any{"kms:ViaService": "secretsmanager." + *stack.Region() + ".amazonaws.com"})
		out = append(out, decrypt)
	}
	if len(s.Users) > 0 {
		out = append(out, allow(s.Users, "rds-db:connect"))
	}
	if d.Settings.Network.VPC != "" {
		// As AWS demands them of a function in a VPC, on every resource:
		// https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html#configuration-vpc-permissions
		out = append(out, allow([]string{"*"}, "ec2:CreateNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:DeleteNetworkInterface",
			"ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses"))
	}
	return out
}

// place puts a function into the network.
func (n Network) place(f awslambda.Function) {
	if n.VPC == "" {
		return
	}
	f.Node().DefaultChild().(awslambda.CfnFunction).SetVpcConfig(&awslambda.CfnFunction_VpcConfigProperty{
		SubnetIds: jsii.Strings(n.Subnets...), SecurityGroupIds: jsii.Strings(n.SecurityGroups...),
	})
}

func ids(list []string) *[]any {
	out := make([]any, len(list))
	for i, id := range list {
		out[i] = jsii.String(id)
	}
	return &out
}

// interfaces are the services that the functions call by interface endpoints, each for every zone; S3 and DynamoDB have
// gateways, which cost nothing: https://docs.aws.amazon.com/vpc/latest/privatelink/gateway-endpoints.html
var (
	interfaces = []string{"lambda", "secretsmanager", "sqs", "states"}
	gateways   = []string{"dynamodb", "s3"}
)

// newEndpoints makes the endpoints, if they are the way.
func newEndpoints(stack awscdk.Stack, n Network) {
	if n.Way != viaEndpoints {
		return
	}
	scope := constructs.NewConstruct(stack, jsii.String("Network"))
	service := func(name string) *string { return jsii.String("com.amazonaws." + *stack.Region() + "." + name) }
	var ingress []any
	for _, g := range n.SecurityGroups {
		ingress = append(ingress, awsec2.CfnSecurityGroup_IngressProperty{IpProtocol: jsii.String("tcp"), FromPort: jsii.Number(443), ToPort: jsii.Number(443),
			SourceSecurityGroupId: jsii.String(g), Description: jsii.String("functions that read sources")})
	}
	group := awsec2.NewCfnSecurityGroup(scope, jsii.String("Endpoints"), &awsec2.CfnSecurityGroupProps{
		GroupDescription: jsii.String("Almanac: HTTPS from functions to endpoints"), VpcId: jsii.String(n.VPC), SecurityGroupIngress: &ingress,
	})
	for _, name := range interfaces {
		awsec2.NewCfnVPCEndpoint(scope, jsii.String("Interface-"+name), &awsec2.CfnVPCEndpointProps{ServiceName: service(name), VpcId: jsii.String(n.VPC),
			VpcEndpointType: jsii.String("Interface"), PrivateDnsEnabled: jsii.Bool(true), SubnetIds: ids(n.Subnets), SecurityGroupIds: &[]any{group.AttrGroupId()}})
	}
	for _, name := range gateways {
		awsec2.NewCfnVPCEndpoint(scope, jsii.String("Gateway-"+name), &awsec2.CfnVPCEndpointProps{ServiceName: service(name), VpcId: jsii.String(n.VPC),
			VpcEndpointType: jsii.String("Gateway"), RouteTableIds: ids(n.RouteTables)})
	}
}

// Prices in USD: list prices of us-east-1, which other regions do not have.
const (
	monthHours   = 730
	natHour      = 0.045 // a gateway and hour, and natGB a GB: https://aws.amazon.com/vpc/pricing/
	natGB        = 0.045
	endpointHour = 0.01 // an interface endpoint, zone and hour, and endpointGB a GB: https://aws.amazon.com/privatelink/pricing/
	endpointGB   = 0.01
)

// Cost says what the network costs, in lines for the person at the synthesis; none where there is none.
func (n Network) Cost() string {
	if n.VPC == "" {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "network: functions that read sources are placed in %s; list prices of us-east-1, to be verified for your region:\n", n.VPC)
	nat := fmt.Sprintf("%.2f USD a month for each NAT gateway that the VPC has and %.3f USD a GB (https://aws.amazon.com/vpc/pricing/)", natHour*monthHours, natGB)
	if n.Way == viaNAT {
		fmt.Fprintf(&b, "  no cost of this stack's own; %s\n", nat)
		return b.String()
	}
	endpoints := len(interfaces) * len(n.Subnets)
	fmt.Fprintf(&b, "  %.2f USD a month for %d interface endpoints (%s in %d zones) and %.2f USD a GB (https://aws.amazon.com/privatelink/pricing/); S3 and DynamoDB by gateways, free of charge\n",
		float64(endpoints)*endpointHour*monthHours, endpoints, strings.Join(interfaces, ", "), len(n.Subnets), endpointGB)
	fmt.Fprintf(&b, "  mails and webhooks leave by a NAT gateway or not at all: %s\n", nat)
	return b.String()
}
