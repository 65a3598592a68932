package awsrules

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// Pages of AWS about Step Functions.
const (
	statesAPI     = "https://docs.aws.amazon.com/step-functions/latest/apireference/API_"
	apiStart      = statesAPI + "StartExecution.html"
	apiDescribe   = statesAPI + "DescribeExecution.html"
	apiStop       = statesAPI + "StopExecution.html"
	pageExecution = "https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html"
)

func (c *check) start(machine, name, input string) (string, error) {
	out, err := c.States.StartExecution(c.ctx, &sfn.StartExecutionInput{StateMachineArn: &machine, Name: &name, Input: &input})
	if err != nil {
		return "", err
	}
	return aws.ToString(out.ExecutionArn), nil
}

// execution is a name of the rule's own.
func (c *check) execution(suffix string) string { return strings.TrimPrefix(c.id, "states-") + suffix }

func (c *check) started(machine, suffix, input string) (arn string) {
	c.Helper()
	arn, err := c.start(machine, c.execution(suffix), input)
	c.ready(err)
	return arn
}

// described looks at an execution until it has the status; nil and a note: it did not get it.
func (c *check) described(arn string, want types.ExecutionStatus) *sfn.DescribeExecutionOutput {
	c.Helper()
	var out *sfn.DescribeExecutionOutput
	var err error
	if !c.eventually(20*time.Second, func() bool {
		out, err = c.States.DescribeExecution(c.ctx, &sfn.DescribeExecutionInput{ExecutionArn: &arn})
		return err == nil && out.Status == want
	}) {
		c.unlike("%s is %v, %v; want %s", arn, out, err, want)
		return nil
	}
	return out
}

func (c *check) stop(arn string) error {
	_, err := c.States.StopExecution(c.ctx, &sfn.StopExecutionInput{ExecutionArn: &arn, Error: aws.String("Stopped"), Cause: aws.String("by the rule")})
	return err
}

// badName is a rule of names: each is refused.
func badName(id, says string, names ...string) Rule {
	return Rule{"states/names/" + id, says, apiStart, func(c *check) {
		for _, name := range names {
			_, err := c.start(c.Machines.Passes, name, `{}`)
			c.refused(fmt.Sprintf("the name %.20q", name), err, "InvalidName", "ValidationException")
		}
	}}
}

func executionNames() []Rule {
	return []Rule{
		{"states/names/length", "a name has up to 80 characters", apiStart, func(c *check) {
			_, err := c.start(c.Machines.Passes, strings.Repeat("n", 80), `{}`)
			c.done("80 characters", err)
		}},
		badName("length-above", "and not more", strings.Repeat("n", 81)),
		badName("characters", "a name has no white space, no brackets, no wildcards, no control characters, and none of \" # % \\ ^ | ~ ` $ & , ; : /",
			"a b", "a\tb", "a\n", "a<b", "a>b", "a{b", "a}b", "a[b", "a]b", "a?b", "a*b", `a"b`, "a#b", "a%b", `a\b`, "a^b", "a|b", "a~b", "a`b", "a$b", "a&b", "a,b", "a;b", "a:b", "a/b",
			"a\x00b", "a\x1fb", "a\u0080b", "a\ufffeb"),
		{"states/names/others", "letters, digits, hyphens, underscores and dots are taken", apiStart, func(c *check) {
			_, err := c.start(c.Machines.Passes, "A-z_0.9-"+c.execution(""), `{}`)
			c.done("such a name", err)
		}},
		{"states/names/idempotent", "the name and input of an execution that runs give that execution", apiStart, func(c *check) {
			first := c.started(c.Machines.Waits, "", `{"n":1}`)
			second, err := c.start(c.Machines.Waits, c.execution(""), `{"n":1}`)
			if c.done("the second start", err) && second != first {
				c.unlike("the second start gave %s; want %s", second, first)
			}
			c.ready(c.stop(first))
		}},
		{"states/names/other-input", "its name with another input is ExecutionAlreadyExists", apiStart, func(c *check) {
			arn := c.started(c.Machines.Waits, "", `{"n":1}`)
			_, err := c.start(c.Machines.Waits, c.execution(""), `{"n":2}`)
			c.refused("another input", err, "ExecutionAlreadyExists")
			c.ready(c.stop(arn))
		}},
		{"states/names/kept", "so is the name of one that has ended, with whichever input", apiStart, func(c *check) {
			arn := c.started(c.Machines.Passes, "", `{"n":1}`)
			if c.described(arn, types.ExecutionStatusSucceeded) == nil {
				return
			}
			for _, input := range []string{`{"n":1}`, `{"n":2}`} {
				_, err := c.start(c.Machines.Passes, c.execution(""), input)
				c.refused("with "+input, err, "ExecutionAlreadyExists")
			}
		}},
		{"states/names/kept-after-stop", "and of one that was stopped", apiStart, func(c *check) {
			arn := c.started(c.Machines.Waits, "", `{}`)
			c.ready(c.stop(arn))
			if c.described(arn, types.ExecutionStatusAborted) != nil {
				_, err := c.start(c.Machines.Waits, c.execution(""), `{}`)
				c.refused("after the stop", err, "ExecutionAlreadyExists")
			}
		}},
		{"states/names/per-machine", "a name is of its state machine alone", apiStart, func(c *check) {
			c.started(c.Machines.Passes, "", `{}`)
			_, err := c.start(c.Machines.Fails, c.execution(""), `{}`)
			c.done("with another machine", err)
		}},
	}
}

