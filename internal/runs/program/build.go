// SPDX-License-Identifier: Apache-2.0

package program

import (
	"cmp"
	"context"
	"net/http"
	"sync"

	"github.com/refrain-dev/refrain/agent/elsewhere"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/provider"
)

// Env holds the settings of the process that builds the agents.
type Env struct {
	// Code is the Go code that definitions can name.
	Code Code
	// Getenv reads an environment variable; nil means os.Getenv.
	Getenv func(string) string
	// Model opens a model by its name; see definition.BuildConfig. Nil means provider.Open with Getenv.
	Model func(ctx context.Context, name string) (model.LLM, error)
	// Report is called with errors that do not fail a run, such as those of callbacks. Nil ignores
	// them. One goroutine at a time calls it.
	Report func(error)
	// Transport sends the HTTP requests of agents: see definition.BuildConfig.
	Transport http.RoundTripper
	// Elsewhere sends steps with a task queue to their workers: see definition.BuildConfig.
	Elsewhere elsewhere.Dispatcher
	// Store names the store that has the logs of the runs: see definition.BuildConfig.
	Store string
	// Copies is the folder of the trees of workspaces: see definition.BuildConfig.
	Copies string
	// Sandbox limits the commands that have no sandbox of their own: see definition.BuildConfig.
	Sandbox *taskagent.Sandbox
	// StateLimit is the largest state of a run in bytes, whatever its definition says; 0 sets no limit.
	StateLimit int64
	// LogLimit is the largest log of a run of a client's definition in bytes; 0 sets no limit.
	LogLimit int64
	// LogLimitName is that of [agent.RunConfig].
	LogLimitName string
	// Check returns an error if the process must refuse the program. Optional.
	Check func(*Program, *definition.Definition) error
}

// ModelError reports that the model of all agents cannot be opened.
type ModelError struct{ Err error }

// Error returns the reason.
func (e *ModelError) Error() string { return "--model: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *ModelError) Unwrap() error { return e.Err }

// BuildConfig returns the program's part of the configuration for building its agents. The process adds the models
// and the environment.
func (p *Program) BuildConfig() definition.BuildConfig {
	return definition.BuildConfig{Root: p.Root, DefaultModel: cmp.Or(p.Model, p.DefaultModel), Limits: p.Limits,
		Permissions: p.Permissions, TextAnswers: p.TextAnswers, Replace: p.Replace}
}

// config returns the program's settings for its agents. The function stops the tool servers that they have started.
func (p *Program) config(ctx context.Context, env Env,
	def *definition.Definition) (definition.BuildConfig, func(), error) {
	cfg := p.BuildConfig()
	cfg.DefaultModel, cfg.Getenv, cfg.Transport = p.DefaultModel, env.Getenv, env.Transport
	cfg.Elsewhere, cfg.Store, cfg.Copies, cfg.Sandbox = env.Elsewhere, env.Store, env.Copies, env.Sandbox
	cfg.Model = env.Model
	env.Code.Into(&cfg)
	if p.Model != "" && asksModel(def, env.Elsewhere != nil) {
		llm, err := openModel(ctx, env, p.Model)
		if err != nil {
			return cfg, nil, &ModelError{err}
		}
		cfg.DefaultModel = p.Model
		cfg.Model = func(context.Context, string) (model.LLM, error) { return llm, nil }
	}
	var told sync.Mutex
	report := func(err error) {
		told.Lock()
		defer told.Unlock()
		if env.Report != nil {
			env.Report(err)
		}
	}
	cfg.CallbackFailed = report
	var closers []func() error
	cfg.Cleanup = func(end func() error) { closers = append(closers, end) }
	return cfg, func() {
		for _, end := range closers {
			if err := end(); err != nil {
				report(err)
			}
		}
	}, nil
}

func openModel(ctx context.Context, env Env, name string) (model.LLM, error) {
	if env.Model != nil {
		return env.Model(ctx, name)
	}
	return provider.Open(ctx, name, env.Getenv)
}

// asksModel reports whether this process asks a model. Workers open the models of steps elsewhere.
func asksModel(def *definition.Definition, elsewhere bool) bool {
	for a := range def.Root.All {
		if a.Type == definition.TypeLLM && (a.TaskQueue == "" || !elsewhere) {
			return true
		}
	}
	return false
}
