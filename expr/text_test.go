// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/expr"
)

// T21: scores arrive in the words of a model.
func TestNumber(t *testing.T) {
	for text, want := range map[string]float64{
		"8": 8, "Score: 6.8 → ok": 6.8, "7.5/10": 7.5, "score=-3": -3, "F1: 0.83": 0.83, "GPT-4 says 9": 9,
		"8-10": 8, "1,234.5": 1234.5, "Nota: 7,5.": 7.5, "85%": 85, "1e3": 1000, ".5": 0.5, "**8.5**": 8.5,
		"[7, 8]": 7, "7,8,9": 7, "−2": -2, "v2 of 3": 3, "x.": math.NaN(), "": math.NaN(), "a1b2": math.NaN(),
		"1e999 then 4": 4, "+5": 5, "Score:8": 8, "1,000,000": 1e6,
	} {
		got, err := expr.Number(text)
		if math.IsNaN(want) {
			if !errors.Is(err, expr.ErrNoNumber) {
				t.Errorf("Number(%q) = %v, %v", text, got, err)
			}
		} else if got != want || err != nil {
			t.Errorf("Number(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
}

// D18: structured values arrive inside text.
func TestJSON(t *testing.T) {
	object := map[string]any{"score": json.Number("8.5")}
	for text, want := range map[string]any{
		`{"score": 8.5}`:                                          object,
		"```json\n{\"score\": 8.5}\n```":                          object,
		"```\n{\"score\": 8.5}\n```":                              object,
		"```JSON\n{\"score\": 8.5}\n``` and more":                 object,
		"Sure!\n```json {\"score\": 8.5} ```":                     object,
		"```go\nx := 1\n```\nthen ```json\n{\"score\": 8.5}\n```": object,
		`The verdict {sic} is {"score": 8.5}, I think`:            object,
		`[1]`:                       []any{json.Number("1")},
		` 12 `:                      json.Number("12"),
		`"x"`:                       "x",
		"```json\n{\"score\": 8.5}": object,
	} {
		got, err := expr.JSON(text)
		if err != nil {
			t.Errorf("JSON(%q): %v", text, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("JSON(%q) (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{"", "none", "{", "{]", "12 monkeys"} {
		if v, err := expr.JSON(text); !errors.Is(err, expr.ErrNoJSON) {
			t.Errorf("JSON(%q) = %v, %v", text, v, err)
		}
	}
}

func FuzzNumber(f *testing.F) {
	f.Add("Score: 7,5/10")
	f.Add("−1e")
	f.Fuzz(func(t *testing.T, s string) {
		if v, err := expr.Number(s); err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
			t.Fatalf("Number(%q) = %v", s, v)
		}
		_, _ = expr.JSON(s)
	})
}
