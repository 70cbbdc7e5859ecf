// SPDX-License-Identifier: Apache-2.0

package adkmove

import (
	"cmp"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// scope is the file, or a function in it, whose tree is being read.
type scope struct {
	*source
	outer   *scope // nil for the file
	context string // an expression with a context; empty if there is none
	// states and values are the names in the current declaration of variables with a state, and of variables with a value that
	// was read from a state.
	states, values map[string]bool
}

// inspect plans the edits after the imports, and adds the findings.
func (s *source) inspect(tree *ast.File) {
	v := &scope{source: s, states: map[string]bool{}, values: map[string]bool{}}
	for _, im := range s.imports {
		v.importOf(im)
	}
	ast.Walk(v, tree)
	slices.SortFunc(s.findings, func(a, b *Finding) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column, strings.Compare(a.Text, b.Text))
	})
}

// Visit inspects a node, and returns the scope of the nodes in it.
func (v *scope) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return v.enter(n.Type, n.Name.Name)
	case *ast.FuncLit:
		return v.enter(n.Type, "")
	case *ast.SelectorExpr:
		v.selector(n)
	case *ast.CompositeLit:
		v.literal(n)
	case *ast.CallExpr:
		v.call(n)
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			v.errorText(n.X)
			v.errorText(n.Y)
		}
	case *ast.ValueSpec:
		var left []ast.Expr
		for _, id := range n.Names {
			left = append(left, id)
		}
		v.assign(left, n.Values)
	case *ast.AssignStmt:
		v.assign(n.Lhs, n.Rhs)
	case *ast.RangeStmt:
		if of, name := method(n.X); name == "All" && v.isState(of) {
			note(v.values, n.Value)
		}
	case *ast.TypeAssertExpr:
		if n.Type != nil && v.isValue(n.X) {
			v.wants(n.Type)
		}
	case *ast.TypeSwitchStmt:
		v.typeSwitch(n)
	}
	return v
}

func (v *scope) report(at token.Pos, breaks bool, text string) {
	line, column := v.position(v.file.Offset(at))
	v.findings = append(v.findings, &Finding{Line: line, Column: column, Breaks: breaks, Text: text})
}

// rule adds the finding for the difference with this key, if there is one, at a position.
func (v *scope) rule(at token.Pos, key string) {
	if r, is := differences()[key]; is {
		v.report(at, r.breaks, r.text)
	}
}

func (v *scope) importOf(im importLine) {
	switch key, known := lookup(im.path); {
	case im.of == other:
	case known:
		v.rule(im.Path.Pos(), key)
	case im.of == fromADK:
		v.report(im.Path.Pos(), true, im.path+" is not in Refrain; this import was not changed")
	}
}

// ident returns the name that an expression consists of; empty for any other expression.
func ident(e ast.Expr) string {
	if id, is := e.(*ast.Ident); is {
		return id.Name
	}
	return ""
}

// qualified returns the path and the name of what an expression takes from a package; both are empty for any other expression.
func (v *scope) qualified(e ast.Expr) (path, name string) {
	if sel, is := e.(*ast.SelectorExpr); is && v.named[ident(sel.X)] != "" {
		return v.named[ident(sel.X)], sel.Sel.Name
	}
	return "", ""
}

// method returns the name of the method that an expression calls, and its receiver.
func method(e ast.Expr) (of ast.Expr, name string) {
	if call, is := e.(*ast.CallExpr); is {
		if sel, is := call.Fun.(*ast.SelectorExpr); is {
			return sel.X, sel.Sel.Name
		}
	}
	return nil, ""
}

// selector inspects the use of a name of a package, or of a field or method.
func (v *scope) selector(n *ast.SelectorExpr) {
	if path, name := v.qualified(n); path != "" {
		v.rule(n.Pos(), path+" "+name)
		return
	}
	for _, im := range v.imports {
		if im.of != other {
			v.rule(n.Sel.Pos(), im.path+" ."+n.Sel.Name)
		}
	}
	if state, name := method(n.X); n.Sel.Name == "Set" && name == "State" {
		if _, name := method(state); name == "Session" {
			v.rule(n.Sel.Pos(), "Session().State().Set")
		}
	}
}

// literal inspects the fields of a composite literal.
func (v *scope) literal(n *ast.CompositeLit) {
	path, name := v.qualified(n.Type)
	key := path + " " + name
	fields := map[string]bool{}
	for _, e := range n.Elts {
		if kv, is := e.(*ast.KeyValueExpr); is && path != "" {
			fields[ident(kv.Key)] = true
			v.rule(kv.Pos(), key+"."+ident(kv.Key))
		}
	}
	if key == "cmd/launcher Config" && !fields["SessionService"] {
		v.rule(n.Pos(), key+"-SessionService")
	}
}

// call inspects a call. A variable ctx among its arguments is in reach from there on.
func (v *scope) call(n *ast.CallExpr) {
	v.inReach(n.Args)
	switch path, name := v.qualified(n.Fun); {
	case path == "session" && name == "NewEvent" && len(n.Args) == 1:
		v.newEvent(n)
	case path == "strings" && (name == "Contains" || strings.HasPrefix(name, "Has")) && len(n.Args) > 0:
		v.errorText(n.Args[0])
	}
}

func (v *scope) inReach(vars []ast.Expr) {
	for _, e := range vars {
		if ident(e) == "ctx" && v.outer != nil {
			v.context = cmp.Or(v.context, "ctx")
		}
	}
}

