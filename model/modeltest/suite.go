// SPDX-License-Identifier: Apache-2.0

package modeltest

import (
	"context"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
)

// Options describes the model that the suite tests.
type Options struct {
	// Open returns a model that answers from a script and, if the model uses a server, that
	// server, whose requests are checked too. Open is called once for each test.
	Open func(t testing.TB, script scripted.Script) (model.LLM, *Server)
	// Blocks says that a refusal comes without content, as Gemini blocks a
	// prompt.
	Blocks bool
}

// TestLLM runs the suite.
func TestLLM(t *testing.T, o Options) {
	for _, tt := range []struct {
		name string
		run  func(*testing.T, Options)
	}{
		{"answers", testAnswers},
		{"refusal", testRefusal},
		{"request", testRequest},
		{"round trip", testRoundTrip},
		{"failures", testFailures},
		{"cancelled", testCancelled},
		{"consumer stops", testConsumerStops},
		{"ranged again", testRangedAgain},
		{"concurrent use", testConcurrentUse},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, o) })
	}
}

// both runs a test of whole answers and of streamed ones, and looks for
// goroutines that stay behind.
func both(t *testing.T, name string, run func(t *testing.T, stream bool)) {
	t.Helper()
	for _, stream := range []bool{false, true} {
		how := "whole"
		if stream {
			how = "stream"
		}
		t.Run(name+"/"+how, func(t *testing.T) {
			// opencensus, which genai imports, starts its worker when it is loaded.
			running := goleak.IgnoreCurrent()
			t.Cleanup(func() {
				if err := goleak.Find(running); err != nil {
					t.Error(err)
				}
			})
			run(t, stream)
		})
	}
}

// reply is what came of one request.
type reply struct {
	text, thought string // of the partial responses, joined
	partials      int
	final         *model.LLMResponse
	err           error
}

// ask asks once and checks the rules of iterators: partial responses, then one
// that is whole or an error, and nothing more.
func ask(ctx context.Context, t testing.TB, llm model.LLM, req *model.LLMRequest, stream bool) reply {
	t.Helper()
	var s reply
	for resp, err := range llm.GenerateContent(ctx, req, stream) {
		switch {
		case s.final != nil || s.err != nil:
			t.Fatalf("yielded (%v, %v) after the end", resp, err)
		case (resp == nil) == (err == nil):
			t.Fatalf("yielded (%v, %v)", resp, err)
		case err != nil:
			s.err = err
		case !resp.Partial:
			s.final = resp
		case !stream:
			t.Fatalf("a partial response that nobody asked for: %v", resp)
		default:
			s.partials++
			for _, p := range resp.Content.Parts {
				if p.Thought {
					s.thought += p.Text
				} else {
					s.text += p.Text
				}
			}
		}
	}
	if s.final == nil && s.err == nil {
		t.Fatal("yielded no end")
	}
	return s
}

func userSays(text string) *model.LLMRequest {
	return &model.LLMRequest{Contents: []*genai.Content{genai.NewContentFromText(text, genai.RoleUser)}}
}

func script(answers ...scripted.Answer) scripted.Script { return scripted.Script{Answers: answers} }

// sameContent compares contents but for signatures, which the providers keep in
// their own ways.
func sameContent(want, got *genai.Content) string {
	return cmp.Diff(want, got, cmpopts.IgnoreFields(genai.Part{}, "ThoughtSignature"), cmpopts.EquateEmpty())
}

func testConsumerStops(t *testing.T, o Options) {
	both(t, "after the first", func(t *testing.T, stream bool) {
		llm, _ := o.Open(t, script(scripted.Answer{Chunks: []string{"One. ", "Two. ", "Three."}}))
		n := 0
		for range llm.GenerateContent(t.Context(), userSays("Count."), stream) {
			n++
			break
		}
		if n != 1 {
			t.Errorf("got %d responses", n)
		}
	})
}

func testRangedAgain(t *testing.T, o Options) {
	both(t, "asks again", func(t *testing.T, stream bool) {
		llm, _ := o.Open(t, script(scripted.Answer{Text: "First."}, scripted.Answer{Text: "Second."}))
		seq := llm.GenerateContent(t.Context(), userSays("Next."), stream)
		var got []string
		for range 2 {
			for resp, err := range seq {
				if err != nil {
					t.Fatal(err)
				}
				if !resp.Partial {
					got = append(got, resp.Content.Parts[0].Text)
				}
			}
		}
		if diff := cmp.Diff([]string{"First.", "Second."}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func testConcurrentUse(t *testing.T, o Options) {
	both(t, "eight at once", func(t *testing.T, stream bool) {
		llm, _ := o.Open(t, script(scripted.Answer{Text: "Yes.", Repeat: true}))
		req := userSays("Well?")
		before := marshal(req)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for resp, err := range llm.GenerateContent(t.Context(), req, stream) {
					if err != nil {
						t.Error(err)
					} else if !resp.Partial && resp.Content.Parts[0].Text != "Yes." {
						t.Errorf("got %s", marshal(resp))
					}
				}
			})
		}
		wg.Wait()
		if after := marshal(req); before != after {
			t.Errorf("the request was changed:\n%s\n%s", before, after)
		}
	})
}
