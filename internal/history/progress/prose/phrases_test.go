// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// english matches the words that have Portuguese ones: the form and the page say laço and nota. The name of a field is none.
var english = regexp.MustCompile(`(?i)\b(loops?|scores?)\b`)

// Each phrase has room for the same things in both languages, and a sentence in Portuguese has no English word for what
// the page names in Portuguese.
func TestPhrasesAreComplete(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "phrases.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	phrases := 0
	ast.Inspect(file, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		phrases++
		var text [2]string
		for i, e := range lit.Elts {
			if text[i], err = strconv.Unquote(e.(*ast.BasicLit).Value); err != nil || text[i] == "" {
				t.Errorf("phrase %d: %q, %v", phrases, text[i], err)
			}
		}
		if strings.Count(text[0], "%s") != strings.Count(text[1], "%s") {
			t.Errorf("%q and %q have room for different things", text[0], text[1])
		}
		if english.MatchString(strings.Replace(text[1], "Dê a score um target", "", 1)) {
			t.Errorf("%q has an English word", text[1])
		}
		return true
	})
	if phrases < 100 {
		t.Errorf("found %d phrases", phrases)
	}
}

// Figures are those of internal/values/brief, in the language of the sentence.
func TestFiguresInSentences(t *testing.T) {
	for _, tt := range []struct {
		value  any
		en, pt string
	}{
		{7.15, "7.15", "7,15"}, {-0.5, "-0.5", "-0,5"}, {7.150084065, "7.15", "7,15"}, {41206, "41,206", "41.206"},
		{1234567.5, "1,234,568", "1.234.568"}, {1300 * time.Millisecond, "1.3s", "1,3s"}, {30 * time.Minute, "30m", "30m"},
	} {
		p := phrase{"%s", "%s"}
		if en, pt := English.say(p, tt.value), Portuguese.say(p, tt.value); en != tt.en || pt != tt.pt {
			t.Errorf("%v is %q and %q, want %q and %q", tt.value, en, pt, tt.en, tt.pt)
		}
	}
}
