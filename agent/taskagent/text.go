// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/text/requesttemplate"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/session"
)

// TextConfig describes an agent that outputs a text.
type TextConfig struct {
	Config
	// Text is a template of the text that the agent outputs and writes to OutputKey. Required. The
	// result has the field text.
	Text string
}

// TextAgent is the concrete type of [NewText]'s agents.
type TextAgent struct {
	*drive.Base
	task
	cfg  TextConfig
	text *template.Template
}

// NewText returns an agent that outputs a filled-in template. NewText reports every mistake in the
// config, including templates and expressions that cannot be parsed.
func NewText(cfg TextConfig) (agent.Agent, error) {
	a := &TextAgent{cfg: cfg}
	a.task = task{cfg: cfg.Config, do: a.do}
	var s source
	if cfg.Text == "" {
		s.about("Text", "is empty")
	}
	a.text = s.template("Text", cfg.Text, template.Canonical)
	base, err := a.prepare(a, "text", &s)
	if err != nil {
		return nil, err
	}
	a.Base = base
	return a, nil
}

// Config returns the config that the agent was made from.
func (a *TextAgent) Config() TextConfig { return a.cfg }

func (a *TextAgent) do(ctx agent.InvocationContext, _ int, _ func(*session.Event, error) bool) (outcome, error) {
	text, err := requesttemplate.Fill("Text", a.text, drive.At(ctx).Lookup)
	if err != nil {
		return outcome{}, err
	}
	return outcome{words: text, output: text, result: map[string]any{"text": text}}, nil
}
