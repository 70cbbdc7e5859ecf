// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Condition is an expression, or a combination of conditions. Exactly one of Expr, Any,
// All and Not is set. Its JSON is a plain string if only Expr is set.
//
// An expression sees:
//
//	state      the run's state (map)
//	score      the iteration's score, null if it has none
//	scores     recent scores, oldest first, at most 64
//	iteration  the number of the iteration, from 1
//	usage      calls, input_tokens, output_tokens, tokens; cost, only if it is known
//	elapsed    seconds spent in steps
//	findings   kinds of the findings of the iteration that has ended; see Finding
//
// After a step, score is the score of the last iteration that ended.
//
// A condition that cannot be evaluated, such as one over a missing key, is false, and so
// is its Not. The stop record says why.
type Condition struct {
	// Expr is a CEL expression that gives true or false.
	Expr string `json:"expr,omitzero"`
	// Any holds if at least one of these conditions holds.
	Any []Condition `json:"any,omitzero"`
	// All holds if all of these conditions hold.
	All []Condition `json:"all,omitzero"`
	// Not holds if this condition does not hold.
	Not *Condition `json:"not,omitzero"`
	// For is the number of iterations in a row in which the condition must hold. 0 means 1.
	For uint `json:"for,omitzero"`
}

// MarshalJSON writes a condition that is only an expression as a string. It does not escape >
// and <; the encoder around it may.
func (c Condition) MarshalJSON() ([]byte, error) {
	type object Condition
	var v any = object(c)
	if c.Expr != "" && c.Any == nil && c.All == nil && c.Not == nil && c.For == 0 {
		v = c.Expr
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// UnmarshalJSON reads a string or an object. It returns an error for an unknown field.
func (c *Condition) UnmarshalJSON(b []byte) error {
	*c = Condition{}
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &c.Expr)
	}
	type object Condition
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode((*object)(c)); err != nil {
		return fmt.Errorf("read a condition: %w", err)
	}
	return nil
}

// String writes the condition for people: a and (b or not c).
func (c Condition) String() string {
	var s string
	switch {
	case c.Expr != "":
		s = c.Expr
	case c.Any != nil:
		s = join(c.Any, " or ")
	case c.All != nil:
		s = join(c.All, " and ")
	case c.Not != nil:
		s = "not (" + c.Not.String() + ")"
	}
	if c.For > 1 {
		s = fmt.Sprintf("%s for %d iterations", s, c.For)
	}
	return s
}

func join(cs []Condition, word string) string {
	parts := make([]string, len(cs))
	for i, c := range cs {
		parts[i] = c.String()
		if (len(c.Any) > 1 || len(c.All) > 1) && len(cs) > 1 {
			parts[i] = "(" + parts[i] + ")"
		}
	}
	return strings.Join(parts, word)
}
