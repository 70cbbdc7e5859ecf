// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"sync"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
)

// AddUsage adds tokens that a tool used for model calls of its own to the call of ctx. They are
// stored in the UsageMetadata of the event that answers the call. If u is nil, or ctx is not from
// [WithUsage], it does nothing.
func AddUsage(ctx context.Context, u *genai.GenerateContentResponseUsageMetadata) {
	if s, ok := ctx.Value(usageKey{}).(*spending); ok {
		s.add(u)
	}
}

// WithUsage returns the context of a tool call in which [AddUsage] counts, and a function that
// returns the sum, nil if nothing was counted. It is for code that calls tools.
func WithUsage(ctx Context) (Context, func() *genai.GenerateContentResponseUsageMetadata) {
	s := new(spending)
	return &usageContext{Context: ctx, spent: s}, s.get
}

type usageKey struct{}

// usageContext does not use context.WithValue, because methods of a call's context, such as
// EndInvocation, must reach the invocation in it.
type usageContext struct {
	Context
	spent *spending
}

func (c *usageContext) Value(key any) any {
	if key == (usageKey{}) {
		return c.spent
	}
	return c.Context.Value(key)
}

type spending struct {
	mu  sync.Mutex
	sum *genai.GenerateContentResponseUsageMetadata
}

func (s *spending) add(u *genai.GenerateContentResponseUsageMetadata) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum = SumUsage(s.sum, u)
}

func (s *spending) get() *genai.GenerateContentResponseUsageMetadata {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sum
}

// SumUsage returns the sum of two counts, either of which may be nil. It changes neither. Its details by modality
// have only the tokens written into a cache. The total is the sum of both totals as [model.Tokens] counts them.
func SumUsage(a, b *genai.GenerateContentResponseUsageMetadata) *genai.GenerateContentResponseUsageMetadata {
	if a == nil && b == nil {
		return nil
	}
	sum, first, second := new(genai.GenerateContentResponseUsageMetadata), model.Used(a), model.Used(b)
	model.SetCacheWrites(sum, first.CacheWriteTokens+second.CacheWriteTokens,
		first.CacheWrite1hTokens+second.CacheWrite1hTokens)
	for _, u := range []*genai.GenerateContentResponseUsageMetadata{a, b} {
		if u == nil {
			continue
		}
		sum.CachedContentTokenCount += u.CachedContentTokenCount
		sum.CandidatesTokenCount += u.CandidatesTokenCount
		sum.PromptTokenCount += u.PromptTokenCount
		sum.ThoughtsTokenCount += u.ThoughtsTokenCount
		sum.ToolUsePromptTokenCount += u.ToolUsePromptTokenCount
		in, _, out := model.Tokens(u)
		sum.TotalTokenCount += int32(in + out)
	}
	return sum
}
