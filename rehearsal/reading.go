// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/parser"

	"github.com/refrain-dev/refrain/definition"
)

// reading goes through expressions and notes for what they take the values of the
// state. It does not have to be right: what stand-ins then leave is tried.
type reading struct {
	keys   map[string][]*need // what a key of the state may be
	result *need              // of the task whose expression it is; nil for no task
	own    map[string][]*need // variables of filter, map and the like
}

// found is what a part of an expression comes to: one of some values, or
// something of a kind.
type found struct {
	needs []*need
	kind  kind
}

func (f found) take(k kind) {
	for _, n := range f.needs {
		n.take(k)
	}
}

// part is a part of it, made by of.
func (f found) part(of func(*need) *need) found {
	var all []*need
	for _, n := range f.needs {
		if p := of(n); !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return found{needs: all}
}

// seen notes that an expression reads the values.
func (f found) seen() found {
	for _, n := range f.needs {
		n.read = true
	}
	return f
}

func both(a, b found) found {
	return found{append(slices.Clone(a.needs), b.needs...), max(a.kind, b.kind)}
}

// agent reads what an agent has, and notes what it leaves in the state.
func (r *reading) agent(a *definition.Agent, result *need) {
	r.result = result
	if x := a.Expression; x != nil {
		if v := r.expression(x.Value); a.OutputKey != "" {
			r.alias(a.OutputKey, v)
		}
		for _, key := range slices.Sorted(maps.Keys(x.Set)) {
			r.alias(key, r.expression(x.Set[key]))
		}
	}
	r.condition(a.ExitWhen)
	if a.Loop != nil {
		for _, w := range leavesOf(a.Loop.StopWhen) {
			r.condition(w.expr)
		}
		if s := a.Loop.Score; s != nil {
			r.expression(s.Expr).take(number)
		}
	}
	texts := []string{a.Text}
	if a.LLM != nil {
		texts = append(texts, a.LLM.Instructions)
	}
	if a.Command != nil {
		texts = append(append(texts, a.Command.Args...), a.Command.Stdin)
	}
	for _, text := range texts {
		r.text(text)
	}
}

// alias notes that a key may have a value that another one has.
func (r *reading) alias(key string, f found) {
	for _, n := range f.needs {
		if !slices.Contains(r.keys[key], n) && len(r.keys[key]) < 8 {
			r.keys[key] = append(r.keys[key], n)
		}
	}
}

var placeholder = regexp.MustCompile(`\{\{[#^/&]?\s*(?:(?:best|prev|rejected)\.)?([A-Za-z_]\w*)\.([A-Za-z_][\w.]*)\s*\}\}`)

// text reads the placeholders of a text that name parts of a value.
func (r *reading) text(text string) {
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		f := found{needs: r.keys[m[1]]}
		for name := range strings.SplitSeq(m[2], ".") {
			f = f.part(func(n *need) *need { return n.field(name) })
		}
	}
}

func (r *reading) condition(src string) { r.expression(src).take(yesNo) }

// expression reads a source; one that is empty comes to nothing.
func (r *reading) expression(src string) found {
	if strings.TrimSpace(src) == "" {
		return found{}
	}
	// Without macros: filter and the like stay calls.
	p, err := parser.NewParser(parser.EnableOptionalSyntax(true))
	if err != nil {
		return found{}
	}
	tree, errs := p.Parse(common.NewTextSource(src))
	if len(errs.GetErrors()) > 0 {
		return found{}
	}
	r.own = make(map[string][]*need)
	return r.of(tree.Expr())
}

func (r *reading) of(e ast.Expr) found {
	switch e.Kind() {
	case ast.IdentKind:
		switch name := e.AsIdent(); name {
		case "iteration", "max_iterations", "score", "best_score", "elapsed":
			return found{kind: number}
		case "user_input":
			return found{kind: words}
		case "result":
			if r.result != nil {
				return found{needs: []*need{r.result}}
			}
		default:
			return found{needs: r.own[name]}
		}
	case ast.SelectKind:
		return r.named(e.AsSelect().Operand(), e.AsSelect().FieldName())
	case ast.LiteralKind:
		return found{kind: kindOf(e)}
	case ast.ListKind:
		n := &need{kind: list}
		for _, item := range e.AsList().Elements() {
			if f := r.of(item); n.item == nil && len(f.needs) > 0 {
				n.item = f.needs[0]
			}
		}
		return found{[]*need{n}, list}
	case ast.MapKind:
		n := &need{kind: object}
		for _, entry := range e.AsMap().Entries() {
			f := r.of(entry.AsMapEntry().Value())
			key, isText := literal(entry.AsMapEntry().Key()).(string)
			if !isText {
				continue
			}
			if part := n.field(key); len(f.needs) > 0 {
				n.fields[key] = f.needs[0]
			} else {
				part.take(f.kind)
			}
		}
		return found{[]*need{n}, object}
	case ast.CallKind:
		return r.call(e.AsCall())
	}
	return found{}
}

// named is a part of a value, or a key of the state.
func (r *reading) named(of ast.Expr, name string) found {
	if of.Kind() == ast.IdentKind && (of.AsIdent() == "state" || of.AsIdent() == "prev") && r.own[of.AsIdent()] == nil {
		return found{needs: r.keys[name]}.seen()
	}
	if of.Kind() == ast.IdentKind && of.AsIdent() == "usage" {
		return found{kind: number}
	}
	return r.of(of).part(func(n *need) *need { return n.field(name) }).seen()
}

// literal is what a literal says; nil for anything else.
func literal(e ast.Expr) any {
	if e.Kind() != ast.LiteralKind {
		return nil
	}
	switch v := e.AsLiteral().(type) {
	case types.String:
		return string(v)
	case types.Int:
		return float64(v)
	case types.Double:
		return float64(v)
	case types.Bool:
		return bool(v)
	}
	return nil
}

func kindOf(e ast.Expr) kind {
	switch literal(e).(type) {
	case string:
		return words
	case float64:
		return number
	case bool:
		return yesNo
	}
	return anything
}

// compared notes that two values are to be of a kind, and near each other.
func (r *reading) compared(x, y ast.Expr, usual kind) {
	a, b := r.of(x), r.of(y)
	k := max(a.kind, b.kind)
	for _, f := range []found{a, b} {
		for _, n := range f.needs {
			k = max(k, n.kind)
		}
	}
	if k == anything {
		k = usual
	}
	note := func(f, other found, e ast.Expr) {
		for _, n := range f.needs {
			n.take(k)
			if v := literal(e); v != nil && !slices.Contains(n.near, v) {
				n.near = append(n.near, v)
			}
			for _, o := range other.needs {
				if !slices.Contains(n.alike, o) {
					n.alike = append(n.alike, o)
				}
			}
		}
	}
	note(a, b, y)
	note(b, a, x)
}
