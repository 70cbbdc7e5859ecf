// SPDX-License-Identifier: Apache-2.0

// Package retryandreflect gives a model guidance when a tool has failed, so that the model retries in a
// better way.
//
//	cfg.PluginConfig.Plugins = append(cfg.PluginConfig.Plugins,
//		retryandreflect.MustNew(retryandreflect.WithMaxRetries(2)))
//
// The answer of a failed call is then an object with the error, the number of the retry and guidance for the model.
// After the last retry the guidance is not to use the tool again. A call that succeeds resets the count.
//
// The counts are kept in this process, so a resumed run counts from the beginning.
package retryandreflect

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/plugin"
	"github.com/refrain-dev/refrain/tool"
)

// ResponseType is the value of "response_type" in the answers that the plugin makes.
const ResponseType = "ERROR_HANDLED_BY_REFLECT_AND_RETRY_PLUGIN"

// TrackingScope says which failures of a tool are counted together.
type TrackingScope string

const (
	// Invocation counts each invocation separately.
	Invocation TrackingScope = "invocation"
	// Global counts all invocations together, of all users.
	Global TrackingScope = "global"
)

type reflection struct {
	most  int
	fails bool
	scope TrackingScope

	mu     sync.Mutex
	counts map[toolScope]int
}

// toolScope is a tool in a scope.
type toolScope struct{ invocation, tool string }

// PluginOption configures the plugin.
type PluginOption func(*reflection)

// WithMaxRetries sets how often a tool may fail in a row before the model is told not to use it again; the
// default is 3. With 0 the model is told so at the first failure.
func WithMaxRetries(n int) PluginOption { return func(r *reflection) { r.most = n } }

// WithErrorIfRetryExceeded makes the tool's own error the answer of the call after the last retry.
func WithErrorIfRetryExceeded(is bool) PluginOption { return func(r *reflection) { r.fails = is } }

// WithTrackingScope sets which failures are counted together; the default is [Invocation].
func WithTrackingScope(s TrackingScope) PluginOption { return func(r *reflection) { r.scope = s } }

// New returns the plugin, with the name "RetryAndReflectPlugin". It fails on a negative number of retries, and on an
// unknown scope.
func New(opts ...PluginOption) (*plugin.Plugin, error) {
	r := &reflection{most: 3, scope: Invocation, counts: make(map[toolScope]int)}
	for _, opt := range opts {
		opt(r)
	}
	switch {
	case r.most < 0:
		return nil, fmt.Errorf("retry and reflect: %d retries; the number must not be negative", r.most)
	case r.scope != Invocation && r.scope != Global:
		return nil, fmt.Errorf("retry and reflect: unknown tracking scope %q; use %q or %q", r.scope, Invocation, Global)
	}
	return plugin.New(plugin.Config{
		Name: "RetryAndReflectPlugin", AfterToolCallback: r.afterTool, OnToolErrorCallback: r.onToolError,
		AfterRunCallback: r.afterRun,
	})
}

// MustNew returns the plugin of [New]. It panics on an error.
func MustNew(opts ...PluginOption) *plugin.Plugin {
	p, err := New(opts...)
	if err != nil {
		panic(err)
	}
	return p
}

func (r *reflection) key(ctx agent.InvocationContext, t tool.Tool) toolScope {
	k := toolScope{tool: t.Name()}
	if r.scope == Invocation {
		k.invocation = ctx.InvocationID()
	}
	return k
}

// afterTool ends the count of a tool that has succeeded.
func (r *reflection) afterTool(ctx agent.Context, t tool.Tool, _, result map[string]any, err error) (map[string]any, error) {
	if err == nil && result["response_type"] != ResponseType {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.counts, r.key(ctx, t))
	}
	return nil, nil
}

// afterRun forgets the counts of an invocation.
func (r *reflection) afterRun(ctx agent.InvocationContext) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.counts {
		if k.invocation == ctx.InvocationID() {
			delete(r.counts, k)
		}
	}
}

func (r *reflection) onToolError(ctx agent.Context, t tool.Tool, args map[string]any, err error) (map[string]any, error) {
	n := r.count(r.key(ctx, t))
	switch {
	case n <= r.most:
		return answer(err, n, guidance(t, args, err, n, r.most)), nil
	case r.fails:
		return nil, nil
	}
	return answer(err, r.most, surrender(t, args, err, n)), nil
}

func (r *reflection) count(k toolScope) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[k]++
	return r.counts[k]
}

func answer(err error, n int, text string) map[string]any {
	return map[string]any{"response_type": ResponseType, "error_type": fmt.Sprintf("%T", err), "error_details": err.Error(),
		"retry_count": n, "reflection_guidance": text}
}

func guidance(t tool.Tool, args map[string]any, err error, n, most int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The tool %q failed: %v\nIt was called with %s.\n", t.Name(), err, argsText(args))
	fmt.Fprintf(&b, "You can try again: this is retry %d of %d. Do not send the same call once more. First ask yourself:\n", n, most)
	b.WriteString("- Does the error name an argument that is wrong, missing or in the wrong form? Compare them with the tool's schema.\n" +
		"- Did an earlier step have to happen first?\n" +
		"- Is there another tool, or another order of steps, that leads to the goal?\n" +
		"- Can a smaller or simpler call do a part of it?\n" +
		"Then change what was wrong and continue.")
	return b.String()
}

func surrender(t tool.Tool, args map[string]any, err error, n int) string {
	return fmt.Sprintf("The tool %q failed %d times in a row, and no retry is left. The last error: %v\nThe last call had %s.\n"+
		"Do not call this tool again for the task. Reach the goal in another way, or say what could not be done and why.",
		t.Name(), n, err, argsText(args))
}

// argsText is a call's arguments as JSON.
func argsText(args map[string]any) string {
	text, err := json.Marshal(args)
	if err != nil {
		return fmt.Sprint(args)
	}
	return string(text)
}
