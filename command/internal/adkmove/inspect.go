// SPDX-License-Identifier: Apache-2.0

package adkmove

import (
	"cmp"
	"go/token"
	"slices"
	"strings"
)

// inspector reads the tokens of a file once.
type inspector struct {
	*source
	funcs []function // functions around the current token, the innermost last
	// states and values are the names in the current declaration of variables with a state, and of variables with a value that
	// was read from a state.
	states, values map[string]bool
}

// function is a function whose body is being read.
type function struct {
	end     int    // index of its closing bracket
	context string // an expression with a context; empty if there is none in scope
}

// inspect plans the edits after the imports, and adds the findings.
func (s *source) inspect() {
	v := &inspector{source: s}
	for _, im := range s.imports {
		v.importOf(im)
	}
	for i := range s.tokens {
		for len(v.funcs) > 0 && v.funcs[len(v.funcs)-1].end <= i {
			v.funcs = v.funcs[:len(v.funcs)-1]
		}
		switch s.kind(i) {
		case token.FUNC:
			v.enter(i)
		case token.IDENT:
			v.local(i)
			if path, name := v.selector(i); name != "" {
				v.use(i, path, name)
			}
		case token.PERIOD:
			if name := s.ident(i + 1); name != "" {
				v.method(i, name)
			} else if s.kind(i+1) == token.LPAREN {
				v.assertion(i)
			}
		}
	}
	slices.SortFunc(s.findings, func(a, b *Finding) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column, strings.Compare(a.Text, b.Text))
	})
}

func (v *inspector) report(i int, breaks bool, text string) {
	line, column := v.position(v.tokens[i].at)
	v.findings = append(v.findings, &Finding{Line: line, Column: column, Breaks: breaks, Text: text})
}

// rule adds the finding for the difference with this key, if there is one, at a token.
func (v *inspector) rule(i int, key string) {
	if r, is := differences()[key]; is {
		v.report(i, r.breaks, r.text)
	}
}

func (v *inspector) importOf(im imported) {
	switch key, known := lookup(im.path); {
	case im.of == other:
	case known:
		v.rule(im.token, key)
	case im.of == fromADK:
		v.report(im.token, true, im.path+" is not in Refrain; this import was not changed")
	}
}

// selector returns the package path and the name of a selector at a token.
func (v *inspector) selector(i int) (path, name string) {
	if v.kind(i-1) == token.PERIOD || v.kind(i+1) != token.PERIOD {
		return "", ""
	}
	return v.named[v.ident(i)], v.ident(i + 2)
}

// use inspects the use of a name of a package.
func (v *inspector) use(i int, path, name string) {
	if path == "" {
		return
	}
	v.rule(i, path+" "+name)
	switch next := i + 3; v.kind(next) {
	case token.LBRACE:
		body := len(v.funcs) > 0 && v.funcs[len(v.funcs)-1].end == v.pairs[next] // of a function with this result
		if !body && v.kind(i-1) != token.RBRACK {
			v.literal(i, path+" "+name, next)
		}
	case token.LPAREN:
		if path == "session" && name == "NewEvent" {
			v.newEvent(i, next)
		}
	}
}

// literal inspects the fields of a composite literal.
func (v *inspector) literal(i int, key string, open int) {
	fields := map[string]bool{}
	for _, part := range v.list(open) {
		if v.is(part[0], token.IDENT, token.COLON) {
			field := v.ident(part[0])
			fields[field] = true
			v.rule(part[0], key+"."+field)
		}
	}
	if key == "cmd/launcher Config" && !fields["SessionService"] {
		v.rule(i, key+"-SessionService")
	}
}

// newEvent adds a context to a call with one argument, as in ADK v1.
func (v *inspector) newEvent(i, open int) {
	args := v.list(open)
	if len(args) != 1 {
		return
	}
	from, to := args[0][0], args[0][1]
	context := ""
	if to-from > 4 && v.ident(to-3) == "InvocationID" && v.is(to-4, token.PERIOD, token.IDENT, token.LPAREN, token.RPAREN) {
		context = v.written(from, to-4) // of the invocation whose ID this is
		if strings.Trim(context, "_.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
			context = ""
		}
	}
	for n := len(v.funcs) - 1; n >= 0 && context == ""; n-- {
		context = v.funcs[n].context
	}
	if context == "" {
		v.report(i, true, "session.NewEvent takes a context first, and none is in reach")
		return
	}
	v.edits = append(v.edits, edit{at: v.tokens[from].at, text: context + ", "})
}

