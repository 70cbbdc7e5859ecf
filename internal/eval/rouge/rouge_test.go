// SPDX-License-Identifier: Apache-2.0

package rouge_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/eval/rouge"
)

// testdata/pairs.jsonl has 200 pairs of texts with the figures that rouge_score's tokenizer and NLTK's PorterStemmer
// (commit f2a92bd) gave for them.
func TestF1IsThatOfTheReference(t *testing.T) {
	data, err := os.ReadFile("testdata/pairs.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range bytes.Lines(data) {
		var p struct {
			Answer, Reference string
			F1                float64
		}
		if err := json.Unmarshal(line, &p); err != nil {
			t.Fatal(err)
		}
		n++
		if got := rouge.F1(p.Answer, p.Reference); math.Abs(got-p.F1) > 1e-12 {
			t.Errorf("pair %d: %v, want %v: %q, %q", n, got, p.F1, p.Answer, p.Reference)
		}
	}
	if n != 200 {
		t.Errorf("%d pairs", n)
	}
}

// testdata/stems.txt has words with the stems that NLTK gave for them: the examples of the paper, and others by chance.
func TestStemsAreThoseOfTheReference(t *testing.T) {
	data, err := os.ReadFile("testdata/stems.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(data)) {
		var w, stem string
		if _, err := fmt.Sscan(line, &w, &stem); err != nil {
			t.Fatal(err)
		}
		n++
		if len(w) <= 3 { // words of three letters are not stemmed
			stem = w
		}
		if got := rouge.Words(w); !slices.Equal(got, []string{stem}) {
			t.Errorf("%s: %q, want %q", w, got, stem)
		}
	}
	if n < 450 {
		t.Errorf("%d words", n)
	}
}

func TestWordsOfOtherScriptsAreWhole(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"Ação, não!", []string{"ação", "não"}},
		{"cafe\u0301s", []string{"cafés"}}, // decomposed
		{"Рейсы забронированы: 2", []string{"рейсы", "забронированы", "2"}},
		{"हिन्दी ठीक", []string{"हिन्दी", "ठीक"}},
		{"東京と大阪。", []string{"東", "京", "と", "大", "阪"}},
		{"GPT5はコーヒー2杯", []string{"gpt5", "は", "コ", "ー", "ヒ", "ー", "2", "杯"}},
		{"ที่นี่ปิด", []string{"ที่", "นี่", "ปิ", "ด"}},
		{"ສະບາຍດີ", []string{"ສ", "ະ", "ບ", "າ", "ຍ", "ດີ"}},
		{"한국어 답변", []string{"한국어", "답변"}}, // Korean has spaces
		{"", nil},
	} {
		if got := rouge.Words(tt.text); !slices.Equal(got, tt.want) {
			t.Errorf("Words(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
	if got := rouge.F1("東京 と 大阪", "大阪 と 東京"); got != 1 {
		t.Errorf("the same words in another order have %v", got)
	}
	if got := rouge.F1("返品は30日以内に可能です。", "返品は三十日以内に可能です"); got < 0.8 {
		t.Errorf("an answer with another number has %v", got)
	}
}

func FuzzF1(f *testing.F) {
	f.Add("the flights were booked", "yyyyying eed \xff")
	f.Add(strings.Repeat("y", 40)+"ing", "ß İ ſ")
	f.Fuzz(func(t *testing.T, a, b string) {
		got := rouge.F1(a, b)
		if !(got >= 0 && got <= 1) || got != rouge.F1(b, a) {
			t.Errorf("F1(%q, %q) = %v", a, b, got)
		}
		if w := rouge.Words(a); len(w) > 0 && rouge.F1(a, a) != 1 {
			t.Errorf("F1 of %q and itself is %v", a, rouge.F1(a, a))
		}
	})
}
