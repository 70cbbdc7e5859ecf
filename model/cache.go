// SPDX-License-Identifier: Apache-2.0

package model

import "context"

// CacheHint says which parts of a request later requests are expected to repeat. A provider whose cache
// must be requested, and paid for, keeps only these parts. A provider that caches by itself ignores all
// fields but Key and Retention.
//
// Writing a part into Anthropic's cache costs 1.25 times as much as other input, for an hour twice as
// much; reading it again costs a tenth. So set Later or Next only if a later request reads the part.
type CacheHint struct {
	// Key is the same for requests that begin in the same way, such as those of one agent in one
	// run.
	Key string `json:"key,omitzero"`
	// Retention is how long the provider is to keep a request's beginning, in the provider's syntax, such
	// as OpenAI's "24h"; empty leaves it to the provider.
	Retention string `json:"retention,omitzero"`

	// Later says that a later request of the run repeats the tools and the first Static bytes of the
	// system instruction, or that an earlier request had them cached. Set it in both cases, because
	// Anthropic reads a part from its cache only if the request asks to cache that part.
	Later  bool `json:"later,omitzero"`
	Static int  `json:"static,omitzero"`
	// Hour says that the later request comes more than five minutes from now, and more follow it.
	Hour bool `json:"hour,omitzero"`
	// Next says that the next request comes within five minutes, and repeats all of this one except its
	// last Fresh contents.
	Next  bool `json:"next,omitzero"`
	Fresh int  `json:"fresh,omitzero"`
	// Before says that the request begins with the whole previous request, which had Next, so that the
	// provider can read what that request wrote.
	Before bool `json:"before,omitzero"`
}

type cacheKey struct{}

// WithCacheHint returns a context whose request to a model asks for a cache as the hint says. The hint is not a field of
// [LLMRequest], so that requests that a stand-in of a test has captured compare as those of ADK do.
func WithCacheHint(ctx context.Context, hint *CacheHint) context.Context {
	return context.WithValue(ctx, cacheKey{}, hint)
}

// CacheHintOf returns the hint of [WithCacheHint], or nil: then a model asks its provider for no cache.
func CacheHintOf(ctx context.Context) *CacheHint {
	hint, _ := ctx.Value(cacheKey{}).(*CacheHint)
	return hint
}