// enter begins a function, if the function has a body.
func (v *inspector) enter(i int) {
	if len(v.funcs) == 0 {
		v.states, v.values = map[string]bool{}, map[string]bool{}
	}
	open := i + 1
	if v.kind(open) == token.LPAREN && v.kind(v.pairs[open]+1) == token.IDENT {
		open = v.pairs[open] + 1 // after the receiver
	}
	if v.kind(open) == token.IDENT {
		if open++; v.kind(open) == token.LBRACK {
			open = v.pairs[open] + 1
		}
	}
	if v.kind(open) != token.LPAREN {
		return
	}
	f := function{context: v.parameters(open)}
	if v.ident(open-1) == "SetupSubrouters" {
		for _, part := range v.list(open) {
			if path, _ := v.selector(part[1] - 3); path == "github.com/gorilla/mux" {
				v.rule(part[1]-3, "SetupSubrouters")
			}
		}
	}
	for k := v.pairs[open] + 1; ; k++ {
		switch v.kind(k) {
		case token.LBRACE:
			if last := v.kind(k - 1); last == token.STRUCT || last == token.INTERFACE {
				k = v.pairs[k]
				continue
			}
			f.end = v.pairs[k]
			v.funcs = append(v.funcs, f)
			return
		case token.LPAREN, token.LBRACK:
			k = v.pairs[k]
		case token.IDENT, token.PERIOD, token.MUL, token.MAP, token.CHAN, token.ARROW, token.FUNC, token.STRUCT, token.INTERFACE:
		default:
			return // a type
		}
	}
}

// parameters returns the first context among the parameters, and records the states.
func (v *inspector) parameters(open int) (context string) {
	var names []string
	for _, part := range v.list(open) {
		name, at := v.ident(part[0]), part[0]+1
		if names = append(names, name); at == part[1] {
			continue // the name has the type of the next parameter, or is a type itself
		}
		suffix := ""
		if v.kind(at) == token.MUL {
			at++
			suffix = ".Context()"
		}
		switch path, typ := v.selector(at); {
		case path == "session" && (typ == "State" || typ == "ReadonlyState"):
			for _, n := range names {
				v.states[n] = true
			}
		case context != "" || names[0] == "_" || names[0] == "":
		case suffix == "" && (path == "context" || path == "agent" || path == "tool") && strings.HasSuffix(typ, "Context"),
			suffix != "" && (path == "testing" && len(typ) == 1 || path == "net/http" && typ == "Request"):
			context = names[0] + suffix
		}
		names = nil
	}
	return context
}

// local records a variable that gets a context, a state, or a value of a state.
func (v *inspector) local(i int) {
	defines := v.kind(i+1) == token.DEFINE || v.kind(i+1) == token.COMMA
	if v.ident(i) == "ctx" && v.kind(i-1) != token.PERIOD && defines && len(v.funcs) > 0 {
		if f := &v.funcs[len(v.funcs)-1]; f.context == "" {
			f.context = "ctx"
		}
	}
	if len(v.funcs) == 0 || v.kind(i-1) != token.PERIOD {
		return
	}
	switch name := v.ident(i); {
	case (name == "State" || name == "ReadonlyState") && v.is(i+1, token.LPAREN, token.RPAREN, token.SEMICOLON):
		if left := v.assigned(i); left != nil {
			v.states[left[0]] = true
		}
	case (name == "Get" || name == "All") && v.kind(i+1) == token.LPAREN && v.isState(i-2):
		if left := v.assigned(i); left != nil && name == "Get" {
			v.values[left[0]] = true
		} else if len(left) == 2 {
			v.values[left[1]] = true
		}
	case name == "StateDelta" && v.kind(i+1) == token.LBRACK && v.kind(v.pairs[i+1]+1) != token.PERIOD:
		if left := v.assigned(i); left != nil {
			v.values[left[0]] = true
		}
	}
}

// isState reports whether the expression that ends at a token is a state.
func (v *inspector) isState(i int) bool {
	if v.kind(i) == token.RPAREN {
		name := v.ident(v.pairs[i] - 1)
		return name == "State" || name == "ReadonlyState"
	}
	return v.kind(i-1) != token.PERIOD && v.states[v.ident(i)]
}

