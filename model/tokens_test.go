// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	"google.golang.org/genai"

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
