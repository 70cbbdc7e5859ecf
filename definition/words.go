// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
)

// keepWords puts what was said last in a sequence under a key.
func keepWords(key string) agent.AfterAgentCallback {
	return func(ctx agent.Context) (*genai.Content, error) {
		if text, ok := lastWords(ctx, agent.AddressOf(ctx)); ok {
			return nil, ctx.State().Set(key, text)
		}
		return nil, nil
	}
}

// keepWordsEach puts what each sub-agent said last under a key, by name.
func keepWordsEach(key string, a *Agent) agent.AfterAgentCallback {
	return func(ctx agent.Context) (*genai.Content, error) {
		words := make(map[string]any, len(a.SubAgents))
		for _, sub := range a.SubAgents {
			if text, ok := lastWords(ctx, agent.AddressOf(ctx)+"/"+session.Address(sub.Name)); ok {
				words[sub.Name] = text
			}
		}
		return nil, ctx.State().Set(key, words)
	}
}

// lastWords is what was said last at or below an address in this invocation.
func lastWords(ctx agent.Context, at session.Address) (string, bool) {
	events := ctx.Session().Events()
	for i := events.Len() - 1; i >= 0; i-- {
		ev := events.At(i)
		if ev.InvocationID != ctx.InvocationID() {
			break
		}
		if ev.Address.Under(at) && !ev.Partial && ev.Content != nil {
			if text := strings.TrimSpace(ev.Text()); text != "" {
				return ev.Text(), true
			}
		}
	}
	return "", false
}
