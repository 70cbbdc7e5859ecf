// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"slices"
	"strconv"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// Reads returns the keys of the variable root that the expression can read, by
// state.key, state["key"], "key" in state or has(state.key), sorted. all is
// true if it may read any key: it indexes by a computed key or uses the whole
// map.
func (p *Program) Reads(root string) (keys []string, all bool) {
	r := reader{root: root, seen: map[string]bool{}}
	r.walk(p.ast.Expr(), false)
	for k := range r.seen {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys, r.all
}

// Reads is [Program.Reads] for a source that may not compile, so that mistakes in its variables and
// keys can be reported together. It finds nothing in a source that cannot be parsed.
func Reads(src, root string) (keys []string, all bool) {
	defer func() {
		if r := recover(); r != nil {
			keys, all = nil, false
		}
	}()
	env, err := base()
	if err != nil {
		return nil, false
	}
	parsed, issues := env.Parse(src)
	if issues.Err() != nil {
		return nil, false
	}
	return (&Program{ast: parsed.NativeRep()}).Reads(root)
}

type reader struct {
	root string
	seen map[string]bool
	all  bool
}

// walk notes what e reads; hidden means that a comprehension's own variable
// has the root's name.
func (r *reader) walk(e ast.Expr, hidden bool) {
	if key, ok := r.access(e, hidden); ok {
		r.seen[key] = true
		return
	}
	switch e.Kind() {
	case ast.IdentKind:
		if !hidden && e.AsIdent() == r.root {
			r.all = true
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		inner := hidden || c.IterVar() == r.root || c.HasIterVar2() && c.IterVar2() == r.root
		r.walk(c.IterRange(), hidden)
		r.walk(c.AccuInit(), hidden)
		r.walk(c.LoopCondition(), inner)
		r.walk(c.LoopStep(), inner)
		r.walk(c.Result(), hidden)
	default:
		for _, c := range children(e) {
			r.walk(c, hidden)
		}
	}
}

// access recognises the ways to read one named key of the root.
func (r *reader) access(e ast.Expr, hidden bool) (key string, ok bool) {
	if hidden {
		return "", false
	}
	operand, key, ok := keyed(e)
	return key, ok && operand.Kind() == ast.IdentKind && operand.AsIdent() == r.root
}

// keyed takes apart x.key, x["key"], x.?key, x[?"key"] and "key" in x.
func keyed(e ast.Expr) (operand ast.Expr, key string, ok bool) {
	switch e.Kind() {
	case ast.SelectKind:
		return e.AsSelect().Operand(), e.AsSelect().FieldName(), true
	case ast.CallKind:
		c := e.AsCall()
		if len(c.Args()) != 2 {
			return nil, "", false
		}
		x, k := c.Args()[0], c.Args()[1]
		switch c.FunctionName() {
		case operators.In:
			x, k = k, x
		case operators.Index, operators.OptIndex, operators.OptSelect:
		default:
			return nil, "", false
		}
		if k.Kind() == ast.LiteralKind {
			if s, isText := k.AsLiteral().(types.String); isText {
				return x, string(s), true
			}
		}
	}
	return nil, "", false
}

func children(e ast.Expr) []ast.Expr {
	switch e.Kind() {
	case ast.SelectKind:
		return []ast.Expr{e.AsSelect().Operand()}
	case ast.CallKind:
		c := e.AsCall()
		if c.IsMemberFunction() {
			return append([]ast.Expr{c.Target()}, c.Args()...)
		}
		return c.Args()
	case ast.ListKind:
		return e.AsList().Elements()
	case ast.MapKind:
		var out []ast.Expr
		for _, m := range e.AsMap().Entries() {
			out = append(out, m.AsMapEntry().Key(), m.AsMapEntry().Value())
		}
		return out
	case ast.StructKind:
		var out []ast.Expr
		for _, f := range e.AsStruct().Fields() {
			out = append(out, f.AsStructField().Value())
		}
		return out
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		return []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()}
	}
	return nil
}

// pathOf finds the map that a missing key was asked of, as the source writes
// it: below the node that failed if that is known, and "" if it is not clear.
func (p *Program) pathOf(key string, node int64) string {
	var paths, computed []string
	var visit func(e ast.Expr, inside bool)
	visit = func(e ast.Expr, inside bool) {
		inside = inside || node == 0 || e.ID() == node
		if inside {
			if operand, k, ok := keyed(e); ok && k == key {
				paths = append(paths, path(operand))
			} else if c, ok := indexed(e); ok {
				computed = append(computed, path(c))
			}
		}
		for _, c := range children(e) {
			visit(c, inside)
		}
	}
	visit(p.ast.Expr(), false)
	if len(paths) == 0 && len(computed) == 0 && node != 0 {
		return p.pathOf(key, 0)
	}
	if len(paths) == 0 {
		paths = computed
	}
	slices.Sort(paths)
	if paths = slices.Compact(paths); len(paths) != 1 {
		return ""
	}
	return paths[0]
}

// indexed takes apart x[k] with a computed key.
func indexed(e ast.Expr) (operand ast.Expr, ok bool) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.Index || len(e.AsCall().Args()) != 2 {
		return nil, false
	}
	return e.AsCall().Args()[0], true
}

// path writes a chain of names as the source does; "" if e is anything else.
func path(e ast.Expr) string {
	if e.Kind() == ast.IdentKind {
		return e.AsIdent()
	}
	operand, key, ok := keyed(e)
	if !ok {
		return ""
	}
	p := path(operand)
	if p == "" {
		return ""
	}
	if e.Kind() == ast.SelectKind {
		return p + "." + key
	}
	return p + "[" + strconv.Quote(key) + "]"
}
