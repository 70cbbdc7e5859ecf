// SPDX-License-Identifier: Apache-2.0

package form_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/form"
)

// Each explanation of a field, for each type of agent, and of each part of a field has a text in Portuguese.
func TestFieldsAreInPortuguese(t *testing.T) {
	english, portuguese := form.Fields(), form.FieldsInPortuguese()
	check := func(where, en, pt string) {
		if en != "" && (en == pt || strings.Contains(pt, "%!")) {
			t.Errorf("%s is not translated: %q", where, en)
		}
	}
	for i, f := range english {
		check(f.Name, f.Doc, portuguese[i].Doc)
		for kind, doc := range f.Docs {
			check(f.Name+" of "+string(kind), doc, portuguese[i].Docs[kind])
		}
		for j, p := range f.Parts {
			check(f.Name+"."+p.Name, p.Doc, portuguese[i].Parts[j].Doc)
		}
	}
}

// untranslated are problems that are nothing but the words of others, such as those of a compiler of expressions.
var untranslated = map[string]bool{"%s": true, "%v": true, "%s %v": true, "%s: %s": true, "%s, got %q": true, "default: %v": true}

// Each problem that package definition reports has a text in Portuguese, with its values.
func TestProblemsAreInPortuguese(t *testing.T) {
	files, err := filepath.Glob("../../../definition/*.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) < 3 {
				return true
			}
			var name string
			switch f := call.Fun.(type) {
			case *ast.SelectorExpr:
				name = f.Sel.Name
			case *ast.Ident:
				name = f.Name
			}
			at := 2
			switch name {
			case "report", "warn", "note":
			case "checked":
				at = 1
			default:
				return true
			}
			format, ok := constant(call.Args[at])
			if !ok || untranslated[format] {
				return true
			}
			n++
			said := strings.NewReplacer("%q", `"vwx"`, "%s", "vwx", "%[1]s", "vwx", "%v", "vwx", "%d", "7", "%.0f", "7").Replace(format)
			pt := form.ProblemInPortuguese(&definition.Problem{Message: said}).Message
			if pt == said || strings.Contains(pt, "%!") || strings.Count(pt, "vwx") != strings.Count(said, "vwx") {
				t.Errorf("%s: %q is in Portuguese %q", filepath.Base(file), format, pt)
			}
			return true
		})
	}
	if n < 150 {
		t.Errorf("found only %d problems", n)
	}
}

// Each hint that is written where package definition reports a problem has a text in Portuguese.
func TestHintsAreInPortuguese(t *testing.T) {
	files, err := filepath.Glob("../../../definition/*.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(node ast.Node) bool {
			set, ok := node.(*ast.AssignStmt)
			if !ok || len(set.Lhs) != 1 {
				return true
			}
			if to, ok := set.Lhs[0].(*ast.SelectorExpr); !ok || to.Sel.Name != "Hint" {
				return true
			}
			said := withValues(set.Rhs[0])
			if strings.Trim(said, "vwx ") == "" || said == `use text: "{{key}}"` {
				return true // the words come from elsewhere, or are the same
			}
			n++
			if pt := form.ProblemInPortuguese(&definition.Problem{Hint: said}).Hint; pt == said || strings.Contains(pt, "%!") {
				t.Errorf("%s: the hint %q is not translated", filepath.Base(file), said)
			}
			return true
		})
	}
	if n < 80 {
		t.Errorf("found only %d hints", n)
	}
}

// withValues is the text of an expression, with vwx in place of each value that is no literal.
func withValues(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return withValues(e.X) + withValues(e.Y)
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Sprintf" {
			return strings.NewReplacer("%q", `"vwx"`, "%s", "vwx", "%v", "vwx", "%d", "7").Replace(withValues(e.Args[0]))
		}
	}
	return "vwx"
}

