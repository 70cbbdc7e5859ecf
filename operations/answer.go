// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/operations/problem"
	"github.com/refrain-dev/refrain/session/mark"
)

// AnswerRequest answers a question of a run.
type AnswerRequest struct {
	// Question is the ID of the question; it may be empty if only one question is open.
	Question string          `json:"question"`
	Value    json.RawMessage `json:"value"`
	Reason   string          `json:"reason"`
	By       string          `json:"by"`
	// Wait keeps Answer from continuing a run that no process drives.
	Wait bool `json:"wait"`

	// Key is the key of the A2A message.
	Key string `json:"-"`
}

// Answer answers a question of the run. A run that no process drives continues when it has all
// answers that it waits for.
func (r *Runs) Answer(ctx context.Context, id string, req *AnswerRequest) error {
	open, err := r.Supervisor.Questions(ctx, id)
	if err != nil {
		return err
	}
	if req.Question == "" && len(open) == 1 {
		req.Question = open[0].ID
	}
	a := mark.Answer{ID: req.Question, Value: req.Value, Reason: req.Reason, By: req.By, Key: req.Key}
	for _, q := range open {
		if q.ID != a.ID {
			continue
		}
		if err := q.Check(&a); err != nil {
			return problem.New(http.StatusUnprocessableEntity, "bad_answer", "The answer does not fit", "%v", err)
		}
	}
	left, err := r.Supervisor.Answer(ctx, id, a)
	if err != nil || len(left) > 0 || req.Wait {
		return err
	}
	return r.Wake(ctx, id)
}

// Words for yes and no.
var (
	yes = []string{"yes", "y", "true", "ok", "approve", "approved"}
	no  = []string{"no", "n", "false", "reject", "rejected"}
)

// Said converts a text into the value of an answer to a question. It returns a text that does not fit
// the kind of question unchanged, so that [mark.Question.Check] refuses it.
func Said(q *mark.Question, text string) json.RawMessage {
	short := strings.TrimSpace(text)
	word := strings.ToLower(strings.TrimRight(short, ".!"))
	var value any = text
	switch q.Kind {
	case mark.AskText:
		for _, option := range q.Options {
			if strings.EqualFold(option, short) {
				value = option
			}
		}
		if slices.Contains(q.Options, short) {
			value = short // another one may differ by its capitals only
		}
	case mark.AskApproval, mark.AskConfirmation:
		isYes := slices.Contains(yes, word)
		switch {
		case !isYes && !slices.Contains(no, word):
		case q.Kind == mark.AskApproval:
			value = isYes
		default:
			value = map[string]any{"confirmed": isYes}
		}
	case mark.AskResolution:
		if word != mark.ResolveResult && slices.Contains(q.Options, word) {
			value = mark.Resolution{Action: word}
		}
	}
	if value == any(text) && q.Kind != mark.AskText && json.Valid([]byte(short)) {
		return json.RawMessage(short)
	}
	data, _ := json.Marshal(value) // all of these have JSON
	return data
}
