package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"

	"almanac/internal/api/routes"
)

// Claims yields the claims of the request's token after somebody has verified it: an HTTP API's authorizer in front of
// the function, or the function itself where there is none (package token). ErrNoClaims where the request has no token,
// an error that wraps it and says why where the token is not valid, any other error where that could not be found out.
type Claims interface {
	Claims(r *http.Request) (map[string]string, error)
}

// ErrNoClaims says that the request bears no verified token.
var ErrNoClaims = errors.New("no verified token")

// AuthorizerClaims reads what an HTTP API's JWT authorizer verified and passed on in the event (Lambda puts it into
// the request's context). It never looks at headers: those are the caller's to write.
type AuthorizerClaims struct{}

type claimsKey struct{}

// Claims returns the event's claims.
func (AuthorizerClaims) Claims(r *http.Request) (map[string]string, error) {
	c, _ := r.Context().Value(claimsKey{}).(map[string]string)
	if len(c) == 0 {
		return nil, ErrNoClaims
	}
	return c, nil
}

// Identity is who asks, and what they may do where.
type Identity struct {
	Subject    string // stable id of the principal
	Name       string // what audit records show
	everywhere routes.Right
	in         map[string]routes.Right
}

// Groups that give a role in every workspace; followed by @ and a workspace they give it in that one.
var roles = map[string]routes.Right{"viewer": routes.Viewer, "operator": routes.Operator, "admin": routes.Admin}

var rightNames = map[routes.Right]string{routes.Viewer: "viewer", routes.Operator: "operator", routes.Admin: "admin", routes.Stage: "admin", routes.Local: "admin"}

// identify maps claims to an identity: the one place where groups become rights. Groups that are not the product's
// are ignored. ok is false where the token names nobody.
func identify(claims map[string]string) (id Identity, ok bool) {
	id = Identity{Subject: claims["sub"], in: map[string]routes.Right{}}
	if id.Subject == "" {
		id.Subject = claims["client_id"]
	}
	for _, c := range []string{"username", "cognito:username", "email"} {
		if id.Name = claims[c]; id.Name != "" {
			break
		}
	}
	if id.Name == "" {
		id.Name = id.Subject
	}
	for _, g := range groups(claims["cognito:groups"]) {
		role, workspace, scoped := strings.Cut(g, "@")
		right := roles[role]
		switch {
		case right == routes.Public || scoped && (!identifier(workspace) || strings.ContainsAny(workspace, "\",[]")):
		case scoped:
			id.in[workspace] = max(id.in[workspace], right)
		default:
			id.everywhere = max(id.everywhere, right)
		}
	}
	return id, id.Subject != ""
}

// groups takes apart how an HTTP API spells a list claim: its items in brackets, a blank between two. Nothing else
// separates: a Cognito group's name may hold commas, quotes and brackets, but no blank, so that no name is taken for
// several (https://docs.aws.amazon.com/cognito-user-identity-pools/latest/APIReference/API_CreateGroup.html, GroupName).
// JSON is not read, as the one name "admin", quotes included, would be spelled like a JSON list. Another issuer must
// not give groups with a blank in their names: the authorizer's spelling hides where they end. Where the function
// verifies tokens itself, package token leaves such names out. A claim without brackets is one name.
func groups(claim string) []string {
	items, listed := strings.CutPrefix(claim, "[")
	if items, closed := strings.CutSuffix(items, "]"); listed && closed {
		return strings.Split(items, " ")
	}
	return []string{claim}
}

// In is the caller's right in a workspace.
func (i Identity) In(workspace string) routes.Right { return max(i.everywhere, i.in[workspace]) }

// Everywhere is the caller's right in all workspaces.
func (i Identity) Everywhere() routes.Right { return i.everywhere }

// Highest is the caller's best right in any workspace: what a route may be entered with, before its workspace is known.
func (i Identity) Highest() routes.Right {
	best := i.everywhere
	for _, r := range i.in {
		best = max(best, r)
	}
	return best
}

// Workspaces lists the workspaces that the caller may see when it is not all of them.
func (i Identity) Workspaces() (names []string, all bool) {
	if i.everywhere >= routes.Viewer {
		return nil, true
	}
	for w := range i.in {
		names = append(names, w)
	}
	return names, false
}

// Hash names the caller in logs.
func (i Identity) Hash() string {
	sum := sha256.Sum256([]byte("principal\n" + i.Subject))
	return hex.EncodeToString(sum[:8])
}

type identityKey struct{}

// caller is the identity that the guard put into the context; the zero identity may do nothing.
func caller(ctx context.Context) Identity {
	id, _ := ctx.Value(identityKey{}).(Identity)
	return id
}
