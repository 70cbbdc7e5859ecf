// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/provider"
)

// buildConfig is what the flags and the environment say about the agents. The
// function ends the servers of tools that they have started.
func buildConfig(ctx context.Context, e *env, f runFlags, def *definition.Definition) (definition.BuildConfig, func(), error) {
	cfg := definition.BuildConfig{Root: f.root, DefaultModel: e.getenv("REFRAIN_MODEL"), Getenv: e.getenv}
	cfg.MaxIterations = f.limits.iterations()
	var err error
	if cfg.Timeout, err = f.limits.time(); err != nil {
		return cfg, nil, err
	}
	if f.model != "" && asksModel(def) {
		llm, err := provider.Open(ctx, f.model, e.getenv)
		if err != nil {
			return cfg, nil, fmt.Errorf("--model: %w", err)
		}
		cfg.DefaultModel = f.model
		cfg.Model = func(context.Context, string) (model.LLM, error) { return llm, nil }
	}
	var closers []func() error
	cfg.Cleanup = func(end func() error) { closers = append(closers, end) }
	return cfg, func() {
		for _, end := range closers {
			if err := end(); err != nil {
				printError(e.stderr, err)
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
