// SPDX-License-Identifier: Apache-2.0

package refrain_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// columns is how wide a line of Go may be. Data may be wider: rows of tables, texts, and short code around
// one long text.
const columns, short = 160, 80

func TestLinesOfGoAreNotWide(t *testing.T) {
	walk(t, func(name string) {
		if path.Ext(name) != ".go" {
			return
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
			return
		}
		for _, line := range wide(t, name, string(text)) {
			t.Errorf("%s:%d has more than %d columns", name, line, columns)
		}
	})
}

func TestWideLinesAreFoundOutsideOfData(t *testing.T) {
	long := strings.Repeat("x", columns)
	source := strings.NewReplacer("LONG", long, "WIDE", long[:short]).Replace("package p\n\n" + // line 2
		"// LONG\n" + // 3
		"var _ = []string{\n\t\"LONG\",\n\tf(`LONG`),\n}\n" + // 4 to 7
		"var _ = `\nLONG\n`\n" + // 8 to 10
		"func g() {\n\tf(\"LONG\", WIDE)\n\tf(\"LONG\")\n}\n" + // 11 to 14
		"var _ = []func(){\n\tfunc() {\n\t\tf(LONG)\n\t},\n}\n") // 15 to 19
	if diff := cmp.Diff([]int{3, 12, 17}, wide(t, "p.go", source)); diff != "" {
		t.Error(diff)
	}
}

// wide returns the numbers of the lines that are too wide and no data: they neither begin inside a composite
// literal or a text, nor are they short without their longest text. A function in a composite literal is code.
func wide(t *testing.T, name, text string) []int {
	t.Helper()
	var found []int
	var file *ast.File
	files := token.NewFileSet()
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSuffix(line, "\n")
		if utf8.RuneCountInString(line) <= columns {
			continue
		}
		if file == nil {
			var err error
			if file, err = parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
				t.Fatal(err)
			}
		}
		start := files.File(file.Pos()).LineStart(number) + token.Pos(len(line)-len(strings.TrimLeft(line, "\t")))
		end := start + token.Pos(len(strings.TrimLeft(line, "\t")))
		if !data(file, start) && utf8.RuneCountInString(line)-longestText(file, start, end) > short {
			found = append(found, number)
		}
	}
	return found
}

// data reports whether a position is in the output of an example, or the innermost literal around it is no function.
func data(file *ast.File, at token.Pos) bool {
	inside := slices.ContainsFunc(file.Comments, func(c *ast.CommentGroup) bool {
		return c.Pos() <= at && at < c.End() && strings.HasPrefix(c.Text(), "Output:")
	})
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil || at < n.Pos() || n.End() <= at {
			return false
		}
		switch n := n.(type) {
		case *ast.FuncLit:
			inside = inside && at == n.Pos()
		case *ast.CompositeLit:
			inside = inside || at > n.Lbrace
		case *ast.BasicLit:
			inside = true
		}
		return true
	})
	return inside
}

// longestText returns the columns of the longest text between two positions of one line.
func longestText(file *ast.File, start, end token.Pos) int {
	longest := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && start <= lit.Pos() && lit.Pos() < end {
			longest = max(longest, utf8.RuneCountInString(lit.Value))
		}
		return true
	})
	return longest
}
