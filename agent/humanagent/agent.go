// SPDX-License-Identifier: Apache-2.0

// Package humanagent makes agents that ask a person: to approve something, to
// answer a question, or to edit the state.
//
//	review, err := humanagent.New(humanagent.Config{
//		Name:          "review",
//		Kind:          mark.AskApproval,
//		Text:          "Is this good enough to publish?\n\n{{draft}}",
//		OutputKey:     "review",
//		ExitIfApproved: true,
//		Timeout:       24 * time.Hour,
//		Default:       json.RawMessage("false"),
//	})
//
// The run waits without a process until a person answers, and continues when it is resumed with the
// answer; [drive.Place.Ask] says what this requires. Without that the agent fails with
// [agent.ErrCannotAsk].
package humanagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Config describes an agent that asks a person.
type Config struct {
	// Name is required, unique in the agent's tree, and not "user".
	Name string
	// Description tells other agents the purpose of this agent.
	Description string
	// BeforeAgentCallbacks and AfterAgentCallbacks run around the agent each
	// time it asks, and again when its run is resumed; see [agent.Config].
	BeforeAgentCallbacks []agent.BeforeAgentCallback
	AfterAgentCallbacks  []agent.AfterAgentCallback

	// Kind is the kind of question: [mark.AskApproval], which is the default, [mark.AskText]
	// or [mark.AskEdit].
	Kind mark.QuestionKind
	// Text is a template of the question. Required.
	Text string
	// Options are the answers to choose from, for AskText; if there are none, the person may write
	// anything.
	Options []string
	// Keys are the state keys that may be edited, for AskEdit. Required there.
	Keys []string
	// OutputKey is the state key for the answer: a text, or for an approval a map with approved and
	// reason. An edit does not write it.
	OutputKey string
	// ExitIfApproved ends the nearest loop when the person approves.
	ExitIfApproved bool
	// Timeout limits the wait for the answer; 0 means no limit. After it, Default is the answer, in
	// JSON: true or false, a text, or an object. Without a Default the agent fails with [ErrNoAnswer].
	Timeout time.Duration
	Default json.RawMessage
}

// ErrNoAnswer fails an agent that got no answer in time and has no Default.
var ErrNoAnswer = errors.New("nobody answered in time, and there is no default")

// Agent is the concrete type of [New]'s agents.
type Agent struct {
	*drive.Base
	cfg  Config
	text *template.Template
}

