// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// Most conditions compare a number in a map with another, and are evaluated
// after every step. Those are evaluated directly, at a tenth of CEL's cost and
// without an allocation: names, keys, literals, comparisons, and, or, not, has,
// and simple arithmetic, over plain values. Wherever anything else turns up, a
// missing key, a rare type, a number that a float64 does not hold exactly, the
// answer is left to CEL, from the start. So CEL decides what an expression
// means and words every error; a fuzz test holds the two together.

// scalar is a value that is evaluated directly.
type scalar struct {
	kind kind
	int  bool    // of a number
	num  float64 // of a number; 1 for true
	text string
}

type kind uint8

const (
	other kind = iota // whatever is left to CEL
	null
	aBool
	aNumber
	aText
)

// exact is the largest int of which a float64 is sure: the next ones may be
// rounded to it.
const exact = 1<<53 - 1

func boolean(b bool) scalar {
	if b {
		return scalar{kind: aBool, num: 1}
	}
	return scalar{kind: aBool}
}

// whole is an int.
func whole(i int64) (scalar, bool) {
	return scalar{kind: aNumber, int: true, num: float64(i)}, i >= -exact && i <= exact
}

// scalarOf reads a plain Go value; ok is false if CEL must.
func scalarOf(v any) (s scalar, ok bool) {
	switch x := v.(type) {
	case nil:
		return scalar{kind: null}, true
	case bool:
		return boolean(x), true
	case float64:
		return scalar{kind: aNumber, num: x}, x == x
	case int:
		return whole(int64(x))
	case int64:
		return whole(x)
	case string:
		return scalar{kind: aText, text: x}, true
	}
	return scalar{}, false
}

func (s scalar) plain() any {
	switch {
	case s.kind == aBool:
		return s.num != 0
	case s.kind == aText:
		return s.text
	case s.kind == aNumber && s.int:
		return int64(s.num)
	case s.kind == aNumber:
		return s.num
	}
	return nil
}

// action is what a node does.
type action uint8

const (
	asks     action = iota // CEL
	says                   // a literal
	reads                  // a path
	has                    // whether a map has a key
	negates                // !
	joins                  // && and ||
	compares               // > >= < <= == !=
	adds                   // + - * /
)

// node is an expression that is evaluated directly; a nil one is not.
type node struct {
	op   action
	name string // of the operator
	lit  scalar
	path string // state.result.score, as the source has it, the variable included
	root string
	typ  Type // of the variable, if there are no keys
	keys []string
	args [2]*node
}

// direct takes apart what can be evaluated directly.
func (p *Program) directly(e ast.Expr) *node {
	if lit, ok := literal(e); ok {
		return &node{op: says, lit: lit}
	}
	if e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() {
		n := p.route(e)
		if n != nil {
			n.op = has
		}
		return n
	}
	if n := p.route(e); n != nil {
		return n
	}
	if e.Kind() != ast.CallKind {
		return nil
	}
	call := e.AsCall()
	n := &node{name: call.FunctionName()}
	switch n.name {
	case operators.LogicalNot:
		n.op = negates
	case operators.LogicalAnd, operators.LogicalOr:
		n.op = joins
	case operators.Add, operators.Subtract, operators.Multiply, operators.Divide:
		n.op = adds
	default:
		sign, ok := comparisons[n.name]
		if !ok {
			return nil
		}
		n.op, n.name = compares, sign
	}
	some := false
	for i, a := range call.Args() {
		if i >= len(n.args) {
			return nil
		}
		n.args[i] = p.directly(a)
		some = some || n.args[i] != nil
	}
	if !some || n.op != joins && (n.args[0] == nil || n.op != negates && n.args[1] == nil) {
		return nil
	}
	return n
}

func literal(e ast.Expr) (scalar, bool) {
	if e.Kind() != ast.LiteralKind {
		return scalar{}, false
	}
	switch x := e.AsLiteral().(type) {
	case types.Null:
		return scalar{kind: null}, true
	case types.Bool:
		return boolean(bool(x)), true
	case types.Int:
		return whole(int64(x))
	case types.Double:
		return scalarOf(float64(x))
	case types.String:
		return scalar{kind: aText, text: string(x)}, true
	}
	return scalar{}, false
}

// route is a variable, or keys below one: state.result["score"].
func (p *Program) route(e ast.Expr) *node {
	if e.Kind() == ast.IdentKind {
		for _, v := range p.vars {
			if v.Name == e.AsIdent() {
				return &node{op: reads, path: v.Name, root: v.Name, typ: v.Type}
			}
		}
		return nil
	}
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() != operators.Index {
		return nil
	}
	operand, key, ok := keyed(e)
	if !ok || operand.Kind() == ast.SelectKind && operand.AsSelect().IsTestOnly() {
		return nil
	}
	n := p.route(operand)
	if n == nil {
		return nil
	}
	n.typ = Dyn
	n.path += "." + key
	n.keys = append(n.keys, key)
	return n
}

