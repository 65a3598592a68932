package memcloud

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// tokenLife is how long a ClientRequestToken is remembered. Source: "Amazon
// DynamoDB Transactions: How it works" (idempotency),
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
const tokenLife = 10 * time.Minute

// tokens remembers the transactions that took effect. A cancelled one is not
// among them: repeated, it is tried afresh.
type tokens struct {
	seen  map[string]sealed
	order []string // by age
}

type sealed struct {
	print string
	until time.Time
}

// repeated reports whether the same transaction took effect under this token;
// another transaction under it is refused.
func (t *tokens) repeated(now time.Time, token, print string) (bool, error) {
	for len(t.order) > 0 && now.After(t.seen[t.order[0]].until) {
		delete(t.seen, t.order[0])
		t.order = t.order[1:]
	}
	s, ok := t.seen[token]
	if !ok || now.After(s.until) {
		return false, nil
	}
	if s.print != print {
		return false, &types.IdempotentParameterMismatchException{Message: aws.String("Request with the same client token but different parameters: " + token)}
	}
	return true, nil
}

func (t *tokens) remember(now time.Time, token, print string) {
	if _, again := t.seen[token]; !again {
		t.order = append(t.order, token)
	}
	t.seen[token] = sealed{print, now.Add(tokenLife)}
}

// fingerprint is equal for equal transactions. The request has been checked,
// so its values are well formed.
func fingerprint(items []types.TransactWriteItem) string {
	h := sha256.New()
	var out []byte
	for _, item := range items {
		kind, r := requestOf(item)
		out = append(append(out[:0], kind...), '{')
		for _, text := range []*string{r.table, r.update, r.condition, aws.String(string(r.onFailure))} {
			out = encodeText(out, aws.ToString(text))
		}
		for _, name := range sortedNames(r.names) {
			out = encodeText(encodeText(out, name), r.names[name])
		}
		for _, values := range []attributes{r.item, r.key, r.values} {
			out = append(encodeItem(out, values), ';')
		}
		h.Write(append(out, '}'))
	}
	return hex.EncodeToString(h.Sum(nil))
}