// New returns an agent that asks a person. It reports every mistake in the config.
func New(cfg Config) (agent.Agent, error) {
	if cfg.Kind == "" {
		cfg.Kind = mark.AskApproval
	}
	cfg.Options, cfg.Keys = slices.Clone(cfg.Options), slices.Clone(cfg.Keys)
	a := &Agent{cfg: cfg}
	base, err := drive.NewBase(agent.Config{
		Name: cfg.Name, Description: cfg.Description,
		BeforeAgentCallbacks: cfg.BeforeAgentCallbacks, AfterAgentCallbacks: cfg.AfterAgentCallbacks,
	}, a, a.run)
	a.Base = base
	errs := []error{err}
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if a.text, err = template.Parse(cfg.Text, template.Options{}); err != nil {
		wrong("Text: %w", err)
	}
	if cfg.Text == "" {
		wrong("Text is empty: write the question")
	}
	switch cfg.Kind {
	case mark.AskApproval, mark.AskText, mark.AskEdit:
	default:
		wrong("Kind is %s, %s or %s, not %q", mark.AskApproval, mark.AskText, mark.AskEdit, cfg.Kind)
	}
	if (cfg.Kind == mark.AskEdit) != (len(cfg.Keys) > 0) {
		wrong("Keys are for Kind %s, which needs them", mark.AskEdit)
	}
	if len(cfg.Options) > 0 && cfg.Kind != mark.AskText {
		wrong("Options are for Kind %s", mark.AskText)
	}
	if cfg.ExitIfApproved && cfg.Kind != mark.AskApproval {
		wrong("ExitIfApproved is for Kind %s", mark.AskApproval)
	}
	if cfg.Timeout < 0 {
		wrong("Timeout is negative: %s", cfg.Timeout)
	}
	if cfg.Default != nil {
		if cfg.Timeout == 0 {
			wrong("Default is set, but no Timeout")
		}
		q := a.question("", nil)
		q.ID = "the question"
		if err := q.Check(&mark.Answer{Value: cfg.Default}); err != nil {
			wrong("Default: %w", err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("human agent %q: %w", cfg.Name, err)
	}
	return a, nil
}

// Config returns the config that the agent was made from, with the defaults filled in.
func (a *Agent) Config() Config { return a.cfg }

// Type returns [agent.TypeHuman].
func (a *Agent) Type() agent.Type { return agent.TypeHuman }

// Traits says that a resumed run continues the agent, because it must not ask a question again.
func (a *Agent) Traits(bool) drive.Traits { return drive.Traits{Continues: true} }

func (a *Agent) run(ctx agent.InvocationContext, yield func(*session.Event, error) bool) {
	ev, err := a.ask(ctx, yield)
	switch {
	case err != nil:
		yield(nil, err)
	case ev != nil:
		yield(ev, nil)
	}
}

// ask returns the event with the answer; nil if the agent has to leave.
func (a *Agent) ask(ctx agent.InvocationContext, yield func(*session.Event, error) bool) (*session.Event, error) {
	text, err := a.text.Execute(drive.At(ctx).Lookup)
	if err != nil {
		return nil, fmt.Errorf("fill the question: %w", err)
	}
	q := a.question(drive.At(ctx).QuestionID(1), drive.At(ctx).State())
	q.Text = text
	answer, err := drive.At(ctx).Ask(nil, q, yield)
	if answer == nil {
		return nil, err
	}
	if known := drive.At(ctx).Recorded(); known != nil {
		return known, nil
	}
	if len(answer.Value) == 0 {
		return nil, ErrNoAnswer
	}
	if err := q.Check(answer); err != nil {
		return nil, err
	}
	return a.read(answer)
}

// question returns the question without its text.
func (a *Agent) question(id string, state session.ReadonlyState) mark.Question {
	q := mark.Question{ID: id, Kind: a.cfg.Kind, Options: a.cfg.Options, Default: a.cfg.Default}
	if a.cfg.Timeout > 0 {
		q.Deadline = time.Now().Add(a.cfg.Timeout).UTC().Truncate(time.Millisecond)
	}
	for _, key := range a.cfg.Keys {
		var v any
		if state != nil {
			v, _ = state.Get(key)
		}
		if q.Keys == nil {
			q.Keys = make(map[string]any, len(a.cfg.Keys))
		}
		q.Keys[key] = v
	}
	return q
}

// read turns an answer, which is one to the question, into an event.
func (a *Agent) read(answer *mark.Answer) (*session.Event, error) {
	ev := &session.Event{}
	var words string
	var output any
	switch a.cfg.Kind {
	case mark.AskText:
		if err := json.Unmarshal(answer.Value, &words); err != nil {
			return nil, err
		}
		output = words
	case mark.AskEdit:
		edit, err := session.PlainJSON(answer.Value)
		if err != nil {
			return nil, err
		}
		ev.Actions.StateDelta, _ = edit.(map[string]any)
		words = "edited: " + strings.Join(slices.Sorted(maps.Keys(ev.Actions.StateDelta)), ", ")
	default:
		var approved bool
		if err := json.Unmarshal(answer.Value, &approved); err != nil {
			return nil, err
		}
		if words = "rejected"; approved {
			words = "approved"
		}
		if answer.Reason != "" {
			words += ": " + answer.Reason
		}
		output = map[string]any{"approved": approved, "reason": answer.Reason}
		if approved && a.cfg.ExitIfApproved {
			ev.Actions.Escalate = true
			ev.Actions.Exit = &session.Exit{By: a.cfg.Name, Reason: words}
		}
	}
	if a.cfg.OutputKey != "" && output != nil {
		ev.Actions.StateDelta = map[string]any{a.cfg.OutputKey: output}
	}
	ev.Content = genai.NewContentFromText(words, genai.RoleModel)
	return ev, nil
}
