// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Factory returns the model with a name.
type Factory func(ctx context.Context, name string) (LLM, error)

// factories holds the registered factories.
var factories struct {
	mu  sync.RWMutex
	all []registration
}

type registration struct {
	pattern *regexp.Regexp
	make    Factory
}

// Register lets [NewLLM] make models with f for the names that a regular expression matches. The expression may
// match any part of a name; use ^ and $ to match the whole name. Register panics on an invalid pattern, on a
// pattern that is registered already, and on a nil f. Call it in init or main. No model is registered by default.
//
// NewLLM is for programs that come from ADK. Definitions and the command name models in another way, by
// provider/name: see provider.Open and provider.Register.
func Register(pattern string, f Factory) {
	re := regexp.MustCompile(pattern)
	if f == nil {
		panic(fmt.Sprintf("model: register the pattern %q: the factory is nil", pattern))
	}
	factories.mu.Lock()
	defer factories.mu.Unlock()
	for _, r := range factories.all {
		if r.pattern.String() == pattern {
			panic(fmt.Sprintf("model: register the pattern %q: it is registered already", pattern))
		}
	}
	factories.all = append(factories.all, registration{re, f})
}

// NewLLM returns the model with a name. It fails if no pattern of [Register] matches the name, or if several do.
// Errors of the factory are returned unchanged.
func NewLLM(ctx context.Context, name string) (LLM, error) {
	var made []Factory
	var patterns []string
	factories.mu.RLock()
	for _, r := range factories.all {
		if r.pattern.MatchString(name) {
			made, patterns = append(made, r.make), append(patterns, fmt.Sprintf("%q", r.pattern))
		}
	}
	factories.mu.RUnlock()
	switch len(made) {
	case 0:
		return nil, fmt.Errorf("model %q: no registered pattern matches it; call model.Register first", name)
	case 1:
		return made[0](ctx, name)
	}
	return nil, fmt.Errorf("model %q: several registered patterns match it: %s; only one may", name, strings.Join(patterns, ", "))
}
