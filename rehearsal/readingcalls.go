// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

func (r *reading) call(c ast.CallExpr) found {
	args := c.Args()
	switch name := c.FunctionName(); name {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot:
		for _, a := range args {
			r.of(a).take(yesNo)
		}
		return found{kind: yesNo}
	case operators.Conditional:
		r.of(args[0]).take(yesNo)
		return both(r.of(args[1]), r.of(args[2]))
	case operators.Equals, operators.NotEquals:
		r.compared(args[0], args[1], anything)
		return found{kind: yesNo}
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		r.compared(args[0], args[1], number)
		return found{kind: yesNo}
	case operators.Add:
		return r.sum(args)
	case operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate:
		for _, a := range args {
			r.of(a).take(number)
		}
		return found{kind: number}
	case operators.In:
		r.among(args[0], args[1])
		return found{kind: yesNo}
	case operators.Index, operators.OptIndex, operators.OptSelect:
		switch key := literal(args[1]).(type) {
		case string:
			return r.named(args[0], key)
		case float64:
			return r.of(args[0]).part((*need).items).seen()
		}
		r.of(args[1])
		return r.of(args[0])
	default:
		if c.IsMemberFunction() {
			return r.method(c.Target(), name, args)
		}
		return r.function(name, args)
	}
}

// sum is of numbers, of texts, or of lists.
func (r *reading) sum(args []ast.Expr) found {
	a, b := r.of(args[0]), r.of(args[1])
	k := max(a.kind, b.kind)
	for _, n := range append(slices.Clone(a.needs), b.needs...) {
		k = max(k, n.kind)
	}
	if k == anything {
		k = number
	}
	a.take(k)
	b.take(k)
	if k == list {
		return both(a, b)
	}
	return found{kind: k}
}

// among is a value in a list.
func (r *reading) among(x, of ast.Expr) {
	if of.Kind() == ast.ListKind {
		for _, item := range of.AsList().Elements() {
			r.compared(x, item, anything)
		}
		return
	}
	f := r.of(of)
	if k := kindOf(x); k != anything {
		f.part((*need).items).take(k)
	}
	r.of(x)
}

// function reads a call such as size(x).
func (r *reading) function(name string, args []ast.Expr) found {
	all := make([]found, len(args))
	for i, a := range args {
		all[i] = r.of(a)
	}
	if len(all) == 0 {
		return found{}
	}
	switch first := all[0]; name {
	case "json":
		for _, n := range first.needs {
			n.parsed = true
		}
		return first
	case "number":
		first.take(words)
		return found{kind: number}
	case "int", "double", "uint":
		first.take(number)
		return found{kind: number}
	case "size":
		return found{kind: number}
	case "says":
		first.take(words)
		near(first, args[1:])
		return found{kind: yesNo}
	case "has":
		return found{kind: yesNo}
	case "string", "type":
		return found{kind: words}
	}
	return found{}
}

// near notes what a value may be expected to hold.
func near(f found, args []ast.Expr) {
	for _, a := range args {
		for _, n := range f.needs {
			if v := literal(a); v != nil && !slices.Contains(n.near, v) {
				n.near = append(n.near, v)
			}
		}
	}
}

// method reads a call such as x.filter(…).
func (r *reading) method(target ast.Expr, name string, args []ast.Expr) found {
	if target.Kind() == ast.IdentKind && target.AsIdent() == "math" && r.own["math"] == nil {
		return r.math(args)
	}
	of := r.of(target)
	switch name {
	case "filter", "all", "exists", "exists_one", "existsOne", "map", "sortBy", "transformList":
		return r.each(of, name, args)
	case "contains", "startsWith", "endsWith", "matches", "indexOf", "lastIndexOf":
		of.take(words)
		near(of, args)
		return found{kind: yesNo}
	case "lowerAscii", "upperAscii", "trim", "replace", "substring", "reverse", "format", "join":
		if name == "join" {
			of.part((*need).items).take(words)
		} else if name != "reverse" {
			of.take(words)
		}
		return found{of.needs, words}
	case "split":
		of.take(words)
		return found{kind: list}
	case "distinct", "slice", "sort", "flatten":
		of.take(list)
		return of
	case "first", "last":
		return of.part((*need).items)
	case "orValue", "or", "value":
		for _, a := range args {
			of = both(of, r.of(a))
		}
		of.take(of.kind)
		return of
	case "size":
		return found{kind: number}
	}
	for _, a := range args {
		r.of(a)
	}
	return found{}
}

// math reads math.least(a, b) and its like; what is given may be a list.
func (r *reading) math(args []ast.Expr) found {
	out := found{kind: number}
	for _, a := range args {
		f := r.of(a)
		if f.kind == list || slices.ContainsFunc(f.needs, func(n *need) bool { return n.item != nil || n.kind == list }) {
			f = f.part((*need).items).seen()
		}
		f.take(number)
		out.needs = append(out.needs, f.needs...)
	}
	return out
}

// each reads what is done with each of a list.
func (r *reading) each(of found, name string, args []ast.Expr) found {
	if len(args) < 2 || args[0].Kind() != ast.IdentKind {
		return of
	}
	of.take(list)
	own := args[0].AsIdent()
	was := r.own[own]
	r.own[own] = of.part((*need).items).seen().needs
	var last found
	for _, a := range args[1:] {
		last = r.of(a)
	}
	r.own[own] = was
	switch name {
	case "map", "transformList":
		n := &need{kind: list, item: &need{kind: last.kind}}
		if len(last.needs) > 0 {
			n.item = last.needs[0]
		}
		return found{[]*need{n}, list}
	case "filter":
		last.take(yesNo)
		return of
	case "sortBy":
		return of
	}
	last.take(yesNo)
	return found{kind: yesNo}
}
