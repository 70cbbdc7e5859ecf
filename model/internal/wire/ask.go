// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"sync/atomic"

	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/model"
)

// Format is how a provider writes a request R, and how it answers one.
type Format[R any] struct {
	Provider string
	// Request writes a request, and asks for a cache as the hint says; nil asks for none.
	Request func(*model.LLMRequest, *model.CacheHint) (R, error)
	// Decode reads a whole answer. Stream makes a request ask for pieces, and returns what puts them together.
	Decode func(ctx context.Context, x *Exchange, body []byte) (*model.LLMResponse, error)
	Stream func(R) Assembly
	// Asks reports whether a request asks for a cache. Caching is what is known of the server.
	Asks    func(R) bool
	Caching *Caching
}

// Assembly puts an answer together from the events of a stream.
type Assembly interface {
	// Add takes the data of an event. It returns the responses to show, and whether the answer is over.
	Add(ctx context.Context, x *Exchange, data []byte) (shown []*model.LLMResponse, over bool, err error)
	// Whole returns the whole answer, or nil if the stream was cut before its end.
	Whole() *model.LLMResponse
}

// Caching knows whether a server refuses the fields that ask for a cache, as some servers that speak a
// provider's API do. The zero value does not know it. It is safe for concurrent use.
type Caching struct{ refused atomic.Bool }

// Ask sends a request once, when the result is ranged over, and yields the answer, with stream also its
// pieces. If the server refuses a request because it asks for a cache, the error has
// [model.APIError.CacheRefused], and no later request asks for a cache.
func (f Format[R]) Ask(ctx context.Context, to *Endpoint, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		hint := model.CacheHintOf(ctx)
		if f.Caching.refused.Load() {
			hint = nil
		}
		own, err := f.Request(req, hint)
		if err != nil {
			yield(nil, fmt.Errorf("ask %s: %w", f.Provider, err))
			return
		}
		ctx, x := Watch(ctx, f.Provider)
		f.send(ctx, x, to, own, stream, func(resp *model.LLMResponse, err error) bool {
			if err != nil && f.Asks(own) && x.refusesCache() {
				if api, ok := errors.AsType[*model.APIError](err); ok {
					f.Caching.refused.Store(true)
					api.CacheRefused, api.Retryable = true, true
				}
			}
			return yield(resp, err)
		})
	}
}

func (f Format[R]) send(ctx context.Context, x *Exchange, to *Endpoint, own R, stream bool,
	yield func(*model.LLMResponse, error) bool) {
	if stream {
		f.stream(ctx, x, to, own, yield)
		return
	}
	body, err := x.Post(ctx, to, own)
	if err != nil {
		yield(nil, err)
		return
	}
	yield(f.Decode(ctx, x, body))
}

// stream asks for a stream, shows its pieces and yields the whole.
func (f Format[R]) stream(ctx context.Context, x *Exchange, to *Endpoint, own R, yield func(*model.LLMResponse, error) bool) {
	answer := f.Stream(own)
	for ev, err := range x.PostForEvents(ctx, to, own) {
		data, shown, over := bytes.TrimSpace(ev.Data), []*model.LLMResponse(nil), false
		if err == nil && len(data) > 0 {
			shown, over, err = answer.Add(ctx, x, data)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		for _, piece := range shown {
			if !yield(piece, nil) {
				return
			}
		}
		if over {
			break
		}
	}
	if whole := answer.Whole(); whole != nil && x.Broken(ctx) == nil {
		yield(whole, nil)
		return
	}
	yield(nil, x.Cut(ctx))
}

// refusesCache reports whether the server has refused the request because of the fields that ask for a
// cache: it names one of them, or says of no field that it is one too many.
func (x *Exchange) refusesCache() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.status != http.StatusBadRequest && x.status != http.StatusUnprocessableEntity {
		return false
	}
	return cacheFields().Match(x.head)
}

var cacheFields = lazyregexp.New(`(?i)prompt_cache|cache_control|extra (fields?|inputs?) (are |is )?not (permitted|allowed)"`)
