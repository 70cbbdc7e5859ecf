// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/provider"
	"github.com/refrain-dev/refrain/tool/mcptoolset"
)

// models opens each model of the definition as a run does, and checks what else its agents need.
func (d *doctor) models(ctx context.Context, def *definition.Definition) {
	type opened struct {
		name string
		llm  model.LLM
		err  error
	}
	var all []opened
	cfg := definition.BuildConfig{
		DefaultModel: d.Getenv("REFRAIN_MODEL"), Getenv: d.Getenv,
		Model: func(ctx context.Context, name string) (model.LLM, error) {
			llm, err := provider.Open(ctx, name, d.Getenv)
			all = append(all, opened{name, llm, err})
			if err != nil {
				return missingModel{}, nil // so that the other models are checked too
			}
			return llm, nil
		},
	}
	d.Code.Into(&cfg)
	_, err := def.Build(ctx, cfg)
	for _, o := range all {
		d.opened(ctx, o.name, o.llm, o.err, initTimeout(def))
	}
	var problems definition.Problems
	switch {
	case errors.As(err, &problems):
		for _, p := range d.from.Problems(problems) {
			d.add("agents", fmt.Sprintf("%s:%d", p.File, p.Line), foundBroken, p.Hint, "%s", p.Message)
		}
	case err != nil:
		d.add("agents", def.Name, foundBroken, "", "%v", err)
	}
}

func initTimeout(def *definition.Definition) time.Duration {
	return cmp.Or(def.InitTimeout, definition.DefaultInitTimeout)
}

// defaultModel opens the model that REFRAIN_MODEL names.
func (d *doctor) defaultModel(ctx context.Context, name string) {
	bounded, cancel := context.WithTimeout(ctx, definition.DefaultInitTimeout)
	defer cancel()
	llm, err := provider.Open(bounded, name, d.Getenv)
	d.opened(ctx, name, llm, err, definition.DefaultInitTimeout)
}

// opened reports whether a model could be opened, and asks the model if --ask is given.
func (d *doctor) opened(ctx context.Context, name string, llm model.LLM, err error, within time.Duration) {
	if err != nil {
		d.add("models", name, foundBroken, "", "%v", err)
		return
	}
	if p, _, err := provider.Find(name); err == nil && p.Name == "scripted" {
		d.add("models", name, foundOK, "", "a script, which answers without a network")
		return
	}
	if !d.ask {
		d.add("models", name, foundOK, "", "can be opened; --ask sends a question to it")
		return
	}
	began := time.Now()
	if err := askModel(ctx, llm, cmp.Or(d.timeout, within)); err != nil {
		d.add("models", name, foundBroken, d.remedy(name, err), "does not answer: %v", err)
		return
	}
	d.add("models", name, foundOK, "", "answers, after %s", brief.Clock(time.Since(began)))
}

// remedy returns what to check when a model has not answered.
func (d *doctor) remedy(name string, err error) string {
	p, _, findErr := provider.Find(name)
	refusal, ok := errors.AsType[*model.APIError](err)
	if findErr != nil || !ok {
		return "check the key, the name of the model, and the network"
	}
	way := "the network"
	for _, v := range p.Variables {
		if strings.HasSuffix(v, "_BASE_URL") && d.Getenv(v) != "" {
			way = v + " and the network"
		}
	}
	switch refusal.Status {
	case 0:
		return "the server cannot be reached; check " + way
	case 401, 403:
		return "the server refuses this key; check " + strings.Join(p.Keys, " or ")
	case 404:
		return "the server has no such model, or the address is wrong; check the name of the model and " + way
	case 429:
		return "the server refuses further requests for now; check the account's limits and billing"
	}
	return "check the key, the name of the model, and " + way
}

// askModel sends a question and accepts any answer, even an incomplete one.
func askModel(ctx context.Context, llm model.LLM, within time.Duration) error {
	late := fmt.Errorf("no answer within %s", within)
	ctx, cancel := context.WithTimeoutCause(ctx, within, late)
	defer cancel()
	req := &model.LLMRequest{
		Contents: []*genai.Content{genai.NewContentFromText("Answer with the word ok.", genai.RoleUser)},
		Config:   &genai.GenerateContentConfig{MaxOutputTokens: 64},
	}
	for resp, err := range llm.GenerateContent(ctx, req, false) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || resp != nil {
			return err
		}
	}
	return errors.New("the answer is empty")
}

// missingModel takes the place of a model that could not be opened. No agent asks it.
type missingModel struct{}

func (missingModel) Name() string { return "unopened" }

func (missingModel) GenerateContent(context.Context, *model.LLMRequest, bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		yield(nil, errors.New("the model could not be opened"))
	}
}

// server starts a tool server or connects to it, and lists its tools. It calls none of them.
func (d *doctor) server(ctx context.Context, def *definition.Definition, a *definition.Agent, m *definition.MCP) {
	at, within := fmt.Sprintf("%s %s, %s", d.from.At(a.Position()), a.Name, m), initTimeout(def)
	for _, name := range m.Variables() {
		if d.Getenv(name) == "" {
			return // building the agents has already reported the error
		}
		d.secret(name)
	}
	cfg := m.Config("", d.Getenv)
	cfg.Prefix, cfg.ConnectTimeout = "", within+time.Second // longer than the context, which ends first
	set, err := mcptoolset.New(cfg)
	if err != nil {
		d.add("tools", at, foundBroken, "", "%v", err)
		return
	}
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tools, err := set.Tools(plainContext{ctx: bounded})
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		err = &definition.InitError{Agent: a.Name, What: m.String(), After: within}
	}
	closed := set.Close()
	switch {
	case err != nil:
		d.add("tools", at, foundBroken, "start the server by hand to see its output", "%v", err)
		return
	case closed != nil:
		d.add("tools", at, foundBroken, "", "%v", closed)
		return
	}
	var names []string
	for _, t := range tools {
		names = append(names, t.Name())
	}
	for _, name := range m.Only {
		if !slices.Contains(names, name) {
			d.add("tools", at, foundBroken, "write the names as the server has them, without a prefix",
				"the server has no tool %q; its tools are %s", name, strings.Join(names, ", "))
			return
		}
	}
	d.add("tools", at, foundOK, "", "starts, with %d tools: %s", len(names), strings.Join(names, ", "))
}

// plainContext is a context outside of any turn, which is enough to list tools.
type plainContext struct {
	agent.ReadonlyContext
	ctx context.Context
}

func (c plainContext) Deadline() (time.Time, bool) { return c.ctx.Deadline() }
func (c plainContext) Done() <-chan struct{}       { return c.ctx.Done() }
func (c plainContext) Err() error                  { return c.ctx.Err() }
func (c plainContext) Value(key any) any           { return c.ctx.Value(key) }
