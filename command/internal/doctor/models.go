// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/provider"
)

// models opens each model that the definition names, as a run would, and finds
// what else its agents lack.
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
				return unopened{}, nil // to hear of the others, too
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

// opened notes a model that was opened, or was not, and asks it if it is to be.
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
		d.add("models", name, foundOK, "", "can be opened; --ask asks it")
		return
	}
	began := time.Now()
	if err := askModel(ctx, llm, cmp.Or(d.timeout, within)); err != nil {
		d.add("models", name, foundBroken, d.remedy(name, err), "does not answer: %v", err)
		return
	}
	d.add("models", name, foundOK, "", "answers, after %s", time.Since(began).Round(time.Millisecond))
}

// remedy is what to look at when a model has not answered.
func (d *doctor) remedy(name string, err error) string {
	p, _, findErr := provider.Find(name)
	refusal, ok := errors.AsType[*model.APIError](err)
	if findErr != nil || !ok {
		return "look at the key, the name of the model, and the way to its server"
	}
	way := "the network"
	for _, v := range p.Variables {
		if strings.HasSuffix(v, "_BASE_URL") && d.Getenv(v) != "" {
			way = v + ", and at the network"
		}
	}
	switch refusal.Status {
	case 0:
		return "its server cannot be reached: look at " + way
	case 401, 403:
		return "it refuses this key: check " + strings.Join(p.Keys, " or ")
	case 404:
		return "there is no such model, or nothing at that address: look at the name, and at " + way
	case 429:
		return "it refuses further requests now: check the account's limits and payment"
	}
	return "look at the key, the name of the model, and the way to its server"
}

// askModel sends a question and is content with any answer, cut off or not.
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
	return errors.New("its answer is empty")
}

// unopened stands for a model that could not be opened. Nobody asks it.
type unopened struct{}

func (unopened) Name() string { return "unopened" }

func (unopened) GenerateContent(context.Context, *model.LLMRequest, bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		yield(nil, errors.New("the model could not be opened"))
	}
}
