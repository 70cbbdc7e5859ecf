// SPDX-License-Identifier: Apache-2.0

// Package propagate adds fields to the requests of a run that say which trace they belong to. The tracer of the run
// puts the fields into the context, and each client adds them to its requests. Without a trace there are no fields.
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

// With returns a context whose requests carry the fields that the function fields returns for the context of the request.
func With(ctx context.Context, fields func(context.Context) map[string]string) context.Context {
	return context.WithValue(ctx, key{}, fields)
}

// Fields returns the fields for a request under ctx, such as traceparent, or nil if there are none.
func Fields(ctx context.Context) map[string]string {
	if fields, ok := ctx.Value(key{}).(func(context.Context) map[string]string); ok {
		return fields(ctx)
	}
	return nil
}

// Header adds the fields that a header does not have yet.
func Header(ctx context.Context, h http.Header) {
	for name, value := range Fields(ctx) {
		if h.Get(name) == "" {
			h.Set(name, value)
		}
	}
}

// Variable returns the name of the environment variable for a field, such as TRACEPARENT.
func Variable(field string) string { return strings.ToUpper(strings.ReplaceAll(field, "-", "_")) }

// Env adds the fields to an environment; see [Variable]. The fields replace those in env, which belong to the process
// around this one.
func Env(ctx context.Context, env []string) []string {
	for name, value := range Fields(ctx) {
		env = append(env, Variable(name)+"="+value)
	}
	return env
}
