// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	"github.com/refrain-dev/refrain/model"
)

func TestCachesOf(t *testing.T) {
	for _, tt := range []struct {
		provider, name string
		want           model.Caches
	}{
		{"anthropic", "claude-sonnet-4-5-20250929", model.Caches{MinTokens: 1024, Asked: true, Charged: true}},
		{"anthropic", "claude-novel-9", model.Caches{MinTokens: 4096, Asked: true, Charged: true}},
		{"openai", "gpt-5-mini", model.Caches{MinTokens: 1024, Block: 128}},
		{"openai", "gpt-5.5", model.Caches{MinTokens: 1024, Block: 128}},
		{"openai", "gpt-5.6-sol", model.Caches{MinTokens: 1024, Block: 128, Charged: true}},
		{"openai", "gpt-6-luna", model.Caches{MinTokens: 1024, Block: 128, Charged: true}},
		{"openai", "gpt-10", model.Caches{MinTokens: 1024, Block: 128, Charged: true}},
		{"openai", "llama-6", model.Caches{MinTokens: 1024, Block: 128}},
		{"gemini", "gemini-2.5-flash", model.Caches{MinTokens: 1024}},
		{"gcp.gemini", "gemini-9", model.Caches{MinTokens: 4096}},
		{"ollama", "qwen3", model.Caches{}},
		{"", "", model.Caches{}},
	} {
		if got := model.CachesOf(tt.provider, tt.name); got != tt.want {
			t.Errorf("%s/%s: %+v, want %+v", tt.provider, tt.name, got, tt.want)
		}
	}
}
