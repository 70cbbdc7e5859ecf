// SPDX-License-Identifier: Apache-2.0

// Package stephost does steps of runs that are driven on other machines: see package elsewhere. It
// runs the same code as a step that is done where the run is driven, with the environment, the keys,
// the files and the network of this machine.
//
//	host := stephost.New(stephost.Config{Root: "/srv/work"})
//	result, err := host.Do(ctx, task)
//
// Package temporal has workers that get tasks from a Temporal cluster.
package stephost

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"

	"github.com/refrain-dev/refrain/agent/elsewhere"
	"github.com/refrain-dev/refrain/agent/remoteagent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/provider"
)

// Config says what the steps find here.
type Config struct {
	// Root is the directory in which commands run; their field dir cannot leave it. Scripts of
	// scripted models are below it too. The default is the current directory.
	Root string
	// Getenv reads the environment variables with keys and addresses of models; nil means os.Getenv.
	// Commands inherit the environment of this process.
	Getenv func(string) string
	// Model opens a model by its name; nil means provider.Open with Getenv. It is called once for each
	// name, until it succeeds.
	Model func(ctx context.Context, name string) (model.LLM, error)
	// Transport sends requests of steps of the types http and a2a; nil means http.DefaultTransport.
	Transport http.RoundTripper
}

// Host does steps. It is safe for concurrent use. Make one with [New].
type Host struct {
	cfg    Config
	client *http.Client // nil for the defaults

	mu     sync.Mutex
	models map[string]model.LLM
}

var _ elsewhere.Doer = (*Host)(nil)

// New returns a host.
func New(cfg Config) *Host {
	h := &Host{cfg: cfg, models: make(map[string]model.LLM)}
	if cfg.Transport != nil {
		h.client = &http.Client{Transport: cfg.Transport}
	}
	return h
}

// Do does a task. How the step fails is part of the result; the error says that this host does not
// know such tasks, as one of an older version may not.
func (h *Host) Do(ctx context.Context, t *elsewhere.Task) (json.RawMessage, error) {
	switch t.Kind {
	case taskagent.KindCommand, taskagent.KindHTTP:
		return taskagent.Here{Root: h.cfg.Root, Client: h.client}.Do(ctx, t)
	case elsewhere.KindModel:
		return elsewhere.Ask(ctx, t, h.open)
	case remoteagent.KindA2A:
		return remoteagent.Here{Client: h.client}.Do(ctx, t)
	}
	return nil, fmt.Errorf("this worker does no steps of the kind %q; it may be older than the driver of the run", t.Kind)
}

// open opens a model, or takes one that is open.
func (h *Host) open(ctx context.Context, name string) (model.LLM, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if llm := h.models[name]; llm != nil {
		return llm, nil
	}
	open := h.cfg.Model
	if open == nil {
		open = func(ctx context.Context, name string) (model.LLM, error) {
			if script, ok := strings.CutPrefix(name, "scripted/"); ok && !filepath.IsAbs(script) {
				name = "scripted/" + filepath.Join(cmp.Or(h.cfg.Root, "."), script)
			}
			return provider.Open(ctx, name, h.cfg.Getenv)
		}
	}
	llm, err := open(ctx, name)
	if err != nil {
		return nil, err
	}
	h.models[name] = llm
	return llm, nil
}