// assigned returns the names on the left side of the assignment that has the token on its right side.
func (v *inspector) assigned(i int) []string {
	for ; ; i-- {
		switch v.kind(i) {
		case token.RPAREN, token.RBRACK:
			i = v.pairs[i]
		case token.DEFINE, token.ASSIGN:
			right := v.ident(i - 1)
			if right != "" && v.is(i-3, token.IDENT, token.COMMA) {
				return []string{v.ident(i - 3), right}
			}
			if right != "" {
				return []string{right}
			}
			return nil
		case token.IDENT, token.PERIOD, token.RANGE:
		default:
			return nil
		}
	}
}

// method inspects a name after a period.
func (v *inspector) method(i int, name string) {
	if v.named[v.ident(i-1)] == "" || v.kind(i-2) == token.PERIOD {
		for _, im := range v.imports {
			if im.of != other {
				v.rule(i+1, im.path+" ."+name)
			}
		}
	}
	switch {
	case name == "Set" && v.ident(i-7) == "Session" && v.ident(i-3) == "State" &&
		v.is(i-6, token.LPAREN, token.RPAREN, token.PERIOD, token.IDENT, token.LPAREN, token.RPAREN):
		v.rule(i+1, "Session().State().Set")
	case name == "Error" && v.is(i+2, token.LPAREN, token.RPAREN):
		v.errorText(i)
	}
}

// errorText inspects the use of an error's text.
func (v *inspector) errorText(i int) {
	begin := i - 1
	for v.kind(begin-1) == token.PERIOD {
		begin -= 2
	}
	after, before := v.kind(i+4), v.kind(begin-1)
	compared := after == token.EQL || after == token.NEQ || before == token.EQL || before == token.NEQ
	if v.named[v.ident(begin-4)] == "strings" && before == token.LPAREN && v.kind(begin-3) == token.PERIOD {
		name := v.ident(begin - 2)
		compared = name == "Contains" || strings.HasPrefix(name, "Has")
	}
	if compared {
		v.rule(i+1, "Error()")
	}
}

// assertion inspects a type assertion on a value of a state.
func (v *inspector) assertion(i int) {
	value := v.kind(i-2) != token.PERIOD && v.values[v.ident(i-1)] ||
		v.kind(i-1) == token.RBRACK && v.ident(v.pairs[i-1]-1) == "StateDelta"
	open := i + 1
	if !value {
		return
	}
	if v.kind(open+1) != token.TYPE {
		v.wants(open+1, v.pairs[open])
		return
	}
	body := v.pairs[open] + 1
	if v.kind(body) != token.LBRACE {
		return
	}
	var cases [][2]int
	floats := false
	for k := body + 1; k < v.pairs[body]; k++ {
		switch v.kind(k) {
		case token.LPAREN, token.LBRACK, token.LBRACE:
			k = v.pairs[k]
		case token.CASE:
			for from := k + 1; v.kind(k) != token.COLON && k < v.pairs[body]; from = k + 1 {
				for k = from; v.kind(k) != token.COMMA && v.kind(k) != token.COLON && k < v.pairs[body]; k++ {
					if p := v.pairs[k]; p > k {
						k = p
					}
				}
				cases = append(cases, [2]int{from, k})
				floats = floats || v.written(from, k) == "float64"
			}
		}
	}
	for _, c := range cases {
		if !floats || !isNumber(v.written(c[0], c[1])) {
			v.wants(c[0], c[1])
		}
	}
}

// wants adds a finding for a type that no value of a state has.
func (v *inspector) wants(from, to int) {
	typ := v.written(from, to)
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
	case strings.HasPrefix(typ, "map[") || strings.HasPrefix(typ, "struct") || v.kind(from) == token.MUL:
		is = "map[string]any"
	default:
		is = "string, bool, float64, map[string]any or []any"
	}
	v.report(from, false, "a value of the state is JSON, so it is not "+typ+" but "+is)
}

func isNumber(typ string) bool {
	return strings.Trim(typ, "0123456789") == "int" || strings.Trim(typ, "0123456789") == "uint" || typ == "float32" ||
		typ == "time.Duration"
}
