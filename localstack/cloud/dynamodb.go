package main

import (
	"context"
	"fmt"

	"almanac/localstack/internal/dynamodblocal"
	"almanac/localstack/internal/install"
	"almanac/localstack/internal/instance"
	"almanac/localstack/internal/machine"
)

// dynamoDBActions are what can be done with the DynamoDB Local that belongs to no instance.
var dynamoDBActions = []string{"start", "stop", "env"}

// dynamoDB installs, starts and stops a DynamoDB Local alone, for tests that need no other service.
func (c cloud) dynamoDB(ctx context.Context) error {
	port := c.port
	if port == 0 {
		port = dynamodblocal.Port
	}
	server := dynamodblocal.Alone(c.root, port, c.client)
	switch c.action {
	case "env":
		c.export("ALMANAC_DYNAMODB_LOCAL=" + server.Endpoint())
		return nil
	case "stop":
		return c.report.RunNote("stop DynamoDB Local", func() (string, error) {
			outcome, err := server.Stop(ctx)
			return outcomeNote(outcome, "it kept its tables in memory"), err
		})
	}
	in := install.Installer{Instance: instance.Instance{Root: c.root}, Report: c.report}
	if err := in.DynamoDBLocal(ctx); err != nil {
		return err
	}
	return c.report.RunNote(fmt.Sprintf("start DynamoDB Local %s on port %d", dynamodblocal.Version, port), func() (string, error) {
		if !server.Running() {
			if err := machine.PortFree(port, "DynamoDB Local"); err != nil {
				return "", err
			}
		}
		already, err := server.Start(ctx)
		if already {
			return "runs already", err
		}
		return "log: " + server.Log, err
	})
}
