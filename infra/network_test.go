package main

import (
	"slices"
	"strings"
	"testing"
)

const (
	aSecret = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:reports-??????"
	another = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:rds!db-1-AbCdEf"
	aKey    = "arn:aws:kms:eu-central-1:111122223333:key/0a1b2c3d-0000-1111-2222-333344445555"
	aUser   = "arn:aws:rds-db:eu-central-1:111122223333:dbuser:db-ABCDEFGHIJKL01234/almanac"
)

// placed are the settings of a stack next to databases.
func placed(way string) map[string]any {
	m := map[string]any{"vpc": "vpc-0123456789abcdef0", "subnets": "subnet-0123456789abcdef0, subnet-0123456789abcdef1", "securityGroups": "sg-0123456789abcdef0", "network": way,
		"sourceSecrets": aSecret + "," + another, "sourceKeys": aKey, "sourceUsers": aUser}
	if way == viaEndpoints {
		m["routeTables"] = "rtb-0123456789abcdef0"
	}
	return m
}

func templateWith(t *testing.T, change map[string]any) template {
	t.Helper()
	d, err := deployment(variant{stage: "production"}, change)
	if err != nil {
		t.Fatal(err)
	}
	tpl, err := synthesize(d)
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

// reading are the functions that read sources, and no others.
var reading = []string{"ApiFunction", "DeliveryDeliverQuery", "SnapshotsPlan", "SnapshotsStep"}

func TestFunctionsThatReadSourcesSignInToWhatIsNamedAndStandThere(t *testing.T) {
	tpl := templateWith(t, placed(viaEndpoints))
	for prefix := range allowed(production()) {
		reads := slices.Contains(reading, prefix)
		_, f := tpl.one(t, "AWS::Lambda::Function", prefix)
		place := any(nil)
		if reads {
			place = map[string]any{"SecurityGroupIds": []string{"sg-0123456789abcdef0"}, "SubnetIds": []string{"subnet-0123456789abcdef0", "subnet-0123456789abcdef1"}}
		}
		want(t, prefix+"'s network", f.Properties["VpcConfig"], place)
		got := map[string][]string{}
		for _, r := range rightsOf(t, tpl, prefix) {
			service, _, _ := strings.Cut(r.action, ":")
			switch {
			case slices.Contains([]string{"kms", "rds-db", "ec2"}, service), r.action == "secretsmanager:GetSecretValue" && !strings.Contains(text(r.resource), "/webhook/"):
				got[r.action] = append(got[r.action], strings.Trim(text(r.resource), `"`))
			}
			if service == "kms" && !strings.Contains(text(r.condition), `"kms:ViaService":"secretsmanager.eu-central-1.amazonaws.com"`) {
				t.Errorf("%s: %s under %s", prefix, r.action, text(r.condition))
			}
		}
		wanted := map[string][]string{}
		if reads {
			wanted = map[string][]string{"secretsmanager:GetSecretValue": {another, aSecret}, "kms:Decrypt": {aKey}, "rds-db:connect": {aUser}}
			for _, action := range []string{"CreateNetworkInterface", "DescribeNetworkInterfaces", "DescribeSubnets", "DeleteNetworkInterface", "AssignPrivateIpAddresses", "UnassignPrivateIpAddresses"} {
				wanted["ec2:"+action] = []string{"*"}
			}
		}
		want(t, prefix+"'s rights on databases", got, wanted)
	}
}

func TestEndpointsAreMadeWhereTheyAreTheWay(t *testing.T) {
	tpl := templateWith(t, placed(viaEndpoints))
	_, group := tpl.one(t, "AWS::EC2::SecurityGroup", "NetworkEndpoints")
	want(t, "who may use the endpoints", group.Properties["SecurityGroupIngress"], []any{map[string]any{"Description": "functions that read sources", "FromPort": 443, "IpProtocol": "tcp", "SourceSecurityGroupId": "sg-0123456789abcdef0", "ToPort": 443}})
	var services []string
	for _, e := range tpl.of(t, "AWS::EC2::VPCEndpoint") {
		kind, name := e.Properties["VpcEndpointType"].(string), text(e.Properties["ServiceName"])
		services = append(services, kind+" "+name[strings.LastIndex(name, ".")+1:len(name)-1])
		want(t, name+"'s VPC", e.Properties["VpcId"], "vpc-0123456789abcdef0")
		if kind == "Gateway" {
			want(t, name+"'s routes", e.Properties["RouteTableIds"], []string{"rtb-0123456789abcdef0"})
		} else {
			want(t, name+"'s name", e.Properties["PrivateDnsEnabled"], true)
			want(t, name+"'s zones", len(e.Properties["SubnetIds"].([]any)), 2)
		}
	}
	slices.Sort(services)
	want(t, "endpoints", services, []string{"Gateway dynamodb", "Gateway s3", "Interface lambda", "Interface secretsmanager", "Interface sqs", "Interface states"})
	for name, change := range map[string]map[string]any{"by NAT": placed(viaNAT), "in no VPC": nil} {
		for id, r := range templateWith(t, change).Resources {
			if strings.HasPrefix(r.Type, "AWS::EC2::") {
				t.Errorf("%s: %s %s is made", name, r.Type, id)
			}
		}
	}
}

func TestTheNetworksCostIsTold(t *testing.T) {
	cost := func(change map[string]any) string {
		d, err := deployment(variant{stage: "production"}, change)
		if err != nil {
			t.Fatal(err)
		}
		return d.Settings.Network.Cost()
	}
	if got := cost(nil); got != "" {
		t.Errorf("without a VPC: %q", got)
	}
	for way, parts := range map[string][]string{
		viaNAT:       {"no cost of this stack's own", "32.85 USD a month for each NAT gateway", "0.045 USD a GB", "https://aws.amazon.com/vpc/pricing/", "to be verified"},
		viaEndpoints: {"58.40 USD a month for 8 interface endpoints", "2 zones", "0.01 USD a GB", "https://aws.amazon.com/privatelink/pricing/", "mails and webhooks leave by a NAT gateway", "list prices of us-east-1"},
	} {
		for _, part := range parts {
			if got := cost(placed(way)); !strings.Contains(got, part) {
				t.Errorf("%s: %q does not say %q", way, got, part)
			}
		}
	}
}

func TestNetworkAndDatabasesAreRefusedWithFieldValueAndWhatWouldBeRight(t *testing.T) {
	for name, c := range map[string]struct {
		stage string
		way   string
		key   string
		value any
		want  []string
	}{
		"vpc by name":             {"dev", viaNAT, "vpc", "main", []string{`vpc is "main"`, "vpc-0123456789abcdef0"}},
		"vpc wrong type":          {"dev", viaNAT, "vpc", 7.0, []string{"vpc is 7 (float64)", "want text"}},
		"vpc in the local stage":  {"local", viaNAT, "vpc", "vpc-0123456789abcdef0", []string{"vpc is", "processes of this machine"}},
		"no vpc, and the rest":    {"dev", viaNAT, "vpc", nil, []string{"subnets is", "securityGroups is", "network is", "nothing without vpc"}},
		"subnets absent":          {"dev", viaNAT, "subnets", nil, []string{`subnets is ""`, "1 to 16"}},
		"subnets too many":        {"dev", viaNAT, "subnets", many("subnet-", 17), []string{"subnets is", "1 to 16"}},
		"subnet twice":            {"dev", viaNAT, "subnets", "subnet-0123456789abcdef0,subnet-0123456789abcdef0", []string{"subnets is", "each one once"}},
		"subnet hostile":          {"dev", viaNAT, "subnets", "subnet-0123456789abcdef0\n", nil},
		"subnet no id":            {"dev", viaNAT, "subnets", "10.0.0.0/24", []string{`subnets is "10.0.0.0/24"`, "private subnets"}},
		"groups absent":           {"dev", viaNAT, "securityGroups", nil, []string{`securityGroups is ""`, "1 to 5"}},
		"groups too many":         {"dev", viaNAT, "securityGroups", many("sg-", 6), []string{"securityGroups is", "1 to 5"}},
		"way absent":              {"dev", viaNAT, "network", nil, []string{`network is ""`, `"nat"`, `"endpoints"`}},
		"way unknown":             {"dev", viaNAT, "network", "internet", []string{`network is "internet"`}},
		"endpoints, no routes":    {"dev", viaEndpoints, "routeTables", nil, []string{`routeTables is ""`, "S3 and DynamoDB"}},
		"nat with routes":         {"dev", viaNAT, "routeTables", "rtb-0123456789abcdef0", []string{"routeTables is", `nothing beside network "nat"`}},
		"route no id":             {"dev", viaEndpoints, "routeTables", "main", []string{`routeTables is "main"`}},
		"secret by name":          {"dev", viaNAT, "sourceSecrets", "reports", []string{`sourceSecrets is "reports"`, "ARNs of secrets"}},
		"every secret":            {"dev", viaNAT, "sourceSecrets", "arn:aws:secretsmanager:eu-central-1:111122223333:secret:*", []string{"sourceSecrets is"}},
		"any secret":              {"dev", viaNAT, "sourceSecrets", "*", []string{`sourceSecrets is "*"`}},
		"key by alias":            {"dev", viaNAT, "sourceKeys", "alias/aws/secretsmanager", []string{"sourceKeys is", "ARNs of KMS keys"}},
		"keys without secrets":    {"dev", viaNAT, "sourceSecrets", nil, []string{"sourceKeys is", "nothing without sourceSecrets"}},
		"user without a database": {"dev", viaNAT, "sourceUsers", "almanac", []string{`sourceUsers is "almanac"`, "rds-db"}},
		"every database":          {"dev", viaNAT, "sourceUsers", "arn:aws:rds-db:eu-central-1:111122223333:dbuser:*/almanac", []string{"sourceUsers is"}},
	} {
		t.Run(name, func(t *testing.T) {
			change := placed(c.way)
			change[c.key] = c.value
			v := variant{stage: c.stage}
			if c.stage == "local" {
				v.cloud = "ministack"
			}
			_, err := deployment(v, change)
			if c.want == nil { // white space around an entry is no part of it
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			says(t, err, c.want...)
		})
	}
}

func many(prefix string, n int) string {
	var out []string
	for i := range n {
		out = append(out, prefix+"0123456"+string(rune('a'+i%6))+strings.Repeat("0", i/6)+"0")
	}
	return strings.Join(out, ",")
}
