// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/refrain-dev/refrain/model"
)

// own are the providers that the program has registered.
var own struct {
	mu  sync.Mutex
	all []Provider
}

// Register adds a provider to this process. The model "NAME/REST" is then the one that open returns for REST. Register
// before the first definition is read, because a definition's models are checked against the providers. Register panics
// if open is nil, if name is empty or has a slash, or if there is a provider of this name.
func Register(name string, open func(ctx context.Context, name string) (model.LLM, error)) {
	if name == "" || strings.Contains(name, "/") || open == nil {
		panic(fmt.Sprintf("register the provider %q: give a name without a slash, and a function that opens models", name))
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	if slices.ContainsFunc(append(builtin(), own.all...), func(p Provider) bool { return p.Name == name }) {
		panic(fmt.Sprintf("register the provider %q: there is one of this name", name))
	}
	own.all = append(own.all, Provider{Name: name, About: "a provider of this program",
		open: func(ctx context.Context, name string, _ Getenv) (llm model.LLM, err error) {
			defer func() {
				if v := recover(); v != nil {
					llm, err = nil, fmt.Errorf("panic: %v", v)
				} else if llm == nil && err == nil {
					err = errors.New("the provider of this program returned neither a model nor an error")
				}
			}()
			return open(ctx, name)
		}})
}

// registrations returns the providers that the program has registered.
func registrations() []Provider {
	own.mu.Lock()
	defer own.mu.Unlock()
	return slices.Clone(own.all)
}
