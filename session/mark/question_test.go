// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/refrain-dev/refrain/session/mark"
)

// An answer to one question of a resolution is none to the other.
func TestAnswersOfResolutions(t *testing.T) {
	doubt, edited := mark.InDoubt("?"), mark.Edited("?")
	for word, of := range map[string]*mark.Question{
		"result": &doubt, "retry": &doubt, "skip": &doubt, "keep": &edited, "discard": &edited, "base": &edited, "all": nil, "": nil,
	} {
		value, _ := json.Marshal(mark.Resolution{Action: word})
		a := &mark.Answer{Value: value}
		for _, q := range []*mark.Question{&doubt, &edited} {
			if err := q.Check(a); (err == nil) != (q == of) {
				t.Errorf("%s to %v: %v", word, q.Options, err)
			}
			if q == of && !slices.Contains(q.Options, word) {
				t.Errorf("%v lacks %s", q.Options, word)
			}
		}
		if _, err := a.Resolution(); (err == nil) != (of == &doubt) {
			t.Errorf("Resolution of %q: %v", word, err)
		}
		if _, err := a.EditResolution(); (err == nil) != (of == &edited) {
			t.Errorf("EditResolution of %q: %v", word, err)
		}
	}
	for _, kind := range []mark.QuestionKind{mark.AskApproval, mark.AskText, mark.AskConfirmation, mark.AskEdit, mark.AskResolution} {
		q := mark.Question{ID: "q", Kind: kind}
		if q.Check(&mark.Answer{ID: "q", Value: json.RawMessage("null")}) == nil {
			t.Errorf("null is an answer to a question of the kind %s", kind)
		}
	}
	for _, bad := range []string{`"keep"`, `null`, `[]`, `{"action": 1}`} {
		if edited.Check(&mark.Answer{Value: json.RawMessage(bad)}) == nil {
			t.Errorf("%s is an answer", bad)
		}
	}
}
