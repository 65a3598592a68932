package simulate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// paused is how SES answers while it takes nothing from the account.
func paused(string, int) error { return Coded("AccountSendingPausedException", "paused") }

// nobody lets a schedule's boss and the receiver n be told.
func telling(d schedule.Definition) schedule.Definition {
	d.Notify = recipients1("boss@example.com", "n")
	return d
}

func wrong(d schedule.Definition) schedule.Definition {
	d.Query = "select nothing"
	return d
}

func empty(d schedule.Definition) schedule.Definition {
	d.Query, d.Empty = "select id from flights where 1 = 0", schedule.SuppressEmpty
	return d
}

func managers(members ...string) schedule.Group {
	return schedule.Group{ID: "managers", Name: "Managers", Workspaces: []string{"*"}, Recipients: recipients1(members...)}
}

// grouped names a group in the place of its members.
func grouped(w *World, members ...string) schedule.Definition {
	_, err := w.Kit(nil).Editor().ApplyGroup(background, managers(members...), "ann", 0)
	w.must(err)
	d := Once("s", "b")
	d.Recipients = append(d.Recipients, schedule.Recipient{Group: "managers"})
	return d
}

// apart moves the recipients of a definition's first version into an object, as a list that is too long for its row.
func (w *World) apart(id string) (object string) {
	s := w.Kit(nil).Store()
	v, err := s.Outline(background, id, 1)
	w.must(err)
	list, err := json.Marshal(v.Recipients)
	w.must(err)
	sum := sha256.Sum256(list)
	hash := hex.EncodeToString(sum[:])
	w.must(s.Lists.PutList(background, hash, list))
	n := len(v.Recipients)
	v.Recipients = nil
	body, err := json.Marshal(v.Definition)
	w.must(err)
	k := schema.DefinitionKey(id, 1)
	_, err = w.DB.UpdateItem(background, &dynamodb.UpdateItemInput{TableName: aws.String(Schedules), Key: Row{schema.PK: &types.AttributeValueMemberS{Value: string(k.PK)}, schema.SK: &types.AttributeValueMemberS{Value: string(k.SK)}},
		UpdateExpression:         aws.String("SET #body = :body, #hash = :hash, #count = :count"),
		ExpressionAttributeNames: map[string]string{"#body": schema.Body, "#hash": schema.RecipientsHash, "#count": schema.RecipientsCount},
		ExpressionAttributeValues: Row{":body": &types.AttributeValueMemberS{Value: string(body)}, ":hash": &types.AttributeValueMemberS{Value: hash},
			":count": &types.AttributeValueMemberN{Value: fmt.Sprint(n)}}})
	w.must(err)
	object = schema.ListKey(hash)
	w.changes = nil // by the scenario's own hand: no version is ever written again
	return object
}

// removed takes away an object by the scenario's own hand.
func (w *World) removed(key string) {
	_, err := w.S3.DeleteObject(background, &s3.DeleteObjectInput{Bucket: aws.String(FileBucket), Key: &key})
	w.must(err)
	w.blobs = nil
}

// plainScenarios need no try but the first.
func plainScenarios() []Scenario {
	return []Scenario{
		{Name: "happy", Half: "delivery", Ended: ended, Want: "succeeded a:submitted b:submitted", Or: mailLost(" b:submitted"),
			Drive: one(Definition("s", "a@example.com", "b"), nil)},
		{Name: "bad recipient", Half: "delivery", Ended: ended, Want: "succeeded a:skipped=invalid b:skipped=refused c:submitted",
			Or: []string{"failed delivery_unknown a:unknown b:skipped=refused c:submitted"},
			Drive: one(Once("s", "a@example.com", "b", "c"), func(w *World) {
				w.Mail.Answer = func(string, int) error {
					return Coded("InvalidParameterValue", "Local address contains control or whitespace")
				}
				w.Hooks.Answer = func(name string, _ int) Reply {
					if name == "b" {
						return Reply{Status: 410}
					}
					return Reply{}
				}
			})},
		{Name: "wrong query", Half: "delivery", Ended: ended, Want: "failed query_invalid", Drive: one(wrong(Once("s", "a@example.com", "b")), nil)},
		{Name: "empty", Half: "delivery", Ended: ended, Want: "skipped", Drive: one(empty(Once("s", "a@example.com", "b")), nil)},
		{Name: "sender refused", Half: "delivery", Ended: ended, Want: "failed sender_refused a:not_sent b:not_sent",
			// Where the first attempt broke off before the mail was refused, those not asked yet come first in the next.
			Or:    []string{"failed sender_refused a:not_sent b:submitted", "failed delivery_unknown a:unknown b:submitted"},
			Drive: one(Once("s", "a@example.com", "b"), func(w *World) { w.Mail.Answer = paused })},
		{Name: "group", Half: "delivery", Ended: ended, Want: "succeeded a:submitted b:submitted c:submitted", Or: mailLost(" b:submitted c:submitted"),
			Drive: func(w *World) {
				w.Apply(grouped(w, "a@example.com", "c"))
				first(w)
			}},
		{Name: "list apart", Half: "delivery", Ended: ended, Want: "succeeded a:submitted b:submitted", Or: mailLost(" b:submitted"),
			Drive: func(w *World) {
				w.Apply(Once("s", "a@example.com", "b"))
				w.apart("s")
				first(w)
			}},
		{Name: "list gone", Half: "delivery", Ended: ended, Want: "failed definition_invalid",
			Drive: func(w *World) {
				w.Apply(Once("s", "a@example.com", "b"))
				w.removed(w.apart("s"))
				first(w)
			}},
		{Name: "D14 told of a failure and a recovery", Half: "delivery", Ended: told2, Want: "failed query_invalid; succeeded b:submitted; told failed, recovered",
			Drive: func(w *World) {
				w.Apply(wrong(telling(Definition("s", "b"))))
				w.For(2 * time.Hour)
				w.Apply(telling(Definition("s", "b")))
				w.For(22*time.Hour + 31*time.Minute)
			}},
		{Name: "D14 told of a pause", Half: "delivery", Ended: told2, Want: "failed query_invalid; told paused",
			Drive: func(w *World) {
				d := wrong(telling(Once("s", "b")))
				d.PauseAfter = aws.Int(1)
				w.Apply(d)
				first(w)
			}},
	}
}

// told2 says how the runs ended, and of what people were told: each event once, however often.
func told2(w *World) string {
	var kinds []string
	for _, l := range w.Mail.To("boss@example.com") {
		if kind := l.Header.Get("X-Almanac-Event"); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	out := ended(w) + "; told"
	for i, k := range kinds {
		if i > 0 {
			out += ","
		}
		out += " " + k[len("schedule."):]
	}
	return out
}
