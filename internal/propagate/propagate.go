// SPDX-License-Identifier: Apache-2.0

// Package propagate lets the requests of a run say which trace they belong to. Whoever traces the run
// puts the fields into its context, and whoever sends a request takes them from there. Without a
// trace there are none.
//
//	req.Header.Set("Accept", "application/json")
//	propagate.Header(ctx, req.Header)
package propagate

import (
	"context"
	"net/http"
	"strings"
)

type key struct{}

// With returns a context whose requests carry what fields returns for the context of the request.
func With(ctx context.Context, fields func(context.Context) map[string]string) context.Context {
	return context.WithValue(ctx, key{}, fields)
}

// Fields returns the fields for a request under ctx, such as traceparent; nil if there are none.
func Fields(ctx context.Context) map[string]string {
	if fields, ok := ctx.Value(key{}).(func(context.Context) map[string]string); ok {
		return fields(ctx)
	}
	return nil
}

// Header adds the fields to a header that does not have them yet.
func Header(ctx context.Context, h http.Header) {
	for name, value := range Fields(ctx) {
		if h.Get(name) == "" {
			h.Set(name, value)
		}
	}
}

// Variable is the name of a field as a variable of an environment, such as TRACEPARENT.
func Variable(field string) string { return strings.ToUpper(strings.ReplaceAll(field, "-", "_")) }

// Env adds the fields to an environment, see [Variable]. Those that it has are of
// the process around this one, and give way.
func Env(ctx context.Context, env []string) []string {
	for name, value := range Fields(ctx) {
		env = append(env, Variable(name)+"="+value)
	}
	return env
}
