// SPDX-License-Identifier: Apache-2.0

package session

// Weight estimates how many bytes of memory the event takes.
func (e *Event) Weight() int {
	n := 1 << 10
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
				n += int(StateSize(p.FunctionCall.Args))
			}
			if p.FunctionResponse != nil {
				n += int(StateSize(p.FunctionResponse.Response))
			}
		}
	}
	if e.Mark != nil {
		n += len(e.Mark.Data)
	}
	return n + int(StateSize(e.Actions.StateDelta))
}
