// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/session"
)

// flaky is a model that fails with each of the errors and then answers. It notes
// when it was asked.
type flaky struct {
	fake
	asked []time.Time
}

func newFlaky(errs ...error) *flaky {
	f := new(flaky)
	f.fake = func(_ context.Context, _ *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
		f.asked = append(f.asked, time.Now())
		if n := len(f.asked); n <= len(errs) {
			yield(nil, errs[n-1])
			return
		}
		yield(response("done"), nil)
	}
	return f
}

// delays are the times between requests.
func (f *flaky) delays() []time.Duration {
	var all []time.Duration
	for i := 1; i < len(f.asked); i++ {
		all = append(all, f.asked[i].Sub(f.asked[i-1]))
	}
	return all
}

func busy(after time.Duration) error {
	return &model.APIError{Provider: "test", Status: 429, Message: "slow down", RetryAfter: after, Retryable: true}
}

var (
	down    = &model.APIError{Provider: "test", Status: 503, Retryable: true}
	refused = &model.APIError{Provider: "test", Status: 400}
)

// G10: what may pass is asked again, after delays that double, or after what the
// provider asks for; an answer says what it took.
func TestModelIsAskedAgain(t *testing.T) {
	type between struct{ least, most time.Duration }
	first, second := between{375 * time.Millisecond, 500 * time.Millisecond}, between{750 * time.Millisecond, time.Second}
	for _, tt := range []struct {
		name  string
		retry llmagent.RequestRetry
		errs  []error
		want  []between
	}{
		{"never fails", llmagent.RequestRetry{}, nil, nil},
		{"by default", llmagent.RequestRetry{}, []error{down, down}, []between{first, second}},
		{"as the provider asks", llmagent.RequestRetry{}, []error{busy(3 * time.Second), down}, []between{{3 * time.Second,
			3125 * time.Millisecond}, second}},
		{"up to the longest delay", llmagent.RequestRetry{Attempts: 8}, []error{down, down, down, down, down, down, down}, []between{
			first, second, {1500 * time.Millisecond, 2 * time.Second}, {3 * time.Second, 4 * time.Second},
			{6 * time.Second, 8 * time.Second}, {6 * time.Second, 8 * time.Second}, {6 * time.Second, 8 * time.Second},
		}},
		{"a first delay above the longest by default", llmagent.RequestRetry{Backoff: time.Minute}, []error{down, down}, []between{
			{45 * time.Second, time.Minute}, {45 * time.Second, time.Minute},
		}},
		{"a longest delay below the first by default", llmagent.RequestRetry{MaxBackoff: 100 * time.Millisecond}, []error{down}, []between{
			{75 * time.Millisecond, 100 * time.Millisecond},
		}},
		{"as long as it is told to wait", llmagent.RequestRetry{MaxRetryAfter: time.Hour}, []error{busy(time.Hour)}, []between{{time.Hour,
			time.Hour + 125*time.Millisecond}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newFlaky(tt.errs...)
				th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: m, RequestRetry: tt.retry}))
				evs, err := th.ask(t.Context(), "go")
				if err != nil || len(evs) != 1 || evs[0].Text() != "done" || th.session().Events().Len() != 2 {
					t.Fatalf("got %q, %v", lines(evs), err)
				}
				got := m.delays()
				if len(got) != len(tt.want) {
					t.Fatalf("it was asked again after %v", got)
				}
				waited := time.Duration(0)
				for i, d := range got {
					if waited += d; d < tt.want[i].least || d > tt.want[i].most {
						t.Errorf("delay %d is %v, not in %v", i+1, d, tt.want[i])
					}
				}
				var want any
				if len(tt.errs) > 0 {
					want = map[string]any{"attempts": float64(len(tt.errs) + 1), "waitedMs": float64(waited.Milliseconds())}
				}
				if diff := cmp.Diff(want, evs[0].CustomMetadata[llmagent.MetadataRetry]); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// G10: what is not asked again, or no more, is the provider's error, at once.
func TestModelIsNotAskedAgain(t *testing.T) {
	for _, tt := range []struct {
		name    string
		retry   llmagent.RequestRetry
		timeout time.Duration
		errs    []error
		asked   int
		status  int
		says    string
	}{
		{"refused", llmagent.RequestRetry{}, 0, []error{refused}, 1, 400, `ask model "fake": test: status 400`},
		{"refused in the end", llmagent.RequestRetry{}, 0, []error{down, refused}, 2, 400, "status 400"},
		{"not an API's error", llmagent.RequestRetry{}, 0, []error{errors.New("a bug")}, 1, 0, "a bug"},
		{"too often", llmagent.RequestRetry{}, 0, []error{down, busy(0), down}, 3, 503, "(attempt 3 of 3)"},
		{"switched off", llmagent.RequestRetry{Attempts: 1}, 0, []error{down}, 1, 503, "status 503"},
		{"told to wait too long", llmagent.RequestRetry{}, 0, []error{busy(2 * time.Hour)}, 1, 429,
			"asks to wait 2h; RequestRetry.MaxRetryAfter is 1m"},
		{"no time for the first delay", llmagent.RequestRetry{}, 200 * time.Millisecond, []error{down}, 1, 503,
			"the time is up before attempt 2"},
		{"no time for what is asked for", llmagent.RequestRetry{}, 20 * time.Second, []error{down, busy(30 * time.Second)}, 2, 429,
			"the time is up before attempt 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := t.Context(), func() {}
				if tt.timeout > 0 {
					ctx, cancel = context.WithTimeout(ctx, tt.timeout)
				}
				defer cancel()
				m := newFlaky(tt.errs...)
				evs, err := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: m, RequestRetry: tt.retry})).ask(ctx, "go")
				e, _ := errors.AsType[*model.APIError](err)
				if len(evs) > 0 || err == nil || !strings.Contains(err.Error(), tt.says) || (e != nil) != (tt.status > 0) || e != nil &&
					e.Status != tt.status {
					t.Errorf("got %q, %v", lines(evs), err)
				}
				if len(m.asked) != tt.asked {
					t.Errorf("it was asked %d times", len(m.asked))
				}
				if waited := time.Since(m.asked[len(m.asked)-1]); waited != 0 {
					t.Errorf("the error came %v late", waited)
				}
			})
		})
	}
}

