package snapshot_test

import (
	"strings"
	"testing"

	"almanac/internal/failure"
	"almanac/internal/memcloud"
	"almanac/internal/schema"
	"almanac/internal/snapshot"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A month of too many chunks is refused where it comes to that, and for good: not after all of them, by a manifest that
// fits no memory.
func TestMonthOfTooManyChunks(t *testing.T) {
	a := newAttempts(t, trips())
	a.load(tripsTable, rowsFrom(5, 250))
	r := a.plan(newark)
	j := a.claim(r.ID())
	_, err := a.call(bg, snapshot.StepInput{Step: snapshot.StepStart, Job: j})
	a.must(err)
	killed := false
	a.fault = func(_ int, c memcloud.Call, after bool) bool {
		first := after && c.Operation == "TransactWriteItems" && !killed
		killed = killed || first
		return first
	}
	if _, err := a.call(bg, snapshot.StepInput{Step: snapshot.StepGenerate, Job: j}); err == nil {
		t.Fatal("the process was to die")
	}
	k := schema.SnapshotKey(r.Workspace, r.Type, r.Month.String(), r.Version)
	_, err = a.db.UpdateItem(bg, &dynamodb.UpdateItemInput{TableName: aws.String("Snapshots"), Key: map[string]types.AttributeValue{
		schema.PK: &types.AttributeValueMemberS{Value: string(k.PK)}, schema.SK: &types.AttributeValueMemberS{Value: string(k.SK)}},
		UpdateExpression: aws.String("SET #c = :c"), ExpressionAttributeNames: map[string]string{"#c": schema.Cursor},
		ExpressionAttributeValues: map[string]types.AttributeValue{":c": &types.AttributeValueMemberN{Value: "49999"}}})
	a.must(err)
	a.walk(j)
	r = a.run(r.ID())
	if r.ErrorCode != string(failure.DefinitionInvalid) || !r.Final() || r.Cursor.Chunk != snapshot.MaxChunks || !strings.Contains(r.ErrorText, "raise chunk_rows, which is 100") {
		t.Fatalf("%s at chunk %d: %s %s", r.State, r.Cursor.Chunk, r.ErrorCode, r.ErrorText)
	}
}
