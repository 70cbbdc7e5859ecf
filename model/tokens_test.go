// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/model"
)

func TestTokensAddsUpWhatAProviderReports(t *testing.T) {
	type usage = genai.GenerateContentResponseUsageMetadata
	for name, c := range map[string]struct {
		usage *usage
		want  [3]int64 // input, cached, output
	}{
		"nothing":               {nil, [3]int64{}},
		"prompt and answer":     {&usage{PromptTokenCount: 10, CandidatesTokenCount: 4, TotalTokenCount: 14}, [3]int64{10, 0, 4}},
		"a part is cached":      {&usage{PromptTokenCount: 10, CachedContentTokenCount: 7, CandidatesTokenCount: 4}, [3]int64{10, 7, 4}},
		"thoughts":              {&usage{PromptTokenCount: 10, CandidatesTokenCount: 4, ThoughtsTokenCount: 30, TotalTokenCount: 44}, [3]int64{10, 0, 34}},
		"tools of the provider": {&usage{PromptTokenCount: 10, ToolUsePromptTokenCount: 5, CandidatesTokenCount: 4}, [3]int64{15, 0, 4}},
		"only the total":        {&usage{PromptTokenCount: 10, TotalTokenCount: 25}, [3]int64{10, 0, 15}},
		"a total too small":     {&usage{PromptTokenCount: 10, CandidatesTokenCount: 4, TotalTokenCount: 3}, [3]int64{10, 0, 4}},
		"negative":              {&usage{PromptTokenCount: -1, CachedContentTokenCount: -1, CandidatesTokenCount: -1}, [3]int64{}},
	} {
		in, cached, out := model.Tokens(c.usage)
		if got := [3]int64{in, cached, out}; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestUsedHasCacheWrites(t *testing.T) {
	u := &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 100, CachedContentTokenCount: 40, CandidatesTokenCount: 4,
		CacheTokensDetails: []*genai.ModalityTokenCount{nil, {Modality: genai.MediaModalityText, TokenCount: 40}}}
	model.SetCacheWrites(u, 0, 0)
	if n := len(u.CacheTokensDetails); n != 2 {
		t.Errorf("nothing was written, but there are %d details", n)
	}
	model.SetCacheWrites(u, 30, 20)
	want := budget.Usage{InputTokens: 100, CachedTokens: 40, CacheWriteTokens: 30, CacheWrite1hTokens: 20, OutputTokens: 4}
	if got := model.Used(u); got != want {
		t.Errorf("got %+v", got)
	}
}
