// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/tool"
)

type usage = genai.GenerateContentResponseUsageMetadata

// What a call spends is counted in its own context, in contexts made from it
// too, and nowhere else.
func TestUsageIsCountedPerCall(t *testing.T) {
	outer, spent := tool.WithUsage(call(t, nil))
	if spent() != nil {
		t.Errorf("nothing is nil, got %+v", spent())
	}
	inner, spentInside := tool.WithUsage(outer)
	under, cancel := context.WithCancel(outer)
	defer cancel()
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { tool.AddUsage(under, &usage{PromptTokenCount: 3, CandidatesTokenCount: 2, TotalTokenCount: 5}) })
	}
	wg.Wait()
	tool.AddUsage(outer, nil)
	tool.AddUsage(outer.WithContext(outer), &usage{ThoughtsTokenCount: 1, CachedContentTokenCount: 2, ToolUsePromptTokenCount: 3})
	tool.AddUsage(inner, &usage{TotalTokenCount: 100})
	tool.AddUsage(t.Context(), &usage{TotalTokenCount: 1000})
	want := &usage{PromptTokenCount: 30, CandidatesTokenCount: 20, TotalTokenCount: 54, ThoughtsTokenCount: 1, CachedContentTokenCount: 2,
		ToolUsePromptTokenCount: 3}
	if diff := cmp.Diff(want, spent()); diff != "" {
		t.Error(diff)
	}
	if got := spentInside(); got == nil || got.TotalTokenCount != 100 {
		t.Errorf("inside: %+v", got)
	}
	outer.EndInvocation()
	if !outer.Ended() || outer.FunctionCallID() != "call-1" {
		t.Error("the context is the call's in everything else")
	}
}
