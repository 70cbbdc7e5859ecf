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

	"github.com/refrain-dev/refrain/model"
)

// Format is how a provider writes a request R, and how it answers one.
type Format[R any] struct {
	Provider string
	Request  func(*model.LLMRequest) (R, error)
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

// Caching knows whether a server takes the fields that ask for a cache: some servers that speak a provider's
// API refuse them. The zero value does not know yet. It is safe for concurrent use.
type Caching struct{ known atomic.Int32 }

const (
	taken = iota + 1
	refused
)

// Ask sends a request once, when the result is ranged over, and yields the answer, with stream also its
// pieces. If the server refuses the first request that asks for a cache, Ask sends it again without. If that
// is answered, no later request asks for a cache.
func (f Format[R]) Ask(ctx context.Context, to *Endpoint, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		plain := *req
		plain.Cache = nil
		if f.Caching.known.Load() == refused {
			req = &plain
		}
		own, err := f.Request(req)
		if err != nil {
			yield(nil, fmt.Errorf("ask %s: %w", f.Provider, err))
			return
		}
		if f.Caching.known.Load() != 0 || !f.Asks(own) {
			f.send(ctx, to, own, stream, yield)
			return
		}
		again := false
		f.send(ctx, to, own, stream, func(resp *model.LLMResponse, err error) bool {
			if err == nil {
				f.Caching.known.CompareAndSwap(0, taken)
			} else if again = isRefusal(err); again {
				return false
			}
			return yield(resp, err)
		})
		if !again {
			return
		}
		if own, err = f.Request(&plain); err != nil {
			yield(nil, fmt.Errorf("ask %s: %w", f.Provider, err))
			return
		}
		f.send(ctx, to, own, stream, func(resp *model.LLMResponse, err error) bool {
			if err == nil {
				f.Caching.known.CompareAndSwap(0, refused)
			}
			return yield(resp, err)
		})
	}
}

func (f Format[R]) send(ctx context.Context, to *Endpoint, own R, stream bool, yield func(*model.LLMResponse, error) bool) {
	ctx, x := Watch(ctx, f.Provider)
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

// isRefusal reports whether a server has found something wrong with a request.
func isRefusal(err error) bool {
	api, ok := errors.AsType[*model.APIError](err)
	return ok && (api.Status == http.StatusBadRequest || api.Status == http.StatusUnprocessableEntity)
}
