// SPDX-License-Identifier: Apache-2.0

package brief_test

import (
	"cmp"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// The cases are those of the page too: see TestFiguresOfThePageAreThoseOfTheTerminal.
func TestOneFigureHasOneForm(t *testing.T) {
	text, err := os.ReadFile("testdata/figures.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Kind   string
		Value  float64
		En, Pt string
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	forms := map[string]func(f float64) string{
		"duration": func(f float64) string { return brief.Clock(time.Duration(f)) },
		"whole":    func(f float64) string { return brief.Whole(int64(f)) },
		"setting":  func(f float64) string { return brief.Number(f, 64) },
		"score":    brief.Score,
		"signed":   brief.Signed,
		"off by":   func(f float64) string { return brief.Score(8.1) + brief.OffBy(f) },
		"money":    brief.Money,
		"percent":  brief.Percent,
		"size":     func(f float64) string { return brief.Size(int64(f)) },
	}
	for _, c := range cases {
		en := forms[c.Kind](c.Value)
		if pt := brief.Comma(en); en != c.En || pt != cmp.Or(c.Pt, c.En) {
			t.Errorf("%s %v is %q, in Portuguese %q; want %q and %q", c.Kind, c.Value, en, pt, c.En, cmp.Or(c.Pt, c.En))
		}
	}
}
