// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// Reads implements expr.Program.
func (p *program) Reads(root string) (keys []string, all bool) {
	r := reader{root: root, note: func(_ ast.Expr, key string) { keys = append(keys, key) }}
	r.walk(p.ast.Expr(), false)
	slices.Sort(keys)
	return slices.Compact(keys), r.all
}

// Reads is the Reads of [expr.Program] for a source that may not compile, so that mistakes in its variables and
// keys can be reported together. It finds nothing in a source that cannot be parsed.
func Reads(src, root string) (keys []string, all bool) {
	defer func() {
		if r := recover(); r != nil {
			keys, all = nil, false
		}
	}()
	if p := parse(src); p != nil {
		return p.Reads(root)
	}
	return nil, false
}

// Paths returns the chains of names after the variable root in a source that may not compile: ["review", "score"] for
// state.review.score, state["review"].?score and json(state.review).score. Each is as long as the source has it. A
// method that only texts have ends its chain with parentheses: ["review", "contains()"] for state.review.contains("x").
func Paths(src, root string) (all [][]string) {
	p := parse(src)
	if p == nil {
		return nil
	}
	r := reader{root: root, note: func(ast.Expr, string) {}, path: func(names []string) { all = append(all, names) }}
	r.walk(p.ast.Expr(), false)
	return all
}

// parse returns a program that is not checked; nil if the source cannot be parsed.
func parse(src string) *program {
	env, err := base()
	if err != nil {
		return nil
	}
	parsed, issues := env.Parse(src)
	if issues.Err() != nil {
		return nil
	}
	return &program{src: src, ast: parsed.NativeRep()}
}

// Mention is a place in a source that names a key of a variable.
type Mention struct {
	Key string
	// From and To are the bytes of the key in the source.
	From, To int
	// Dot is set for a key after a dot, where a key must be a word.
	Dot bool
}

// Mentions returns the places in a source that compiles where it names keys of the variable root, in the forms that
// [expr.Program] knows. It leaves out keys that are written with escapes. hides is true if a comprehension has a
// variable of that name.
func Mentions(src, root string) (found []Mention, hides bool) {
	p := parse(src)
	if p == nil {
		return nil, false
	}
	r := reader{root: root, note: func(e ast.Expr, key string) {
		if m, ok := p.mention(e, root, key); ok {
			found = append(found, m)
		}
	}}
	r.walk(p.ast.Expr(), false)
	slices.SortFunc(found, func(a, b Mention) int { return a.From - b.From })
	return slices.Compact(found), r.hides
}

// These match the text between a variable and its key, and the beginning of a literal.
var (
	afterVariable = lazyregexp.New("^(?:[\\s.?`]|//.*)*")
	beforeText    = lazyregexp.New(`^[rR]?["']*`)
)

// mention returns the place at which an expression names a key of the root.
func (p *program) mention(e ast.Expr, root, key string) (m Mention, ok bool) {
	var named ast.Expr // the variable before a dot, or else the literal
	dotted, before := false, beforeText()
	switch {
	case e.Kind() == ast.SelectKind:
		named, dotted = e.AsSelect().Operand(), true
	case e.AsCall().FunctionName() == operators.OptSelect:
		named, dotted = e.AsCall().Args()[0], true
	case e.AsCall().FunctionName() == operators.In:
		named = e.AsCall().Args()[0]
	default:
		named = e.AsCall().Args()[1]
	}
	place, ok := p.ast.SourceInfo().GetOffsetRange(named.ID())
	if !ok {
		return m, false
	}
	from := len(string([]rune(p.src)[:place.Start]))
	if dotted {
		from, before = from+len(root), afterVariable()
	}
	from += len(before.FindString(p.src[from:]))
	return Mention{key, from, from + len(key), dotted && p.src[from-1] != '`'}, strings.HasPrefix(p.src[from:], key)
}

// textMethods are the methods that no value but a text has.
var textMethods = []string{"charAt", "contains", "endsWith", "indexOf", "lastIndexOf", "lowerAscii", "matches", "replace", "split",
	"startsWith", "substring", "trim", "upperAscii"}

type reader struct {
	root  string
	note  func(e ast.Expr, key string)
	path  func(names []string) // gets the whole chain of each access; nil needs none
	all   bool                 // every key may be read
	hides bool                 // a comprehension has a variable of the root's name
}

// walk notes what e reads; hidden means that a comprehension's own variable
// has the root's name.
func (r *reader) walk(e ast.Expr, hidden bool) {
	if r.path != nil && !hidden {
		if names := r.chain(e); len(names) > 0 {
			r.path(names)
			return
		}
		if e.Kind() == ast.CallKind && e.AsCall().IsMemberFunction() && slices.Contains(textMethods, e.AsCall().FunctionName()) {
			if names := r.chain(e.AsCall().Target()); len(names) > 0 {
				r.path(append(names, e.AsCall().FunctionName()+"()"))
			}
		}
	}
	if key, ok := r.access(e, hidden); ok {
		r.note(e, key)
		return
	}
	switch e.Kind() {
	case ast.IdentKind:
		if !hidden && e.AsIdent() == r.root {
			r.all = true
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		kept := c.AccuVar() == r.root // by optMap, which computes its result with the variable
		own := kept || c.IterVar() == r.root || c.HasIterVar2() && c.IterVar2() == r.root
		inner := hidden || own
		r.hides = r.hides || own
		r.walk(c.IterRange(), hidden)
		r.walk(c.AccuInit(), hidden)
		r.walk(c.LoopCondition(), inner)
		r.walk(c.LoopStep(), inner)
		r.walk(c.Result(), hidden || kept)
	default:
		for _, c := range children(e) {
			r.walk(c, hidden)
		}
	}
}

// chain returns the names that follow the root in an expression; nil if it is none.
func (r *reader) chain(e ast.Expr) []string {
	if e.Kind() == ast.CallKind {
		switch c := e.AsCall(); {
		case c.FunctionName() == "json" && len(c.Args()) == 1:
			return r.chain(c.Args()[0])
		case c.FunctionName() == operators.In: // the left side may be an element of a list
			return nil
		}
	}
	operand, key, ok := fieldAccess(e)
	switch {
	case !ok:
		return nil
	case operand.Kind() == ast.IdentKind && operand.AsIdent() == r.root:
		return []string{key}
	}
	names := r.chain(operand)
	if names == nil {
		return nil
	}
	return append(names, key)
}

// access recognises the ways to read one named key of the root.
func (r *reader) access(e ast.Expr, hidden bool) (key string, ok bool) {
	if hidden {
		return "", false
	}
	operand, key, ok := fieldAccess(e)
	return key, ok && operand.Kind() == ast.IdentKind && operand.AsIdent() == r.root
}

// fieldAccess takes apart x.key, x["key"], x.?key, x[?"key"] and "key" in x.
func fieldAccess(e ast.Expr) (operand ast.Expr, key string, ok bool) {
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
func (p *program) pathOf(key string, node int64) string {
	var paths, computed []string
	var visit func(e ast.Expr, inside bool)
	visit = func(e ast.Expr, inside bool) {
		inside = inside || node == 0 || e.ID() == node
		if inside {
			if operand, k, ok := fieldAccess(e); ok && k == key {
				paths = append(paths, path(operand))
			} else if c, ok := indexAccess(e); ok {
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

// indexAccess takes apart x[k] with a computed key.
func indexAccess(e ast.Expr) (operand ast.Expr, ok bool) {
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
	operand, key, ok := fieldAccess(e)
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