// Cancelling ends the wait, with the cause, whatever callbacks have in
// store; LOOP 23: so does the budget, without a wait, and each attempt counts.
func TestNothingMakesUpForTheEnd(t *testing.T) {
	instead := []llmagent.OnModelErrorCallback{
		func(agent.CallbackContext, *model.LLMRequest, error) (*model.LLMResponse, error) {
			return response("never mind"), nil
		},
	}
	t.Run("canceled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m, cause := newFlaky(down), errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() { time.Sleep(100 * time.Millisecond); cancel(cause) }()
			th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: m, OnModelErrorCallbacks: instead}))
			start := time.Now()
			if evs, err := th.ask(ctx, "go"); err != cause || len(evs) != 0 || len(m.asked) != 1 || time.Since(start) != 100*time.Millisecond {
				t.Errorf("got %q, %v after %v", lines(evs), err, time.Since(start))
			}
		})
	})
	t.Run("no calls left", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := newFlaky(down, down, down)
			th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: m, RequestRetry: llmagent.RequestRetry{Attempts: 5},
				OnModelErrorCallbacks: instead}))
			th.cfg.MaxLLMCalls = 2
			evs, err := th.ask(t.Context(), "go")
			e, ok := errors.AsType[*model.APIError](err)
			if !errors.Is(err, agent.ErrTooManyModelCalls) || !ok || e.Status != 503 || len(evs) != 0 {
				t.Errorf("got %q, %v", lines(evs), err)
			}
			if len(m.asked) != 2 || time.Since(m.asked[1]) != 0 {
				t.Errorf("asked %d times, the last %v ago", len(m.asked), time.Since(m.asked[1]))
			}
		})
	})
}

