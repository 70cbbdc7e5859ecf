// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// Each phrase has room for the same things in both languages.
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
		return true
	})
	if phrases < 100 {
		t.Errorf("found %d phrases", phrases)
	}
}

func TestNumbersAsPeopleWriteThem(t *testing.T) {
	for _, tt := range []struct {
		f        float64
		decimals int
		en, pt   string
	}{
		{7.15, shortest, "7.15", "7,15"}, {0, shortest, "0", "0"}, {-0.5, shortest, "−0.5", "−0,5"},
		{41206, shortest, "41,206", "41.206"}, {1234567.5, shortest, "1,234,567.5", "1.234.567,5"},
		{7.150084065, shortest, "7.15008", "7,15008"}, {7.150084065, 1, "7.2", "7,2"}, {-0.01, 1, "0.0", "0,0"},
		{1e20, shortest, "1e+20", "1e+20"}, {1e-9, shortest, "1e-09", "1e-09"},
	} {
		if en, pt := English.number(tt.f, tt.decimals), Portuguese.number(tt.f, tt.decimals); en != tt.en || pt != tt.pt {
			t.Errorf("%v is %q and %q, want %q and %q", tt.f, en, pt, tt.en, tt.pt)
		}
	}
}
