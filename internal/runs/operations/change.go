// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"net/http"
	"slices"

	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/runs/access"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/supervisor"
)

// Caller says who sends a request, as the server knows it. The client's own claims are not in it.
type Caller struct {
	// Person is the person, with a role, whom the server knows by a token or from a proxy. Its name is "token" for a token without a
	// name, and "local" for a server without one; Anonymous is true for both.
	access.Person
	Anonymous bool
	// Address is the network address of the client; it is empty for a client on standard input.
	Address string
	// Via is the method and path, or the protocol, of the request.
	Via string
	// Agent says that a model decides what the client asks for, and may be able to write the files of the folder: see
	// Config.Accepts.
	Agent bool
}

// WithCaller returns a context whose changes are recorded as those of a caller. package server does it for each request,
// unless the context has a caller already.
func WithCaller(ctx context.Context, c Caller) context.Context {
	if CallerOf(ctx) != nil {
		return ctx
	}
	if !c.Anonymous {
		ctx = supervisor.As(ctx, c.Name)
	}
	return context.WithValue(ctx, callerKey{}, &c)
}

type callerKey struct{}

// CallerOf returns the caller of a context; nil if it has none.
func CallerOf(ctx context.Context) *Caller {
	c, _ := ctx.Value(callerKey{}).(*Caller)
	return c
}

// Claimed returns a context whose changes are recorded as those of who, as the client says it. If the server knows who the caller is,
// the claim does not count.
func Claimed(ctx context.Context, who string) context.Context {
	if c := CallerOf(ctx); who == "" || c != nil && !c.Anonymous {
		return ctx
	}
	return supervisor.As(ctx, who)
}

// Permit returns a problem if the caller of a context lacks a role. A context without a caller, such as that of a schedule, has all.
func Permit(ctx context.Context, role access.Role) error {
	c := CallerOf(ctx)
	if c == nil || c.Role >= role {
		return nil
	}
	return problem.New(http.StatusForbidden, "not_permitted", "Your role does not permit that", "%s has the role %s, and this needs the role %s",
		c.Name, c.Role, role)
}

// ErrReadOnly refuses a change where Config.ReadOnly is set.
var ErrReadOnly = problem.New(http.StatusForbidden, "read_only", "This server changes nothing", "it shows runs as they were written down")

// Offers reports whether clients of any protocol get an operation. One that changes something is not offered if
// Config.ReadOnly is set; [Runs.Change] refuses it then, too.
func (r *Runs) Offers(changes bool) bool { return !changes || !r.ReadOnly }

// byAuthors are the changes that need the role of an author; all others need that of an operator.
var byAuthors = []string{WriteDefinition, DeleteDefinition, WriteCases, remove}

// The verbs of these changes.
const (
	WriteDefinition  = "write definition"
	DeleteDefinition = "delete definition"
	WriteCases       = "write cases"
	remove           = "remove"
)

// Change carries out do, which changes the object that it returns, such as a run, and reports the change of a
// caller to the log. It fails with [ErrReadOnly] if Config.ReadOnly is set, and if the caller lacks the role. An empty object means
// that nothing has changed. All changes go through Change, whatever protocol asks for them.
func (r *Runs) Change(ctx context.Context, verb string, do func() (object string, err error)) error {
	if !r.Offers(true) {
		return ErrReadOnly
	}
	role := access.Operator
	if slices.Contains(byAuthors, verb) {
		role = access.Author
	}
	if err := Permit(ctx, role); err != nil {
		return err
	}
	object, err := do()
	if c := CallerOf(ctx); err == nil && object != "" && c != nil {
		r.Log.Info("a client has changed something", "change", verb, "of", credential.Masked(object), "by", c.Name, "from", c.Address,
			"via", credential.Masked(c.Via))
	}
	return err
}

// change is [Runs.Change] for an object that is known before.
func (r *Runs) change(ctx context.Context, verb, object string, do func() error) error {
	return r.Change(ctx, verb, func() (string, error) { return object, do() })
}
