// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/elsewhere"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/values/propagate"
)

// The kinds of tasks that [Here] runs.
const (
	KindCommand = "command"
	KindHTTP    = "http"
)

// Here runs commands and requests on this machine for runs on other machines. It implements
// elsewhere.Doer.
type Here struct {
	// Root is the directory of commands, as in [CommandConfig].
	Root string
	// Client sends requests, as in [HTTPConfig].
	Client *http.Client
}

// Do runs a task. The result includes the task's failure. Do returns an error only if it cannot read the task or encode
// its result.
func (h Here) Do(ctx context.Context, t *elsewhere.Task) (json.RawMessage, error) {
	switch t.Kind {
	case KindCommand:
		var p process
		err := json.Unmarshal(t.Spec, &p)
		if err == nil && len(p.Args) == 0 {
			err = errors.New("there is no program")
		}
		if err != nil {
			return nil, fmt.Errorf("read task %s as a command: %w", t.ID, err)
		}
		got, err := p.run(ctx, h.Root, t.CallID)
		return json.Marshal(processDone{got, kinds.Write(err)})
	case KindHTTP:
		var s sending
		err := json.Unmarshal(t.Spec, &s)
		if err == nil && s.URL == "" {
			err = errors.New("there is no URL")
		}
		if err != nil {
			return nil, fmt.Errorf("read task %s as a request: %w", t.ID, err)
		}
		got, err := h.send(ctx, &s)
		return json.Marshal(httpResult{got, kinds.Write(err)})
	}
	return nil, fmt.Errorf("task %s is of the kind %q, which is neither a command nor a request", t.ID, t.Kind)
}

// send sends the request of another machine. Its error has no secrets.
func (h Here) send(ctx context.Context, s *sending) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, s.Method, s.URL, strings.NewReader(s.Body))
	if err != nil {
		return answer{}, errors.New("the URL of the request cannot be read")
	}
	req.Header = s.Headers.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	propagate.Header(ctx, req.Header)
	var secrets credential.Secrets
	for _, name := range s.Own {
		secrets.Header(name, req.Header.Get(name))
	}
	secrets.Request(req)
	client := h.Client
	if client == nil {
		client = &http.Client{}
	}
	got, err := sendWithin(ctx, careful(client, s.RedirectHosts), req, s.Timeout, s.SizeLimit)
	if err != nil {
		return answer{}, secrets.Error(err)
	}
	return got, nil
}

// processDone is the result of a command.
type processDone struct {
	Ended   completion        `json:"ended,omitzero"`
	Failure elsewhere.Failure `json:"failure,omitempty"`
}

// sending is a request in the form in which it is sent to another machine.
type sending struct {
	Method        string        `json:"method"`
	URL           string        `json:"url"`
	Headers       http.Header   `json:"headers,omitempty"`
	Own           []string      `json:"own,omitempty"` // the names of the headers that the config sets, whose values are secrets
	Body          string        `json:"body,omitempty"`
	Timeout       time.Duration `json:"timeout"`
	SizeLimit     int64         `json:"size_limit"`
	RedirectHosts []string      `json:"redirect_hosts,omitempty"`
}

// httpResult is the result of a request.
type httpResult struct {
	Answer  answer            `json:"answer,omitzero"`
	Failure elsewhere.Failure `json:"failure,omitempty"`
}

// kinds lists the errors of a command or a request that keep their type when another machine reports them.
var kinds = elsewhere.Kinds{
	elsewhere.As[*LimitError]("limit"), elsewhere.Late, elsewhere.As[*NoProgramError]("no_program"),
	elsewhere.Is("not_found", exec.ErrNotFound),
}

// failedElsewhere returns the error for a failure on another machine, with the name of the task queue; nil if f is
// nil.
func (t *task) failedElsewhere(f elsewhere.Failure) error {
	if f == nil {
		return nil
	}
	return fmt.Errorf("task queue %q: %w", t.cfg.Elsewhere.Name, kinds.Read(f))
}

// sendsElsewhere lets another machine send a request.
func (a *HTTPAgent) sendsElsewhere(ctx agent.InvocationContext, req *http.Request, round int) (answer, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return answer{}, err
	}
	s := sending{Method: req.Method, URL: req.URL.String(), Headers: req.Header, Body: string(body),
		Timeout: a.cfg.Timeout, SizeLimit: a.cfg.SizeLimit, RedirectHosts: a.cfg.RedirectHosts,
		Own: slices.Sorted(maps.Keys(a.cfg.Headers))}
	var got httpResult
	if err := a.elsewhere(ctx, KindHTTP, s, round, &got); err != nil {
		return answer{}, err
	}
	return got.Answer, a.failedElsewhere(got.Failure)
}

// elsewhere lets another machine do the task. round is as in doing.
func (t *task) elsewhere(ctx agent.InvocationContext, kind string, spec any, round int, result any) error {
	return t.cfg.Elsewhere.Do(ctx, t.call(kind, spec, round), result)
}

func (t *task) call(kind string, spec any, round int) elsewhere.Call {
	c := elsewhere.Call{Kind: kind, Effect: t.cfg.Effect, Spec: spec}
	if round > 0 {
		c.Part = strconv.Itoa(round + 1)
	}
	return c
}

// attaches reports whether another machine has the task, so that this run can wait for its result. If this
// cannot be found out, attaches returns false, and the task is in doubt.
func (t *task) attaches(ctx agent.InvocationContext, round int) bool {
	if t.cfg.Elsewhere.Name == "" {
		return false
	}
	known, err := t.cfg.Elsewhere.Known(ctx, t.call("", nil, round))
	return known && err == nil
}

// isLost reports whether err means that the result of the task on another machine cannot be known, and the task must not be
// done twice.
func (t *task) isLost(err error) bool {
	_, lost := errors.AsType[*elsewhere.LostError](err)
	return lost && t.once()
}
