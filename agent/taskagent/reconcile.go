// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
)

// KeyCallID is the placeholder of the call's ID in the templates of [NewCommandReconcile] and
// [NewHTTPReconcile].
const KeyCallID = "call_id"

// NewCommandReconcile returns a Reconcile that runs a command to find out whether a task took
// place. Exit code 0 (or one of OKExitCodes) means that the task took place; the standard output is then
// its result. Exit code 1 means that it did not. Any other exit code, or a signal, leaves it unknown, and the
// standard error gives the reason. The command gets the call's ID in its environment ([EnvCallID]), and its
// templates can use the ID as {{call_id}}. Of the fields of Config only Name is used.
//
// It returns an error for a config that [NewCommand] refuses, and for an OK exit code of 1.
func NewCommandReconcile(cfg CommandConfig) (agent.Reconcile, error) {
	cfg.Config = withName(cfg.Config)
	shapes := map[string]Shape{KeyCallID: callID}
	maps.Copy(shapes, cfg.Shapes)
	cfg.Shapes = shapes
	made, err := NewCommand(cfg)
	if err != nil {
		return nil, err
	}
	a := made.(*CommandAgent)
	if slices.Contains(a.cfg.OKExitCodes, 1) {
		return nil, fmt.Errorf("command agent %q: exit code 1 says that the task was not done, and cannot be OK",
			cfg.Name)
	}
	return a.reconcile, nil
}

// NewHTTPReconcile returns a Reconcile that sends a request to find out whether a task took place.
// A status of 200 to 299 (or one of OKStatus) means that it did; the body is then its result. The status 404 or
// 410 means that it did not. Any other answer leaves it unknown. The templates can use the call's ID
// as {{call_id}}. Of the fields of Config only Name is used.
//
// It returns an error for a config that [NewHTTP] refuses.
func NewHTTPReconcile(cfg HTTPConfig) (agent.Reconcile, error) {
	cfg.Config = withName(cfg.Config)
	cfg.Effect = agent.Pure // the request only reads, so it needs no idempotency key
	made, err := NewHTTP(cfg)
	if err != nil {
		return nil, err
	}
	return made.(*HTTPAgent).reconcile, nil
}

func withName(cfg Config) Config {
	if cfg.Name == "" {
		cfg.Name = "reconcile"
	}
	return Config{Name: cfg.Name}
}

func (a *CommandAgent) reconcile(ctx agent.InvocationContext, call agent.Doubt) (agent.Reconciliation, error) {
	out, err := a.doAs(ctx, call.ID, withCallID(ctx, call.ID))
	if exit, ok := errors.AsType[*ExitError](err); ok && exit.Code == 1 {
		return agent.DidNotHappen(), nil
	}
	return reconciliationOf(&out, err)
}

func (a *HTTPAgent) reconcile(ctx agent.InvocationContext, call agent.Doubt) (agent.Reconciliation, error) {
	out, err := a.doAs(ctx, "", withCallID(ctx, call.ID), a.sends)
	if status, ok := errors.AsType[*StatusError](err); ok && !a.ok(status.Status) &&
		(status.Status == http.StatusNotFound || status.Status == http.StatusGone) {
		return agent.DidNotHappen(), nil
	}
	return reconciliationOf(&out, err)
}

func reconciliationOf(out *outcome, err error) (agent.Reconciliation, error) {
	if err != nil {
		return agent.Reconciliation{}, err
	}
	return agent.Happened(out.output), nil
}

// withCallID returns the step's lookup with the call's ID added.
func withCallID(ctx agent.InvocationContext, id string) func(string) (any, bool) {
	lookup := drive.At(ctx).Lookup
	return func(name string) (any, bool) {
		if name == KeyCallID {
			return id, true
		}
		return lookup(name)
	}
}
