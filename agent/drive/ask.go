// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// CanAsk reports whether [Place.Ask] can wait for an answer in this run.
func (p Place) CanAsk() bool {
	inv := p.inv
	return inv != nil && inv.run.Marks && inv.run.RunConfig.Pause != nil
}

// QuestionID returns the ID of the step's n-th question, from 1.
func (p Place) QuestionID(n int) string { return p.QuestionIDOf(strconv.Itoa(n)) }

// QuestionIDOf returns the ID of a question about a subject. A step that starts again asks the question with the same
// ID. word names the subject; it must not be a number.
func (p Place) QuestionIDOf(word string) string { return "q" + p.CallID()[len("call"):] + "-" + word }

// Ask yields a question and returns its answer from the log, the [mark.KindAnswered] with the
// question's ID. If the log has no answer yet, the run ends at its next boundary with an
// [*agent.WaitingError] as the cause, and calls Ask again when it is resumed. After the
// question's deadline Ask returns the question's default.
//
// ev is the event that asks; nil means one with the question's text. The agent must
// continue: see [Traits]. Ask returns an error for the agent to yield: [agent.ErrCannotAsk], or the cause
// of a context that has ended.
func (p Place) Ask(ev *session.Event, q mark.Question, yield func(*session.Event, error) bool) (*mark.Answer, error) {
	inv := p.inv
	if !p.CanAsk() {
		err := fmt.Errorf("%w; it asks: %s", agent.ErrCannotAsk, q.Text)
		if inv == nil || inv.run.Replay == nil || inv.run.Refuse == nil {
			return nil, err
		}
		inv.run.Refuse(err) // a resumed run does not fail because its caller passed no Pause
		<-p.ctx.Done()
		return nil, context.Cause(p.ctx)
	}
	if known := p.Recorded(); known != nil {
		if known.Mark == nil || known.Mark.Kind != mark.KindAsked {
			return nil, &agent.DivergedError{Address: inv.address, Want: describe(known),
				Got: "a question: " + q.Text}
		}
		if err := known.Mark.Decode(&q); err != nil {
			return nil, err
		}
		ev = known
	} else {
		m, err := mark.New(mark.KindAsked, q)
		if err != nil {
			return nil, err
		}
		if ev == nil {
			ev = &session.Event{}
			ev.Content = genai.NewContentFromText(q.Text, genai.RoleModel)
		}
		ev.Mark = m
	}
	if !yield(ev, nil) {
		return nil, context.Cause(p.ctx)
	}
	if a := inv.run.Replay.answer(q.ID); a != nil {
		return a, nil
	}
	if !q.Deadline.IsZero() && !time.Now().Before(q.Deadline) {
		return &mark.Answer{ID: q.ID, Value: q.Default, By: "the default"}, nil
	}
	inv.run.RunConfig.Pause.Ask(&agent.WaitingError{Address: inv.address, Question: q})
	inv.work.Done()
	<-p.ctx.Done()
	return nil, context.Cause(p.ctx)
}

// Answers returns the answers in the log to questions of this step whose IDs are those of QuestionID and
// QuestionIDOf, in the order of the log. It returns none in a new run.
func (p Place) Answers() (all []*mark.Answer) {
	if p.inv == nil || p.inv.run.Replay == nil || len(p.inv.run.Replay.answered) == 0 {
		return nil
	}
	prefix := p.QuestionIDOf("")
	for _, a := range p.inv.run.Replay.answered {
		if strings.HasPrefix(a.ID, prefix) {
			all = append(all, a)
		}
	}
	return all
}

// Began reports whether, in an earlier part of the run, the step had begun and was cut off, or
// had failed.
func (p Place) Began() bool {
	inv := p.inv
	return inv != nil && (inv.logged != nil || inv.run.Replay != nil && inv.run.Replay.log.failedAt[inv.address])
}

// answer returns a person's answer to a question; nil if there is none.
func (r *Replay) answer(id string) *mark.Answer {
	if r == nil {
		return nil
	}
	return r.answers[id]
}

// addAnswer adds the answer of a person in an event about the run as a whole. The first answer to a question counts.
func (r *Replay) addAnswer(ev *session.Event) error {
	if ev.Mark == nil || ev.Mark.Kind != mark.KindAnswered {
		return nil
	}
	a := new(mark.Answer)
	if err := ev.Mark.Decode(a); err != nil {
		return err
	}
	if r.answers == nil {
		r.answers = make(map[string]*mark.Answer)
	}
	if r.answers[a.ID] == nil {
		r.answers[a.ID] = a
		r.answered = append(r.answered, a)
	}
	return nil
}
