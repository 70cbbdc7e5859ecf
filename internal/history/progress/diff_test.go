// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/history/progress"
)

func marked(edits []progress.Edit) string {
	var b strings.Builder
	for _, e := range edits {
		switch e.Op {
		case progress.Kept:
			b.WriteString(e.Text)
		case progress.Left:
			b.WriteString("[-" + e.Text + "-]")
		case progress.Put:
			b.WriteString("{+" + e.Text + "+}")
		}
	}
	return b.String()
}

func TestDiffOfTextsIsByWord(t *testing.T) {
	for _, tt := range []struct{ before, after, want string }{
		{"", "", ""},
		{"a cat", "a cat", "a cat"},
		{"", "a cat", "{+a cat+}"},
		{"a cat", "", "[-a cat-]"},
		{"Fresh bread every day. Call us.", "Fresh bread baked at 5am. Call us.", "Fresh bread [-every day.-]{+baked at 5am.+} Call us."},
		{"one two three", "one three", "one [-two -]three"},
		{"one three", "one two three", "one {+two +}three"},
		{"a b c d", "b c d e", "[-a -]b c d{+ e+}"},
		{"猫は寝る", "犬は寝る", "[-猫-]{+犬+}は寝る"},
		{"a\n\nb", "a\nb", "a[-\n\n-]{+\n+}b"},
		{"\xff x", "\xfe x", "[-\xff-]{+\xfe+} x"},
	} {
		if got := marked(progress.DiffWords(tt.before, tt.after)); got != tt.want {
			t.Errorf("from %q to %q: got %q, want %q", tt.before, tt.after, got, tt.want)
		}
	}
}

// Whatever the texts, the edits make both of them.
func FuzzDiffWords(f *testing.F) {
	f.Add("a b c", "b c d")
	f.Add("  x\ny ", "\xff猫 x")
	f.Fuzz(func(t *testing.T, before, after string) { checkEdits(t, before, after) })
}

func checkEdits(t *testing.T, before, after string) (kept int) {
	t.Helper()
	var was, is strings.Builder
	last := progress.Edit{}
	for _, e := range progress.DiffWords(before, after) {
		if e.Text == "" || e.Op == last.Op {
			t.Errorf("from %q to %q: empty, or two in a row: %v", before, after, e)
		}
		last = e
		if e.Op != progress.Put {
			was.WriteString(e.Text)
		}
		if e.Op != progress.Left {
			is.WriteString(e.Text)
		}
		if e.Op == progress.Kept {
			kept += len(e.Text)
		}
	}
	if was.String() != before || is.String() != after {
		t.Errorf("from %q to %q: the edits make %q and %q", before, after, was.String(), is.String())
	}
	return kept
}

// A long text with few changes keeps nearly all of it; two that have nothing in
// common do not take for ever.
func TestDiffOfLongTexts(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 20_000)
	for i := range words {
		words[i] = string(rune('a'+dice.IntN(26))) + string(rune('a'+dice.IntN(26)))
	}
	before := strings.Join(words, " ")
	for range 50 {
		words[dice.IntN(len(words))] = "changed"
	}
	if kept := checkEdits(t, before, strings.Join(words, " ")); kept < len(before)*99/100 {
		t.Errorf("kept %d of %d bytes", kept, len(before))
	}
	checkEdits(t, before, strings.ToUpper(before))
}

func TestDiffOfStatesIsByKey(t *testing.T) {
	type scores struct {
		Clarity float64 `json:"clarity"`
		Tone    int     `json:"tone"`
	}
	before := map[string]any{
		"draft": "a cat", "same": []int{1}, "gone": true,
		"analysis": scores{7.6, 8}, "list": []string{"x"}, "kind": "text",
		"review": `{"score": 5, "advice": "Say where."}`, "odd": "{",
	}
	after := map[string]any{
		"draft": "a black cat", "same": []any{1.0}, "new": nil, "more": 1,
		"analysis": map[string]any{"clarity": 8.2, "tone": 8}, "list": []string{"x", "y"}, "kind": 1, "func": func() {},
		"review": ` {"score": 7, "advice": "Say when."}`, "odd": "{}",
	}
	var got []string
	for _, c := range progress.Diff(before, after) {
		line := c.Key
		if c.Words != nil {
			line += " " + marked(c.Words)
		}
		got = append(got, line)
	}
	want := []string{"analysis.clarity", "draft a {+black +}cat", "func", "gone", "kind", "list", "more", "odd [-{-]{+{}+}",
		"review.advice Say [-where.-]{+when.+}", "review.score"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
