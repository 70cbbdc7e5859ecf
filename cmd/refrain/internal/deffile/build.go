// SPDX-License-Identifier: Apache-2.0

package deffile

import (
	"context"
	"fmt"
	"sync"

	"github.com/refrain-dev/refrain/cmd/refrain/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/provider"
)

// buildConfig is what a run was started with says about the agents. The
// function ends the servers of tools that they have started.
func buildConfig(ctx context.Context, e *term.Env, p *Program,
	def *definition.Definition) (definition.BuildConfig, func(), error) {
	cfg := definition.BuildConfig{
		Root: p.Root, DefaultModel: p.DefaultModel, Getenv: e.Getenv,
		MaxIterations: p.MaxIterations, Timeout: p.Timeout,
	}
	if p.Model != "" && asksModel(def) {
		llm, err := provider.Open(ctx, p.Model, e.Getenv)
		if err != nil {
			return cfg, nil, fmt.Errorf("--model: %w", err)
		}
		cfg.DefaultModel = p.Model
		cfg.Model = func(context.Context, string) (model.LLM, error) { return llm, nil }
	}
	var told sync.Mutex
	cfg.CallbackFailed = func(err error) {
		told.Lock()
		defer told.Unlock()
		term.PrintError(e.Stderr, err)
	}
	var closers []func() error
	cfg.Cleanup = func(end func() error) { closers = append(closers, end) }
	return cfg, func() {
		for _, end := range closers {
			if err := end(); err != nil {
				term.PrintError(e.Stderr, err)
			}
		}
	}, nil
}

func asksModel(def *definition.Definition) bool {
	for a := range def.Root.All {
		if a.Type == definition.TypeLLM {
			return true
		}
	}
	return false
}
