// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// withQuestions opens a run and finds what it asks.
func withQuestions(ctx context.Context, e *env, store, word string, do func(*stock, *supervisor.Supervisor, string, []mark.Question) error) error {
	s, id, err := openStockOf(ctx, e, store, word)
	if err != nil {
		return err
	}
	defer s.close()
	sup, err := s.supervise(e, nil)
	if err != nil {
		return err
	}
	defer sup.Close(ctx)
	open, err := sup.Questions(ctx, id)
	if err != nil {
		return &exitError{exitFailed, err}
	}
	return do(s, sup, id, open)
}

// chooseQuestion finds the question that somebody means, among those that a
// command is for.
func chooseQuestion(run string, open []mark.Question, id string, fits func(mark.Question) bool, other string) (mark.Question, error) {
	fitting := slices.DeleteFunc(slices.Clone(open), func(q mark.Question) bool { return !fits(q) })
	if id != "" {
		named := func(q mark.Question) bool {
			return q.ID == id || strings.HasPrefix(q.ID, "q"+strings.TrimPrefix(id, "call")+"-")
		}
		if i := slices.IndexFunc(fitting, named); i >= 0 {
			return fitting[i], nil
		}
		if slices.ContainsFunc(open, named) {
			return mark.Question{}, &exitError{exitUsage, fmt.Errorf("%s is another kind of question: see %s", id, other)}
		}
	}
	switch {
	case len(open) == 0:
		return mark.Question{}, &exitError{exitUsage, fmt.Errorf("run %s asks nothing", run)}
	case len(fitting) == 0:
		return mark.Question{}, &exitError{exitUsage, fmt.Errorf("run %s asks another kind of question: see %s", run, other)}
	case id != "":
		return mark.Question{}, &exitError{exitUsage, fmt.Errorf("run %s does not ask %q, or has its answer; refrain answer %s shows what it asks", run, id, run)}
	case len(fitting) > 1:
		var ids []string
		for _, q := range fitting {
			ids = append(ids, q.ID)
		}
		return mark.Question{}, &exitError{exitUsage, fmt.Errorf("run %s asks %d things: choose one of %s; refrain answer %s shows them", run, len(ids), strings.Join(ids, ", "), run)}
	}
	return fitting[0], nil
}

// give gives the answer to the run, and goes on with it if that is wanted.
func (s *stock) give(ctx context.Context, e *env, sup *supervisor.Supervisor, id string, q mark.Question, a mark.Answer, goOn bool) error {
	if err := q.Check(&a); err != nil {
		return &exitError{exitUsage, err}
	}
	open, err := sup.Answer(ctx, id, a)
	if err != nil {
		return &exitError{exitFailed, err}
	}
	switch {
	case len(open) > 0:
		fmt.Fprintf(e.stderr, "run %s has the answer, and asks more:\n", id)
		return printQuestions(e.stderr, id, open)
	case goOn:
		shown, err := chosenProgress(e, progressAuto, false, false)
		if err != nil {
			return err
		}
		return s.resume(ctx, e, resumeFlags{progress: shown, grace: defaultGrace}, id)
	}
	fmt.Fprintf(e.stderr, "run %s has the answer\n%s\n", id, howToResumeIn(ctx, s.service, id))
	return nil
}

// printQuestions shows what a run asks, and how to answer.
func printQuestions(w io.Writer, id string, open []mark.Question) error {
	if len(open) == 0 {
		_, err := fmt.Fprintf(w, "run %s asks nothing\n", id)
		return err
	}
	var b strings.Builder
	for _, q := range open {
		fmt.Fprintf(&b, "%s (%s)", q.ID, q.Kind)
		if !q.Deadline.IsZero() {
			fmt.Fprintf(&b, ", %s", deadlineOf(q))
		}
		fmt.Fprintf(&b, "\n  %s\n", strings.ReplaceAll(q.Text, "\n", "\n  "))
		fmt.Fprintf(&b, "  Answer with: %s\n", howToAnswer(id, q, len(open) > 1))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// deadlineOf says until when a question waits, and what counts then.
func deadlineOf(q mark.Question) string {
	s := "until " + q.Deadline.Local().Format(time.DateTime)
	if len(q.Default) > 0 {
		s += ", then " + string(q.Default)
	}
	return s
}

// howToAnswer is the command that answers a question. One of several has to be
// named.
func howToAnswer(id string, q mark.Question, several bool) string {
	how, named := "refrain answer "+id, " --question "+q.ID
	switch q.Kind {
	case mark.AskText:
		if len(q.Options) > 0 {
			how += " " + strings.Join(q.Options, "|")
		} else {
			how += " TEXT"
		}
	case mark.AskEdit:
		how += " --set KEY=VALUE"
	case mark.AskResolution:
		how, named = "refrain resolve "+id+" --result TEXT|--retry|--skip", " --call "+q.ID
	default:
		how += " yes|no"
	}
	if several {
		how += named
	}
	return how
}

// waitsForPerson is how a run stands that does, in words.
const waitsForPerson = "waits for a person"

// asking says what a run waits for, and how to answer: two lines for each question.
func asking(id string, sum *progress.Summary) []string {
	var lines []string
	for _, q := range sum.Waits {
		who := cmp.Or(string(sum.AskedBy(q.ID)), "it")
		lines = append(lines, progress.Clean(who+" asks: "+questionText(q)), "Answer with: "+progress.Clean(howToAnswer(id, q, len(sum.Waits) > 1)))
	}
	if len(lines) == 0 { // the log was cut, or nothing is open any more
		lines = append(lines, "Answer with: refrain answer "+id)
	}
	return lines
}

// questionText is a question on a line, with what can be answered.
func questionText(q mark.Question) string {
	text := cmp.Or(q.Text, string(q.Kind))
	if len(q.Options) > 0 && q.Kind != mark.AskResolution {
		text += " (" + strings.Join(q.Options, ", ") + ")"
	}
	if !q.Deadline.IsZero() {
		text += ", " + deadlineOf(q)
	}
	return text + " [" + q.ID + "]"
}
