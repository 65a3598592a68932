package simulate

import (
	"strconv"
	"time"

	"almanac/internal/channel"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// replies are what a receiver answers to its first requests, one after the other.
func replies(to string, list ...Reply) func(string, int) Reply {
	return func(name string, n int) Reply {
		if name == to && n <= len(list) {
			return list[n-1]
		}
		return Reply{}
	}
}

// passingScenarios meet failures that pass, and come back.
func passingScenarios() []Scenario {
	return []Scenario{
		{Name: "retried", Half: "delivery", Ended: ended, Want: "succeeded a:submitted b:submitted", Or: mailLost(" b:submitted"),
			Drive: one(Once("s", "a@example.com", "b"), func(w *World) {
				w.Hooks.Answer = replies("b", Reply{Status: 503}, Reply{Cut: true})
				w.Mail.Answer = func(_ string, n int) error {
					if n == 1 {
						return Coded("Throttling", "Maximum sending rate exceeded.")
					}
					return nil
				}
			})},
		{Name: "yields", Half: "delivery", Ended: ended, Want: "succeeded a:submitted b:submitted c:submitted d:submitted e:submitted", Or: mailLost(" b:submitted c:submitted d:submitted e:submitted"),
			Drive: one(Once("s", "b", "c", "d", "e", "a@example.com"), slow)},
		{Name: "S12 redelivery", Half: "delivery", Ended: ended, Want: "succeeded a:submitted b:submitted", Or: mailLost(" b:submitted"),
			Drive: func(w *World) {
				w.atOnce(2)
				twice, own := false, w.Duplicate
				w.Duplicate = func() bool { // the first message goes to two consumers at once
					before := twice
					twice = true
					return !before || own != nil && own()
				}
				w.Apply(Once("s", "a@example.com", "b"))
				w.For(40 * time.Minute)
				_, err := w.Kit(nil).Queue().Send(background, []string{FirstRun("s")}) // and once more when all is done
				w.must(err)
			}},
		{Name: "D10 waits for its turn", Half: "delivery", Ended: ended, Want: "succeeded a:submitted b:submitted", Or: mailLost(" b:submitted"),
			Drive: one(Once("s", "a@example.com", "b"), rated(20*time.Second))},
		{Name: "D10 no turn in time", Half: "delivery", Ended: ended, Want: "succeeded a:submitted b:submitted", Or: mailLost(" b:submitted"),
			Drive: one(Once("s", "a@example.com", "b"), rated(8*time.Minute))},
		{Name: "gives up in two invocations", Half: "delivery", Ended: ended, Want: "failed sender_refused a:not_sent b:not_sent c:not_sent",
			Or: []string{"failed sender_refused a:not_sent b:submitted c:submitted", "failed delivery_unknown a:unknown b:submitted c:submitted"}, // as with a sender that is refused
			Drive: one(Once("s", "a@example.com", "b", "c"), func(w *World) {
				w.Mail.Answer = paused
				w.befalls(func(c *Call) Form {
					if c.Worker.Name == queueRuns && c.Name == "DynamoDB.PutItem" { // the first intent, then those who are given up
						time.Sleep(DeliverTime/2 - 1500*time.Millisecond)
					}
					return AsAsked
				})
			})},
		{Name: "send off and on", Half: "delivery", Ended: ended, Want: "succeeded a:submitted b:submitted c:submitted", Or: mailLost(" b:submitted c:submitted"),
			Drive: func(w *World) {
				w.atOnce(2)
				w.Hooks.Slow = 9 * time.Second
				w.insistAfter(12*time.Second, "send off", turn(false))
				w.insistAfter(3*time.Minute, "send on", turn(true))
				w.Apply(Once("s", "b", "c", "a@example.com"))
				w.For(2 * time.Hour)
			}},
	}
}

// rated has one mail a second go out, and every send time taken until so long after FirstDue.
func rated(until time.Duration) func(*World) {
	return func(w *World) {
		w.MailRate = 1
		k := schema.SendRateKey(channel.Email, "test")
		_, err := w.DB.PutItem(background, &dynamodb.PutItemInput{TableName: aws.String(Schedules), Item: Row{schema.PK: &types.AttributeValueMemberS{Value: string(k.PK)},
			schema.SK: &types.AttributeValueMemberS{Value: string(k.SK)}, schema.TakenUntil: &types.AttributeValueMemberN{Value: strconv.FormatInt(FirstDue.Add(until).UnixMicro(), 10)}}})
		w.must(err)
	}
}

// slow leaves a run no time for all of its recipients in one invocation.
func slow(w *World) {
	w.Data.Slow, w.Hooks.Slow = 4*time.Minute, 9*time.Second
}
