// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/model"
)

// provided is a stand-in whose provider is known, as that of a real model.
type provided struct{ *recorder }

func (*provided) Provider() string { return "scripted" }

// Tests of ADK's programs compare the requests that their model has captured: what asks for a cache stands in the context.
func TestCapturedRequestComparesAsADKs(t *testing.T) {
	var hint *model.CacheHint
	rec := &provided{record(fake(func(ctx context.Context, _ *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
		hint = model.CacheHintOf(ctx)
		yield(response("done"), nil)
	}))}
	newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: rec})).must("go")
	want := []*model.LLMRequest{{Model: rec.Name(), Contents: []*genai.Content{genai.NewContentFromText("go", genai.RoleUser)},
		Config: &genai.GenerateContentConfig{SystemInstruction: rec.requests[0].Config.SystemInstruction}}}
	if diff := cmp.Diff(want, rec.requests); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if hint == nil || hint.Key == "" {
		t.Errorf("the hint in the context is %+v", hint)
	}
	newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: rec, PromptCache: llmagent.PromptCacheOff})).must("go")
	if hint != nil {
		t.Errorf("with the cache off the hint is %+v", hint)
	}
}
