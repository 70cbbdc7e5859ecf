// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/sleep"
	"github.com/refrain-dev/refrain/model"
)

// RequestRetry says how the agent repeats a request if [model.Retryable] reports that its error may
// pass. The models of this project send a request once, so only RequestRetry and a loop that retries
// its steps repeat it. A request that was refused because it asks for a cache of the prompt is sent again
// at once, whatever Attempts is.
//
// Each request counts as a model call ([drive.Place.CountModelCall]). Pieces of a stream that broke off
// were shown but are not stored, so a listener may see the same pieces again. Callbacks before the call
// run once a turn; callbacks on errors run once, after the last attempt.
type RequestRetry struct {
	// Attempts is the largest number of requests in one turn, the first one included; 0 means 3, and 1
	// never repeats a request. An answer that calls only unknown tools counts as an attempt: the agent
	// points this out to the model and asks again while attempts are left. It does the same after an
	// answer that has only thoughts.
	Attempts int
	// Backoff is the time before the second attempt; each further delay is twice the one before, up
	// to MaxBackoff. The default of Backoff is 500 ms, that of MaxBackoff 8 s, or Backoff if that is more.
	// Each delay is shortened at random by up to a quarter, so that requests that failed together
	// are not repeated together.
	Backoff, MaxBackoff time.Duration
	// MaxRetryAfter is the longest wait that a provider may ask for; 0 means one minute. A shorter
	// wait is kept, with a random addition of up to a quarter of the delay. A longer one fails the
	// turn.
	MaxRetryAfter time.Duration
}

func (r RequestRetry) check() error {
	if r.Attempts < 0 || r.Backoff < 0 || r.MaxBackoff < 0 || r.MaxRetryAfter < 0 {
		return fmt.Errorf("retry: %+v has a negative value; 1 attempt never asks again", r)
	}
	if r.MaxBackoff > 0 && r.MaxBackoff < r.Backoff {
		return fmt.Errorf("retry: the first delay, %s, is longer than the longest, %s", brief.Clock(r.Backoff), brief.Clock(r.MaxBackoff))
	}
	return nil
}

// MetadataRetry is the key in the CustomMetadata of an answer that took more than one request: a
// map with "attempts", the number of requests, and "waitedMs", the milliseconds between them.
const MetadataRetry = "refrain:retry"

// attempts counts the requests of one turn.
//
// The loop is our own, because a retry policy of failsafe-go also varies a provider's delay
// downward, cannot stop because of a delay's length, and drops an answer that arrives as the
// context ends.
type attempts struct {
	RequestRetry
	before   int           // requests of the turns just before this one, which had no result
	requests int           // requests of this turn so far
	delay    time.Duration // delay before the next request
	waited   time.Duration // sum of the delays so far
	noted    bool          // the metadata of an answer has the number of requests
	plain    bool          // a request was sent again without asking for a cache
}

// first returns the state of a turn with its first request, with the defaults filled in.
func (r RequestRetry) first() attempts {
	if r.Attempts == 0 {
		r.Attempts = 3
	}
	if r.Backoff == 0 {
		r.Backoff = 500 * time.Millisecond
	}
	if r.MaxBackoff == 0 {
		r.MaxBackoff = max(8*time.Second, r.Backoff)
	}
	if r.MaxRetryAfter == 0 {
		r.MaxRetryAfter = time.Minute
	}
	return attempts{RequestRetry: r, requests: 1, delay: min(r.Backoff, r.MaxBackoff)}
}

// again waits until the request that failed with err may be sent again, and returns nil. If the request must not be
// sent again, again returns an error that wraps err and says why. If the context ends, or if the run has no model call
// left, the error also wraps that cause; no callback can replace such an error.
func (a *attempts) again(ctx agent.InvocationContext, err error) error {
	after, ok := model.Retryable(err)
	api, _ := errors.AsType[*model.APIError](err)
	plain := api != nil && api.CacheRefused && !a.plain
	if plain { // the server refused the cache and did not process the request
		a.plain = true
		a.Attempts++
	}
	switch {
	case !ok || a.Attempts == 1:
		return err
	case a.all() >= a.Attempts:
		return fmt.Errorf("%w (attempt %d of %d)", err, a.all(), a.Attempts)
	case after > a.MaxRetryAfter:
		return fmt.Errorf("%w (the provider asks to wait %s; RequestRetry.MaxRetryAfter is %s)", err,
			brief.Clock(after), brief.Clock(a.MaxRetryAfter))
	}
	wait := a.delay - chance(a.delay/4)
	switch {
	case plain:
		wait = 0
	case after > 0:
		wait = after + chance(a.delay/4)
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= wait {
		return fmt.Errorf("%w (the time is up before attempt %d, in %s)", err, a.all()+1, brief.Clock(wait))
	}
	if none := drive.At(ctx).CountModelCall(); none != nil {
		return fmt.Errorf("%w; the last call: %w", none, err)
	}
	if cause := sleep.For(ctx, wait); cause != nil {
		return fmt.Errorf("before attempt %d, after %v: %w", a.all()+1, err, cause)
	}
	a.requests++
	a.waited += wait
	if !plain {
		a.delay = min(2*a.delay, a.MaxBackoff)
	}
	return nil
}

// all returns the number of requests since the last one that succeeded.
func (a *attempts) all() int { return a.before + a.requests }

// metadata returns the number of attempts and the time waited, for the answer's metadata.
func (a *attempts) metadata() map[string]any {
	return map[string]any{"attempts": float64(a.requests), "waitedMs": float64(a.waited.Milliseconds())}
}

// question is a copy of a request from before the model got it.
type question struct {
	req model.LLMRequest
	cfg genai.GenerateContentConfig
}

// keep stores a copy of a request and of its config.
func (q *question) keep(req *model.LLMRequest) {
	q.req = *req
	if req.Config != nil {
		q.cfg = *req.Config
	}
}

// restore undoes changes that a model made to its request, as ADK's models do.
func (q *question) restore(req *model.LLMRequest) {
	*req = q.req
	if req.Config != nil {
		cfg := q.cfg
		req.Config = &cfg // a callback may own the old config
	}
}

// chance returns a random duration below d; 0 if d is not positive.
func chance(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d)
}