func executions() []Rule {
	return []Rule{
		{"states/executions/input", "an input is JSON", apiStart, func(c *check) {
			for _, input := range []string{"{", "x", ""} {
				_, err := c.start(c.Machines.Passes, c.execution("-bad"), input)
				c.refused(fmt.Sprintf("the input %q", input), err, "InvalidExecutionInput")
			}
		}},
		{"states/executions/input-length", "of at most 256 KiB", pageExecution, func(c *check) {
			_, err := c.start(c.Machines.Passes, c.execution(""), `"`+strings.Repeat("x", 256<<10)+`"`)
			c.refused("262,146 bytes", err, "InvalidExecutionInput", "ValidationException")
		}},
		{"states/executions/no-machine", "a state machine that is not there is StateMachineDoesNotExist", apiStart, func(c *check) {
			_, err := c.start(c.Machines.Passes+"-gone", c.execution(""), `{}`)
			c.refused("no machine", err, "StateMachineDoesNotExist")
		}},
		{"states/executions/running", "an execution that runs is RUNNING, with its input, its begin and no end", apiDescribe, func(c *check) {
			arn := c.started(c.Machines.Waits, "", `{"n":1}`)
			if out := c.described(arn, types.ExecutionStatusRunning); out != nil && (aws.ToString(out.Input) != `{"n":1}` || out.StartDate == nil || out.StopDate != nil) {
				c.unlike("the input is %s, begin %v, end %v", aws.ToString(out.Input), out.StartDate, out.StopDate)
			}
			c.ready(c.stop(arn))
		}},
		{"states/executions/succeeded", "one that came to its end is SUCCEEDED", apiDescribe, func(c *check) {
			if out := c.described(c.started(c.Machines.Passes, "", `{}`), types.ExecutionStatusSucceeded); out != nil && (out.StopDate == nil || aws.ToString(out.Error) != "") {
				c.unlike("its end is %v, its error %q", out.StopDate, aws.ToString(out.Error))
			}
		}},
		{"states/executions/failed", "one that failed is FAILED, with error and cause", apiDescribe, func(c *check) {
			if out := c.described(c.started(c.Machines.Fails, "", `{}`), types.ExecutionStatusFailed); out != nil && (aws.ToString(out.Error) != FailureName || aws.ToString(out.Cause) != FailureCause) {
				c.unlike("its error is %q, its cause %q; want %q and %q", aws.ToString(out.Error), aws.ToString(out.Cause), FailureName, FailureCause)
			}
		}},
		{"states/executions/stopped", "one that was stopped is ABORTED, and has an end", apiStop, func(c *check) {
			arn := c.started(c.Machines.Waits, "", `{}`)
			if c.done("the stop", c.stop(arn)) {
				if out := c.described(arn, types.ExecutionStatusAborted); out != nil && out.StopDate == nil {
					c.unlike("it has no end")
				}
			}
		}},
		{"states/executions/stopped-why", "it has the error and the cause that were given", apiStop, func(c *check) {
			arn := c.started(c.Machines.Waits, "", `{}`)
			c.ready(c.stop(arn))
			if out := c.described(arn, types.ExecutionStatusAborted); out != nil && (aws.ToString(out.Error) != "Stopped" || aws.ToString(out.Cause) != "by the rule") {
				c.unlike("its error is %q, its cause %q", aws.ToString(out.Error), aws.ToString(out.Cause))
			}
		}},
		{"states/executions/closed-once", "a stop leaves an execution that has ended as it was", apiStop, func(c *check) {
			arn := c.started(c.Machines.Passes, "", `{}`)
			if c.described(arn, types.ExecutionStatusSucceeded) == nil {
				return
			}
			_ = c.stop(arn) // AWS does not say what it answers
			c.described(arn, types.ExecutionStatusSucceeded)
		}},
		{"states/executions/none", "an execution that is not there is ExecutionDoesNotExist", apiDescribe, func(c *check) {
			arn := strings.Replace(c.Machines.Passes, ":stateMachine:", ":execution:", 1) + ":" + c.execution("-gone")
			_, err := c.States.DescribeExecution(c.ctx, &sfn.DescribeExecutionInput{ExecutionArn: &arn})
			c.refused("a look at none", err, "ExecutionDoesNotExist")
			c.refused("a stop of none", c.stop(arn), "ExecutionDoesNotExist")
		}},
		{"states/executions/no-arn", "what is no ARN of an execution is InvalidArn", apiDescribe, func(c *check) {
			_, err := c.States.DescribeExecution(c.ctx, &sfn.DescribeExecutionInput{ExecutionArn: aws.String("not-an-arn")})
			c.refused("a look at any text", err, "InvalidArn")
		}},
	}
}
