// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"fmt"
	"iter"

	"github.com/refrain-dev/refrain/model"
)

// Format is how a provider writes a request R, and how it answers one.
type Format[R any] struct {
	Provider string
	Request  func(*model.LLMRequest) (R, error)
	// Decode reads a whole answer. Stream asks for pieces, and yields them and the whole.
	Decode func(ctx context.Context, x *Exchange, body []byte) (*model.LLMResponse, error)
	Stream func(ctx context.Context, x *Exchange, req R, yield func(*model.LLMResponse, error) bool)
}

// Ask sends a request once, when the result is ranged over, and yields the answer, with stream also its pieces.
func (f Format[R]) Ask(ctx context.Context, to *Endpoint, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		own, err := f.Request(req)
		if err != nil {
			yield(nil, fmt.Errorf("ask %s: %w", f.Provider, err))
			return
		}
		ctx, x := Watch(ctx, f.Provider)
		if stream {
			f.Stream(ctx, x, own, yield)
			return
		}
		body, err := x.Post(ctx, to, own)
		if err != nil {
			yield(nil, err)
			return
		}
		yield(f.Decode(ctx, x, body))
	}
}