// Callbacks before the call are asked once a turn, those on errors once, after
// the last attempt. What they answer says what was tried.
func TestCallbacksAndRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		a := newAgent(t, llmagent.Config{
			Name: "a", Model: newFlaky(down, busy(0), down),
			BeforeModelCallbacks: []llmagent.BeforeModelCallback{
				func(agent.CallbackContext, *model.LLMRequest) (*model.LLMResponse, error) {
					told = append(told, "before")
					return nil, nil
				},
			},
			OnModelErrorCallbacks: []llmagent.OnModelErrorCallback{
				func(_ agent.CallbackContext, _ *model.LLMRequest, err error) (*model.LLMResponse, error) {
					told = append(told, err.Error())
					return response("never mind"), nil
				},
			},
		})
		evs, err := newThread(t, a).ask(t.Context(), "go")
		if err != nil || len(evs) != 1 || evs[0].Text() != "never mind" {
			t.Fatalf("got %q, %v", lines(evs), err)
		}
		if diff := cmp.Diff([]string{"before", "test: status 503 (attempt 3 of 3)"}, told); diff != "" {
			t.Error(diff)
		}
		if m, ok := evs[0].CustomMetadata[llmagent.MetadataRetry].(map[string]any); !ok || m["attempts"] != 3.0 {
			t.Errorf("got %v", evs[0].CustomMetadata)
		}
	})
}

// An attempt gets the request as the first did, whatever that did to it. It gets
// a config of its own: the first one's may be a callback's.
func TestAttemptsGetTheSameRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		own := &genai.GenerateContentConfig{Temperature: new(float32(0.5)), SystemInstruction: genai.NewContentFromText("Be kind.",
			genai.RoleUser)}
		m := fake(func(_ context.Context, req *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
			seen = append(seen, req.Model+" "+req.Config.SystemInstruction.Parts[0].Text+" "+words(req.Contents[len(req.Contents)-1]))
			if len(seen) == 3 {
				yield(response("done"), nil)
				return
			}
			if len(seen) == 2 && req.Config == own {
				t.Error("the callback's config was written to")
			}
			req.Model = "another"
			req.Config.SystemInstruction = genai.NewContentFromText("Be quick.", genai.RoleUser)
			req.Contents = append(req.Contents, genai.NewContentFromText("Well?", genai.RoleUser))
			yield(nil, down)
		})
		a := newAgent(t, llmagent.Config{Name: "a", Model: m, BeforeModelCallbacks: []llmagent.BeforeModelCallback{
			func(_ agent.CallbackContext, req *model.LLMRequest) (*model.LLMResponse, error) {
				req.Config = own
				return nil, nil
			},
		}})
		newThread(t, a).must("go")
		if diff := cmp.Diff([]string{"fake Be kind. go", "fake Be kind. go", "fake Be kind. go"}, seen); diff != "" {
			t.Error(diff)
		}
	})
}

// A stream that broke off is shown again from its beginning; the log holds the
// whole, once, and nothing of the pieces.
func TestStreamIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := []string{"one ", "two ", "three ", "four"}
		th := newThread(t, newAgent(t, llmagent.Config{Name: "a", OutputKey: "doc", Model: script(t,
			scripted.Answer{Chunks: text, Cut: true}, scripted.Answer{Chunks: text},
		)}))
		th.cfg.StreamingMode = agent.StreamingModeSSE
		want := []string{"a: one ", "a: two ", "a: one ", "a: two ", "a: three ", "a: four", "a: one two three four"}
		if diff := cmp.Diff(want, th.must("go")); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"user: go", "a: one two three four"}, stored(th)); diff != "" || th.state("doc") != "one two three four" {
			t.Errorf("doc is %v: %s", th.state("doc"), diff)
		}
	})
}

// What was said in full is in the log: a failure after that is not made up for by
// saying it again.
func TestAWholeAnswerIsNotAskedForAgain(t *testing.T) {
	asked := 0
	m := fake(func(_ context.Context, _ *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
		asked++
		if yield(response("done"), nil) {
			yield(nil, down)
		}
	})
	evs, err := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: m})).ask(t.Context(), "go")
	if e, ok := errors.AsType[*model.APIError](err); !ok || e.Status != 503 || len(evs) != 1 || asked != 1 {
		t.Errorf("asked %d times: got %q, %v", asked, lines(evs), err)
	}
}

// stored is the log of a thread, a line for each event.
func stored(th *thread) []string {
	th.Helper()
	var evs []*session.Event
	for ev := range th.session().Events().All() {
		evs = append(evs, ev)
	}
	return lines(evs)
}
