// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/refrain-dev/refrain/internal/runs/access"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/runs/record"
)

// checkPush returns an error if notifications cannot be sent to an address, or must not be.
func (a *a2aAgent) checkPush(c *a2a.PushConfig) error {
	u, err := url.Parse(c.URL)
	texts := []string{c.URL, c.Token, c.ID}
	if c.Auth != nil {
		texts = append(texts, c.Auth.Scheme, c.Auth.Credentials)
		if c.Auth.Credentials != "" && strings.ContainsAny(c.Auth.Scheme, " \t") {
			return problem.Bad("authentication: the scheme %q is not one word, such as Bearer", c.Auth.Scheme)
		}
	}
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return problem.Bad("the url of the notifications is not one of a web server, such as https://host/path")
	case u.User != nil:
		return problem.Bad("the url of the notifications has a password: give it as authentication, with its scheme and credentials")
	}
	for _, text := range texts {
		if len(text) > pushTextMost || strings.ContainsFunc(text, unicode.IsControl) {
			return problem.Bad("the url, the token and the credentials of the notifications have at most %d characters, and no control characters",
				pushTextMost)
		}
	}
	if err := a.s.runs.MayReach(u.Hostname()); err != nil {
		return problem.Bad("the url of the notifications: %v", err)
	}
	return nil
}

// withoutCredentials returns an address as the client gets it. The credentials are left out, because the client knows them.
func withoutCredentials(t *pushTarget) *a2a.PushConfig {
	c := t.PushConfig
	if c.Auth != nil {
		c.Auth = &a2a.PushAuthInfo{Scheme: c.Auth.Scheme}
	}
	return &c
}

// targets returns the addresses that get the changes of a task. It fails if the task is not one of the definition.
func (a *a2aAgent) targets(ctx context.Context, id a2a.TaskID) ([]*pushTarget, error) {
	if err := operations.Permit(ctx, access.Operator); err != nil { // an address may have a password in it
		return nil, err
	}
	if err := a.checkTask(ctx, id); err != nil {
		return nil, err
	}
	rec, _, err := a.s.pushes.records.Read(ctx, string(id))
	if err != nil {
		return nil, err
	}
	return rec.Targets, nil
}

// noTarget returns the problem that a task has no address with an ID.
func noTarget(id string) error {
	return problem.New(http.StatusNotFound, "no_push_config", "There is no such address for notifications", "%q", id)
}

// GetTaskPushConfig returns an address that gets the changes of a task.
func (a *a2aAgent) GetTaskPushConfig(ctx context.Context, req *a2a.GetTaskPushConfigRequest) (*a2a.PushConfig, error) {
	all, err := a.targets(ctx, req.TaskID)
	if err != nil {
		return nil, a.protocolError(err)
	}
	for _, t := range all {
		if t.ID == req.ID || req.ID == "" && len(all) == 1 { // a client of version 0.3 may omit the ID
			return withoutCredentials(t), nil
		}
	}
	return nil, a.protocolError(noTarget(req.ID))
}

// ListTaskPushConfigs returns all addresses of a task, on one page.
func (a *a2aAgent) ListTaskPushConfigs(ctx context.Context, req *a2a.ListTaskPushConfigRequest) (*a2a.ListTaskPushConfigResponse, error) {
	all, err := a.targets(ctx, req.TaskID)
	if err != nil {
		return nil, a.protocolError(err)
	}
	out := &a2a.ListTaskPushConfigResponse{Configs: []*a2a.PushConfig{}}
	for _, t := range all {
		out.Configs = append(out.Configs, withoutCredentials(t))
	}
	return out, nil
}

// CreateTaskPushConfig adds an address to a task. The server sends the task to this address at once, and then at each
// change of the task's state.
func (a *a2aAgent) CreateTaskPushConfig(ctx context.Context, c *a2a.PushConfig) (*a2a.PushConfig, error) {
	err := operations.Permit(ctx, access.Operator)
	if err == nil {
		err = a.checkTask(ctx, c.TaskID)
	}
	if err == nil {
		err = a.checkPush(c)
	}
	if err == nil {
		err = a.s.pushes.add(context.WithoutCancel(ctx), c, a.old)
	}
	if err != nil {
		return nil, a.protocolError(err)
	}
	return withoutCredentials(&pushTarget{PushConfig: *c}), nil
}

// DeleteTaskPushConfig removes an address from a task.
func (a *a2aAgent) DeleteTaskPushConfig(ctx context.Context, req *a2a.DeleteTaskPushConfigRequest) error {
	if _, err := a.targets(ctx, req.TaskID); err != nil {
		return a.protocolError(err)
	}
	err := a.s.runs.Change(ctx, "remove push address", func() (string, error) {
		return string(req.TaskID), a.s.pushes.records.Change(context.WithoutCancel(ctx), string(req.TaskID), func(rec *pushRecord) error {
			left := slices.DeleteFunc(slices.Clone(rec.Targets), func(t *pushTarget) bool { return t.ID == req.ID })
			if len(left) == len(rec.Targets) {
				return record.ErrSame // the protocol says that an unknown ID is not an error
			}
			rec.Targets = left
			return nil
		})
	})
	return a.protocolError(err)
}
