// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/refrain-dev/refrain/operations/problem"
	"github.com/refrain-dev/refrain/session/mark"
)

// AnswerRequest answers a question of a run.
type AnswerRequest struct {
	// Question is its ID; it may be left out if there is only one.
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
