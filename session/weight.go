// SPDX-License-Identifier: Apache-2.0

package session

// Weight estimates how many bytes of memory the event takes.
func (e *Event) Weight() int {
	n := 1 << 10 // the structs of the event
	if e.Content != nil {
		for _, p := range e.Content.Parts {
			if p == nil {
				continue
			}
			n += len(p.Text) + len(p.ThoughtSignature)
			if p.InlineData != nil {
				n += len(p.InlineData.Data)
			}
			if p.FunctionCall != nil {
				n += weightOfValue(p.FunctionCall.Args)
			}
			if p.FunctionResponse != nil {
				n += weightOfValue(p.FunctionResponse.Response)
			}
		}
	}
	if e.Mark != nil {
		n += len(e.Mark.Data)
	}
	return n + weightOfValue(e.Actions.StateDelta)
}

// leastWeight is how many bytes of memory a value takes in addition to its contents.
const leastWeight = 16

// weightOfValue estimates how many bytes of memory a value of the state takes.
func weightOfValue(v any) int {
	n := leastWeight
	switch v := v.(type) {
	case string:
		n += len(v)
	case map[string]any:
		for key, val := range v {
			n += len(key) + weightOfValue(val)
		}
	case []any:
		for _, val := range v {
			n += weightOfValue(val)
		}
	}
	return n
}
