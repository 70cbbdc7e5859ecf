// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"context"
	"sync"
)

// Exchange describes one request to a provider for whoever traces it, besides what the answer has. A provider's package sets what
// it knows, with [NoteExchange].
type Exchange struct {
	// ResponseID is the provider's ID of the answer, and FinishReason its own word for why the answer has ended.
	ResponseID, FinishReason string
	// Server is the host that was asked, and Port its port; 0 if the request had no server.
	Server string
	Port   int
}

type exchangeKey struct{}

type exchanges struct {
	mu   sync.Mutex
	last Exchange
}

// WithExchange returns a context for one call of [LLM.GenerateContent], and a function that returns what the provider has noted.
func WithExchange(ctx context.Context) (context.Context, func() Exchange) {
	e := new(exchanges)
	return context.WithValue(ctx, exchangeKey{}, e), func() Exchange {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.last
	}
}

// NoteExchange has note change the exchange of ctx, if somebody traces it.
func NoteExchange(ctx context.Context, note func(*Exchange)) {
	if e, ok := ctx.Value(exchangeKey{}).(*exchanges); ok {
		e.mu.Lock()
		defer e.mu.Unlock()
		note(&e.last)
	}
}

// NoteAnswer notes the provider's ID of an answer and its word for why the answer has ended. An empty text changes nothing.
func NoteAnswer(ctx context.Context, id, reason string) {
	NoteExchange(ctx, func(x *Exchange) {
		x.ResponseID, x.FinishReason = cmp.Or(id, x.ResponseID), cmp.Or(reason, x.FinishReason)
	})
}