// newEvent adds a context to a call with one argument, as in ADK v1.
func (v *scope) newEvent(n *ast.CallExpr) {
	context, arg := "", n.Args[0]
	if inv, name := method(arg); name == "InvocationID" {
		context = v.written(inv) // of the invocation whose ID this is
		if strings.Trim(context, "_.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
			context = ""
		}
	}
	for s := v; s != nil && context == ""; s = s.outer {
		context = s.context
	}
	if context == "" {
		v.report(n.Pos(), true, "session.NewEvent takes a context first, and none is in reach")
		return
	}
	v.edits = append(v.edits, edit{at: v.file.Offset(arg.Pos()), text: context + ", "})
}

// enter returns the scope of a function, with the first context and the states among its parameters.
func (v *scope) enter(f *ast.FuncType, name string) *scope {
	in := &scope{source: v.source, outer: v, states: v.states, values: v.values}
	if v.outer == nil {
		in.states, in.values = map[string]bool{}, map[string]bool{}
	}
	for _, p := range f.Params.List {
		of, suffix := p.Type, ""
		if star, is := of.(*ast.StarExpr); is {
			of, suffix = star.X, ".Context()"
		}
		path, typ := v.qualified(of)
		if name == "SetupSubrouters" && path == "github.com/gorilla/mux" {
			v.rule(of.Pos(), name)
		}
		if path == "session" && (typ == "State" || typ == "ReadonlyState") {
			for _, id := range p.Names {
				in.states[id.Name] = true
			}
		}
		switch {
		case in.context != "" || len(p.Names) == 0 || p.Names[0].Name == "_":
		case suffix == "" && (path == "context" || path == "agent" || path == "tool") && strings.HasSuffix(typ, "Context"),
			suffix != "" && (path == "testing" && len(typ) == 1 || path == "net/http" && typ == "Request"):
			in.context = p.Names[0].Name + suffix
		}
	}
	return in
}

// assign records a variable that gets a context, a state, or a value of a state.
func (v *scope) assign(left, right []ast.Expr) {
	v.inReach(left)
	if len(right) != 1 {
		return
	}
	switch of, name := method(right[0]); {
	case name == "State" || name == "ReadonlyState":
		note(v.states, left[0])
	case name == "Get" && v.isState(of) || ofDelta(right[0]):
		note(v.values, left[0])
	}
}

func note(in map[string]bool, e ast.Expr) {
	if name := ident(e); name != "" {
		in[name] = true
	}
}

// isState reports whether an expression is a state.
func (v *scope) isState(e ast.Expr) bool {
	_, name := method(e)
	return name == "State" || name == "ReadonlyState" || v.states[ident(e)]
}

// isValue reports whether an expression is a value of a state.
func (v *scope) isValue(e ast.Expr) bool { return v.values[ident(e)] || ofDelta(e) }

// ofDelta reports whether an expression takes a value from a StateDelta.
func ofDelta(e ast.Expr) bool {
	if at, is := e.(*ast.IndexExpr); is {
		sel, is := at.X.(*ast.SelectorExpr)
		return is && sel.Sel.Name == "StateDelta"
	}
	return false
}

// errorText inspects a text that is compared with another one, which may be the text of an error.
func (v *scope) errorText(e ast.Expr) {
	if _, name := method(e); name == "Error" && len(e.(*ast.CallExpr).Args) == 0 {
		v.rule(e.(*ast.CallExpr).Fun.(*ast.SelectorExpr).Sel.Pos(), "Error()")
	}
}

// typeSwitch inspects the cases for a value of a state.
func (v *scope) typeSwitch(n *ast.TypeSwitchStmt) {
	var of ast.Expr
	switch a := n.Assign.(type) {
	case *ast.ExprStmt:
		of = a.X
	case *ast.AssignStmt:
		of = a.Rhs[0]
	}
	if assert, is := of.(*ast.TypeAssertExpr); !is || !v.isValue(assert.X) {
		return
	}
	var cases []ast.Expr
	for _, c := range n.Body.List {
		cases = append(cases, c.(*ast.CaseClause).List...)
	}
	floats := slices.ContainsFunc(cases, func(e ast.Expr) bool { return v.written(e) == "float64" })
	for _, c := range cases {
		if !floats || !isNumber(v.written(c)) {
			v.wants(c)
		}
	}
}

// wants adds a finding for a type that no value of a state has.
func (v *scope) wants(e ast.Expr) {
	typ := v.written(e)
	is := ""
	switch {
	case typ == "int64" || typ == "uint64":
		is = "float64 unless it is beyond 2^53"
	case slices.Contains([]string{"string", "bool", "float64", "any", "map[string]any", "[]any", "nil",
		"interface{}", "map[string]interface{}", "[]interface{}"}, typ):
		return
	case isNumber(typ):
		is = "float64"
	case typ == "[]byte" || typ == "time.Time":
		is = "string"
	case strings.HasPrefix(typ, "["):
		is = "[]any"
	case strings.HasPrefix(typ, "map[") || strings.HasPrefix(typ, "struct") || strings.HasPrefix(typ, "*"):
		is = "map[string]any"
	default:
		is = "string, bool, float64, map[string]any or []any"
	}
	v.report(e.Pos(), false, "a value of the state is JSON, so it is not "+typ+" but "+is)
}

func isNumber(typ string) bool {
	return strings.Trim(typ, "0123456789") == "int" || strings.Trim(typ, "0123456789") == "uint" || typ == "float32" ||
		typ == "time.Duration"
}
