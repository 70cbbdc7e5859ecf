// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

const twice = "the key %s stands twice in the map"

// mapKeys refuses a map of the source that has a literal key twice. CEL keeps the last value without a word.
type mapKeys struct{}

// Name implements cel.ASTValidator.
func (mapKeys) Name() string { return "refrain.mapKeys" }

// Validate implements cel.ASTValidator.
func (v mapKeys) Validate(_ *cel.Env, _ cel.ValidatorConfig, tree *ast.AST, issues *cel.Issues) {
	v.visit(tree.Expr(), issues)
}

func (v mapKeys) visit(e ast.Expr, issues *cel.Issues) {
	if e.Kind() == ast.MapKind {
		seen := map[any]bool{}
		for _, entry := range e.AsMap().Entries() {
			k := entry.AsMapEntry().Key()
			if k.Kind() != ast.LiteralKind {
				continue
			}
			key, known := identity(k.AsLiteral())
			if known && seen[key] {
				issues.ReportErrorAtID(k.ID(), twice, types.Format(k.AsLiteral()))
			}
			seen[key] = true
		}
	}
	for _, c := range children(e) {
		v.visit(c, issues)
	}
}

// computedKeys returns the number of entries of a map literal with a computed key; 0 for any other expression, and for a map in which
// an entry may be missing.
func computedKeys(e ast.Expr) (entries int) {
	if e.Kind() != ast.MapKind {
		return 0
	}
	some := false
	for _, entry := range e.AsMap().Entries() {
		if entry.AsMapEntry().IsOptional() {
			return 0
		}
		some = some || entry.AsMapEntry().Key().Kind() != ast.LiteralKind
	}
	if !some {
		return 0
	}
	return e.AsMap().Size()
}

// uniqueKeys is the node of a map literal whose keys are known only when it is evaluated.
type uniqueKeys struct {
	interpreter.InterpretableV2
	entries int
}

// Exec implements interpreter.InterpretableV2.
func (n *uniqueKeys) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	m := meter{frame: frame, ns: float64(n.entries) * 100}
	v := n.InterpretableV2.Exec(frame)
	m.flush()
	made, ok := v.(traits.Mapper)
	if !ok {
		return v
	}
	if made.Size() != types.Int(n.entries) {
		return types.NewErrWithNodeID(n.ID(), twice, "of one of its entries")
	}
	seen := make(map[any]bool, n.entries)
	for it := made.Iterator(); it.HasNext() == types.True; { // 1 and 1.0 are one key
		k := it.Next()
		if key, known := identity(k); known {
			if seen[key] {
				return types.NewErrWithNodeID(n.ID(), twice, types.Format(k))
			}
			seen[key] = true
		}
	}
	return v
}

// Eval implements interpreter.Interpretable.
func (n *uniqueKeys) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, n.Exec)
}