// eval evaluates directly; ok is false if CEL must.
func (n *node) eval(s Scope) (v scalar, ok bool) {
	if n == nil {
		return scalar{}, false
	}
	switch n.op {
	case says:
		return n.lit, true
	case reads:
		return n.read(s)
	case has:
		return n.has(s)
	case negates:
		v, ok = n.args[0].eval(s)
		return boolean(v.num == 0), ok && v.kind == aBool
	case joins:
		v, ok = n.args[0].eval(s)
		if !ok || v.kind != aBool {
			return scalar{}, false
		}
		if (v.num != 0) == (n.name == operators.LogicalOr) {
			return v, true
		}
		v, ok = n.args[1].eval(s)
		return v, ok && v.kind == aBool
	case compares, adds:
		l, okL := n.args[0].eval(s)
		r, okR := n.args[1].eval(s)
		if !okL || !okR {
			return scalar{}, false
		}
		if n.op == adds {
			return add(n.name, l, r)
		}
		holds, ok := compare(n.name, l, r)
		return boolean(holds), ok
	}
	return scalar{}, false
}

func (n *node) read(s Scope) (scalar, bool) {
	if f, whole, ok := s.Number(n.path); ok {
		whole = whole && n.typ != Double
		return scalar{kind: aNumber, int: whole, num: f}, f == f && (!whole || f >= -exact && f <= exact) &&
			(whole || n.typ != Int)
	}
	x, ok := n.look(s)
	if !ok {
		return scalar{}, false
	}
	v, ok := scalarOf(x)
	if v.kind == aNumber { // as Var.bind does
		switch n.typ {
		case Double:
			v.int = false
		case Int:
			ok = ok && v.num >= -exact && v.num <= exact && v.num == float64(int64(v.num))
			v.int = true
		}
	}
	return v, ok
}

// look finds the value of a path.
func (n *node) look(s Scope) (any, bool) {
	if k, ok := s.(Keyed); ok && len(n.keys) > 0 {
		if x, ok := k.Key(n.root, n.keys[0]); ok {
			return descend(x, n.keys[1:])
		}
	}
	x, ok := s.Value(n.root)
	if !ok {
		return nil, false
	}
	return descend(x, n.keys)
}

func (n *node) has(s Scope) (scalar, bool) {
	x, ok := s.Value(n.root)
	if !ok {
		return scalar{}, false
	}
	last := len(n.keys) - 1
	if x, ok = descend(x, n.keys[:last]); !ok {
		return scalar{}, false
	}
	m, ok := x.(map[string]any)
	if !ok {
		return scalar{}, false
	}
	_, there := m[n.keys[last]]
	return boolean(there), true
}

// descend follows keys through plain maps.
func descend(x any, keys []string) (any, bool) {
	for _, k := range keys {
		m, ok := x.(map[string]any)
		if !ok {
			return nil, false
		}
		if x, ok = m[k]; !ok {
			return nil, false
		}
	}
	return x, true
}

// compare compares as CEL does: any two values can be equal or not, and only
// two numbers or two texts have an order.
func compare(op string, l, r scalar) (holds, ok bool) {
	if l.kind == other || r.kind == other {
		return false, false
	}
	switch op {
	case "==", "!=":
		same := l.kind == r.kind && l.num == r.num && l.text == r.text
		return same == (op == "=="), true
	}
	if l.kind != r.kind {
		return false, false
	}
	var sign int
	switch {
	case l.kind == aNumber && l.num < r.num, l.kind == aText && l.text < r.text:
		sign = -1
	case l.kind == aNumber && l.num > r.num, l.kind == aText && l.text > r.text:
		sign = 1
	case l.kind != aNumber && l.kind != aText:
		return false, false
	}
	switch op {
	case ">":
		return sign > 0, true
	case ">=":
		return sign >= 0, true
	case "<":
		return sign < 0, true
	}
	return sign <= 0, true
}

// add does what is the same for ints and doubles, and in float64.
func add(op string, l, r scalar) (v scalar, ok bool) {
	if l.kind != aNumber || r.kind != aNumber {
		return v, false
	}
	v = scalar{kind: aNumber, int: l.int && r.int}
	switch op {
	case operators.Add:
		v.num = l.num + r.num
	case operators.Subtract:
		v.num = l.num - r.num
	case operators.Multiply:
		v.num = l.num * r.num
	default:
		if v.int || r.num == 0 {
			return v, false
		}
		v.num = l.num / r.num
	}
	return v, v.num == v.num && (!l.int && !r.int || v.num >= -exact && v.num <= exact)
}
