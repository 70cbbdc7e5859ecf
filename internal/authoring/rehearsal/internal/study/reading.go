// SPDX-License-Identifier: Apache-2.0

package study

import (
	"slices"
	"strings"

	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/parser"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/expr/cel"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/loop"
)

// reading finds out which parts of the state are read by expressions and texts, and as which kind.
// It is a guess: the study tries the values.
type reading struct {
	keys   map[string][]*need // the values that each key of the state may have
	result *need              // the result of the task that the expression belongs to; nil if there is none
	own    map[string][]*need // by variable of a macro, such as filter
}

// agent reads the expressions and texts of an agent.
func (r *reading) agent(a *definition.Agent, result *need) {
	r.result = result
	if x := a.Expression; x != nil {
		r.alias(a.OutputKey, r.expression(x.Value, anything))
		for _, key := range SortedKeys(x.Set) {
			r.alias(key, r.expression(x.Set[key], anything))
		}
	}
	r.expression(a.ExitWhen, yesNo)
	if a.Loop != nil {
		for _, src := range ExpressionsOf(a.Loop.StopWhen) {
			r.expression(src, yesNo)
		}
		if s := a.Loop.Score; s != nil {
			r.expression(s.Expr, number)
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

// alias notes that a key may have the value of another key.
func (r *reading) alias(key string, all []*need) {
	for _, n := range all {
		if key != "" && !slices.Contains(r.keys[key], n) && len(r.keys[key]) < 8 {
			r.keys[key] = append(r.keys[key], n)
		}
	}
}

var placeholder = lazyregexp.New(`\{\{[#^/&]?\s*(?:(?:best|prev|rejected)\.)?([A-Za-z_]\w*)\.([A-Za-z_][\w.]*)\s*\}\}`)

// text reads the placeholders that name fields of a value.
func (r *reading) text(text string) {
	for _, m := range placeholder().FindAllStringSubmatch(text, -1) {
		all := r.keys[m[1]]
		for name := range strings.SplitSeq(m[2], ".") {
			all = each(all, func(n *need) *need { return n.field(name) })
		}
	}
}

// each returns one part of each value.
func each(all []*need, part func(*need) *need) []*need {
	var parts []*need
	for _, n := range all {
		if p := part(n); !slices.Contains(parts, p) {
			parts = append(parts, p)
		}
	}
	return parts
}

// expression reads an expression whose value is used as kind k.
func (r *reading) expression(src string, k kind) []*need {
	tree := parse(src)
	if tree == nil {
		return nil
	}
	r.own = make(map[string][]*need)
	return r.as(tree.Expr(), k)
}

// parse is the syntax tree of an expression, in which macros such as filter stay calls; nil if
// there is no expression or it cannot be parsed.
func parse(src string) *ast.AST {
	if strings.TrimSpace(src) == "" {
		return nil
	}
	p, err := parser.NewParser(parser.EnableOptionalSyntax(true))
	if err != nil {
		return nil
	}
	tree, errs := p.Parse(common.NewTextSource(src))
	if len(errs.GetErrors()) > 0 {
		return nil
	}
	return tree
}

// as reads a part of an expression whose value is used as kind k.
func (r *reading) as(e ast.Expr, k kind) []*need {
	all := r.of(e)
	for _, n := range all {
		n.take(k)
		n.read = true
	}
	return all
}

// of returns the values of the state that an expression returns unchanged; nil if it computes
// another value.
func (r *reading) of(e ast.Expr) []*need {
	switch e.Kind() {
	case ast.IdentKind:
		if name := e.AsIdent(); name != "result" {
			return r.own[name]
		}
		if r.result != nil {
			return []*need{r.result}
		}
	case ast.SelectKind:
		return r.part(e.AsSelect().Operand(), e.AsSelect().FieldName())
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			r.as(item, anything)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			r.as(entry.AsMapEntry().Value(), anything)
		}
	case ast.CallKind:
		return r.call(e.AsCall())
	}
	return nil
}

// part is a field of a value, or a key of the state.
func (r *reading) part(of ast.Expr, name string) []*need {
	if isState(of) {
		return r.keys[name]
	}
	return each(r.as(of, anything), func(n *need) *need { return n.field(name) })
}

func isState(e ast.Expr) bool {
	return e.Kind() == ast.IdentKind && (e.AsIdent() == "state" || e.AsIdent() == "prev")
}

// uses are the kinds of the arguments of functions and methods.
var uses = map[string]kind{
	operators.LogicalAnd: yesNo, operators.LogicalOr: yesNo, operators.LogicalNot: yesNo,
	operators.Subtract: number, operators.Multiply: number, operators.Divide: number, operators.Modulo: number, operators.Negate: number,
	"int": number, "double": number, "uint": number, "number": words, "says": words,
	"contains": words, "startsWith": words, "endsWith": words, "matches": words, "indexOf": words, "lastIndexOf": words,
	"replace": words, "substring": words, "split": words,
}

// call reads an operator, a function such as size(x), or a method such as x.filter(…).
func (r *reading) call(c ast.CallExpr) []*need {
	args, name := c.Args(), c.FunctionName()
	switch name {
	case operators.Conditional:
		r.as(args[0], yesNo)
		return slices.Concat(r.of(args[1]), r.of(args[2]))
	case operators.Equals, operators.NotEquals, operators.Add:
		r.compare(args[0], args[1], anything)
		return nil
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		r.compare(args[0], args[1], number)
		return nil
	case operators.In:
		r.among(args[0], args[1])
		return nil
	case operators.Index, operators.OptIndex, operators.OptSelect:
		if key, ok := literal(args[1]).(string); ok {
			return r.part(args[0], key)
		}
		r.as(args[1], number)
		return each(r.as(args[0], anything), (*need).items)
	case "json":
		all := r.as(args[0], anything)
		for _, n := range all {
			n.parsed = true
		}
		return all
	}
	if c.IsMemberFunction() {
		return r.method(c.Target(), name, args)
	}
	for i, a := range args {
		all := r.as(a, uses[name])
		if name == "says" {
			near(all, args[i+1:])
		}
	}
	return nil
}

// method reads a call such as x.filter(…).
func (r *reading) method(target ast.Expr, name string, args []ast.Expr) []*need {
	if target.Kind() == ast.IdentKind && target.AsIdent() == "math" {
		for _, a := range args {
			r.numbers(a)
		}
		return nil
	}
	switch name {
	case "filter", "all", "exists", "exists_one", "existsOne", "map", "sortBy", "transformList":
		return r.loop(r.as(target, list), name, args)
	case "distinct", "slice", "sort", "flatten":
		return r.as(target, list)
	case "first", "last":
		return each(r.as(target, list), (*need).items)
	case "join":
		each(r.as(target, list), func(n *need) *need { n.items().take(words); return n.items() })
		return nil
	case "lowerAscii", "upperAscii", "trim":
		return r.as(target, words)
	case "orValue", "or", "value":
		return slices.Concat(r.of(target), slices.Concat(mapped(args, r.of)...))
	}
	switch all := r.as(target, uses[name]); name {
	case "contains", "startsWith", "endsWith", "matches":
		near(all, args)
	}
	for _, a := range args {
		r.as(a, uses[name])
	}
	return nil
}

func mapped[A, B any](all []A, f func(A) B) []B {
	var out []B
	for _, a := range all {
		out = append(out, f(a))
	}
	return out
}

// numbers reads the arguments of a function of math: numbers, or a list of numbers.
func (r *reading) numbers(e ast.Expr) {
	for _, n := range r.as(e, anything) {
		if n.item != nil || n.kind == list {
			n = n.items()
		}
		n.take(number)
		n.read = true
	}
}

// loop reads a macro over a list, and returns the items of its result.
func (r *reading) loop(lists []*need, name string, args []ast.Expr) []*need {
	if len(args) < 2 || args[0].Kind() != ast.IdentKind {
		return lists
	}
	own := args[0].AsIdent()
	was := r.own[own]
	r.own[own] = each(lists, (*need).items)
	k := yesNo
	if name == "map" || name == "transformList" || name == "sortBy" {
		k = anything
	}
	var last []*need
	for _, a := range args[1:] {
		last = r.as(a, k)
	}
	r.own[own] = was
	switch {
	case name == "filter" || name == "sortBy":
		return lists
	case k == anything:
		return each(last, func(n *need) *need { return &need{kind: list, item: n} })
	}
	return nil
}

// compare reads two values of one kind that are compared.
func (r *reading) compare(x, y ast.Expr, usual kind) {
	a, b := r.of(x), r.of(y)
	for _, f := range []struct {
		all   []*need
		other ast.Expr
	}{{a, y}, {b, x}} {
		k := kindOf(f.other)
		if k == anything {
			k = usual
		}
		for _, n := range f.all {
			n.take(k)
			n.read = true
		}
		near(f.all, []ast.Expr{f.other})
		if word, ok := literal(f.other).(string); ok && word != "" {
			for _, n := range f.all {
				n.word = true
			}
		}
	}
}

// among reads a value that is looked up in a list.
func (r *reading) among(x, of ast.Expr) {
	if of.Kind() == ast.ListKind {
		for _, item := range of.AsList().Elements() {
			r.compare(x, item, anything)
		}
		return
	}
	r.as(x, anything)
	for _, n := range each(r.as(of, anything), (*need).items) {
		n.take(kindOf(x))
		n.read = true
	}
}

// near notes the literals that a value is compared with or searched for.
func near(all []*need, args []ast.Expr) {
	for _, a := range args {
		for _, n := range all {
			if v := literal(a); v != nil && !slices.Contains(n.near, v) {
				n.near = append(n.near, v)
			}
		}
	}
}

// literal is the value of a literal; nil for any other expression.
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
	if e.Kind() == ast.ListKind {
		return list
	}
	return anything
}

// parts splits an expression at &&, || and ! into a condition.
func parts(src string) *loop.Condition {
	tree := parse(src)
	if tree == nil {
		return &loop.Condition{Expr: src}
	}
	var of func(e ast.Expr) loop.Condition
	of = func(e ast.Expr) loop.Condition {
		if e.Kind() == ast.CallKind {
			switch c := e.AsCall(); c.FunctionName() {
			case operators.LogicalAnd:
				return loop.Condition{All: mapped(c.Args(), of)}
			case operators.LogicalOr:
				return loop.Condition{Any: mapped(c.Args(), of)}
			case operators.LogicalNot:
				return loop.Condition{Not: new(of(c.Args()[0]))}
			}
		}
		own, err := parser.Unparse(e, tree.SourceInfo())
		if err != nil {
			own = src
		}
		return loop.Condition{Expr: own}
	}
	return new(of(tree.Expr()))
}

// keysIn returns the keys of the state that an expression names.
func keysIn(src string) map[string]bool {
	all := make(map[string]bool)
	for _, root := range []string{"state", "prev"} {
		keys, _ := cel.Reads(src, root)
		for _, key := range keys {
			all[key] = true
		}
	}
	return all
}

// numbersIn returns the numbers in an expression, and the next ones below and above.
func numbersIn(src string) []any {
	var all []any
	if tree := parse(src); tree != nil {
		ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
			if f, ok := literal(e).(float64); ok {
				all = append(all, f, f-1, f+1)
			}
		}))
	}
	return all
}
