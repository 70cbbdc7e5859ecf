// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/budget"
)

func TestListed(t *testing.T) {
	for _, name := range []string{"anthropic/claude-sonnet-4-5", "anthropic/claude-sonnet-4-5-20250929", "openai/gpt-5-mini",
		"openai/gpt-5-mini-2025-08-07", "openai/gpt-6.2-sol", "gemini/gemini-2.5-flash"} {
		p, ok := budget.Listed(name)
		day, err := time.Parse(time.DateOnly, p.Date)
		if !ok || err != nil || day.Year() < 2026 || !strings.HasPrefix(p.Source, "https://") {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		if p.Input <= 0 || p.Output < p.Input || p.CachedInput <= 0 || p.CachedInput > p.Input/2 {
			t.Errorf("%s: %+v", name, p)
		}
		if w := p.CacheWrite; w != 0 && w != 1.25*p.Input {
			t.Errorf("%s: writing costs %v, input %v", name, w, p.Input)
		}
	}
	for _, name := range []string{"", "gpt-5-mini", "openai/", "openai/gpt-99", "ollama/gpt-5-mini", "openai/gpt-5-mini-20"} {
		if p, ok := budget.Listed(name); ok {
			t.Errorf("%q has the price %+v", name, p)
		}
	}
}