// The refusals of a text in a command, which package taskagent words, are in Portuguese with what to write instead.
func TestTextInACommandIsInPortuguese(t *testing.T) {
	o := form.Read("x.yaml", []byte("name: x\ninputs: {a: hi}\ncommand: [\"{{a}}\", \"{{a}}\"]\nenv: {A: \"{{a}}\"}\n"), definition.Options{})
	o.InPortuguese()
	for i, want := range []string{"só choices declaradas", "como opção ou como código", "como configuração"} {
		p := o.Problems[i]
		if !strings.Contains(p.Message, want) || !strings.Contains(p.Hint, "declare o que pode ser: inputs: {a:") {
			t.Errorf("%s / %s, want %q", p.Message, p.Hint, want)
		}
	}
}

// constant is the text of an expression of string literals.
func constant(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		x, okX := constant(e.X)
		y, okY := constant(e.Y)
		return x + y, okX && okY
	}
	return "", false
}

// What an outline says is in Portuguese as a whole: the problems with their hints, and how the loop ends.
func TestOutlineInPortuguese(t *testing.T) {
	o := form.Read("x.yaml", []byte("name: x\nmax_iterations: many\nsub_agents:\n  - {name: a, text: hello, tols: 1}\n"), definition.Options{})
	o.InPortuguese()
	var said []string
	for _, p := range o.Problems {
		said = append(said, p.Message+" / "+p.Hint)
	}
	got := strings.Join(said, "\n")
	for _, want := range []string{`max_iterations deve ser um número inteiro, e não "many"`, `campo desconhecido: "tols"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	o = form.Read("x.yaml", []byte("name: x\nmax_iterations: 3\nsub_agents:\n  - {name: a, text: hello}\n"), definition.Options{})
	o.InPortuguese()
	if ways := strings.Join(o.Ends[0].Ways, "; "); !strings.HasPrefix(ways, "depois de 3 iterações; depois de ") {
		t.Errorf("it ends %s", ways)
	}
}

// Each way in which a loop can end is in Portuguese, with its figures.
func TestEndsInPortuguese(t *testing.T) {
	for fields, want := range map[string]string{
		"score: {key: n, target: 8.5, dimensions: [p], dimension_target: 7}": "quando a nota é ≥ 8,5 e cada parte dela é ≥ 7",
		"score: {key: n, min_delta_percent: 5}":                              "quando a nota melhora menos que 5%",
		"score: {key: n, min_delta: 0.1, min_delta_percent: 5, patience: 3}": "quando a nota melhora menos que 0,1 ou 5%, 3 vezes seguidas",
		"budget: {tokens: 100000}":                                           "quando 100.000 tokens forem usados",
		"budget: {tokens: 100000, calls: 1, cost: 0.5}":                      "quando 1 pedido ou 100.000 tokens ou 0,5 de custo forem usados",
		"score: {key: n}\nnot_worth: {gain: 0.1, per: iteration}":            "quando se espera que uma iteração a mais ganhe menos que 0,1",
		"max_iterations: 1000":                                               "depois de 1.000 iterações",
	} {
		o := form.Read("x.yaml", []byte("name: x\n"+fields+"\nsub_agents:\n  - {name: a, value: iteration, output_key: n}\n"), definition.Options{})
		o.InPortuguese()
		if len(o.Ends) == 0 {
			t.Errorf("%s: %v", fields, o.Problems)
			continue
		}
		if ways := strings.Join(o.Ends[0].Ways, "; "); !strings.Contains(ways, want) {
			t.Errorf("%s: it ends %s, want %s", fields, ways, want)
		}
	}
}

// A text that nobody writes is reported in Portuguese, with what to do.
func TestUnknownKeyInPortuguese(t *testing.T) {
	o := form.Read("x.yaml", []byte("name: x\ntext: \"{{who}}\"\n"), definition.Options{})
	o.InPortuguese()
	if p := o.Problems[0]; p.Message != "{{who}} é lido aqui, mas nenhum agente o escreve" || !strings.HasPrefix(p.Hint, "declare-o em inputs ou state") {
		t.Errorf("got %q / %q", p.Message, p.Hint)
	}
}
