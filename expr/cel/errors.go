// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"errors"
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/internal/values/suggest"
)

var undeclared = lazyregexp.New(`^undeclared reference to '([^']*)'.*`)

func compileErrors(issues *cel.Issues, env *cel.Env, vars []expr.Var) expr.Errors {
	var out expr.Errors
	for _, e := range issues.Errors() {
		msg := e.Message
		if syntax, ok := strings.CutPrefix(msg, "Syntax error: "); ok {
			return expr.Errors{syntaxError(issues.Errors(), e, syntax)}
		}
		if m := undeclared().FindStringSubmatch(msg); m != nil {
			unknown := at(e, brief.Printable(fmt.Sprintf("nothing is called %q", m[1])))
			unknown.Unknown, unknown.Suggestion = m[1], suggest.Nearest(m[1], names(env, vars))
			out = append(out, unknown)
			continue
		}
		if msg == "invalid matches argument" {
			msg = "not a regular expression: look for brackets that are not closed; the syntax is that of RE2"
		}
		out = append(out, at(e, brief.Printable(msg)))
	}
	return out
}

// names returns the names that a source can use: variables first, then functions.
func names(env *cel.Env, vars []expr.Var) []string {
	var out []string
	for _, v := range vars {
		out = append(out, v.Name)
	}
	for name := range env.Functions() {
		if name[0] >= 'a' && name[0] <= 'z' {
			out = append(out, name)
		}
	}
	for _, m := range env.Macros() {
		out = append(out, m.Function())
	}
	return out
}

// evalError rewrites CEL's evaluation errors for the author of the expression.
func (p *program) evalError(err error) error {
	msg := err.Error()
	if key, ok := strings.CutPrefix(msg, "no such key: "); ok {
		return &expr.KeyError{Path: p.pathOf(key, nodeOf(err)), Key: key}
	}
	if name, ok := strings.CutPrefix(msg, "no such attribute(s): "); ok {
		return fmt.Errorf("no value for %s", name)
	}
	if strings.HasSuffix(msg, "cost limit exceeded") {
		return fmt.Errorf("the expression exceeds the limit of %d CEL cost units: make it read less, or use a command",
			maxCost)
	}
	if msg == "no such overload" {
		return errors.New("the values do not fit the operation")
	}
	return err
}

func nodeOf(err error) int64 {
	if e, ok := errors.AsType[*types.Err](err); ok {
		return e.NodeID()
	}
	return 0
}
