// SPDX-License-Identifier: Apache-2.0

package running

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// keyboard reads answers from a person at the console, or from a program that writes lines.
type keyboard struct {
	e     *term.Env
	lines chan line
	in    *bufio.Reader
	wants bool // a line is being read
}

type line struct {
	text string
	err  error
}

// errNoMore is the error of a question when the input has ended, and errLate when the question's deadline has passed.
var (
	errNoMore = errors.New("the input has ended")
	errLate   = errors.New("the deadline has passed")
)

func newKeyboard(e *term.Env) *keyboard {
	return &keyboard{e: e, lines: make(chan line, 1), in: bufio.NewReader(e.Stdin)}
}

// ask reads a line, without the spaces around it. At the end of the input the error is errNoMore; after Ctrl-C the error is a
// [term.Exit].
func (k *keyboard) ask(ctx context.Context, prompt string) (string, error) {
	fmt.Fprint(k.e.Stderr, prompt)
	ctx, release := leaves(ctx)
	defer release()
	if !k.wants { // a read cannot be canceled, so the read that Ctrl-C has abandoned may still be running
		k.wants = true
		go func() {
			text, err := k.in.ReadString('\n')
			if errors.Is(err, io.EOF) && text != "" {
				err = nil
			}
			k.lines <- line{text, err}
		}()
	}
	select {
	case <-ctx.Done():
		fmt.Fprintln(k.e.Stderr)
		if errors.Is(context.Cause(ctx), errLate) {
			return "", errLate
		}
		return "", &term.Exit{Code: term.ExitInterrupted}
	case l := <-k.lines:
		k.wants = false
		switch {
		case errors.Is(l.err, io.EOF):
			fmt.Fprintln(k.e.Stderr)
			return "", errNoMore
		case l.err != nil:
			return "", term.Failure(fmt.Errorf("read a line: %w", l.err))
		}
		return strings.TrimSpace(l.text), nil
	}
}

// answerAll asks the open questions of a run. It reports whether there were any. The error is that of ask if the person gives no
// answer.
func (k *keyboard) answerAll(ctx context.Context, s *runstore.Stock, id string) (asked bool, err error) {
	sup, err := s.Supervise(k.e, nil)
	if err != nil {
		return false, err
	}
	defer sup.Close(ctx)
	open, err := sup.Questions(ctx, id)
	for err == nil && len(open) > 0 {
		asked = true
		var a mark.Answer
		if a, err = k.answer(ctx, &open[0]); errors.Is(err, errLate) {
			fmt.Fprintln(k.e.Stderr, "(the deadline has passed; the run continues with the default)")
			return true, nil
		} else if err != nil {
			return true, err
		}
		open, err = sup.Answer(ctx, id, a)
		if errors.Is(err, supervisor.ErrNoQuestion) {
			fmt.Fprintln(k.e.Stderr, "(somebody else has answered)")
			open, err = sup.Questions(ctx, id)
		}
	}
	return asked, term.Failure(err)
}

// answer asks a question until the answer is valid.
func (k *keyboard) answer(ctx context.Context, q *mark.Question) (mark.Answer, error) {
	if !q.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, q.Deadline, errLate)
		defer cancel()
	}
	k.show(q)
	for {
		a := mark.Answer{ID: q.ID}
		text, err := k.ask(ctx, k.hintOf(q))
		if q.Kind == mark.AskApproval || q.Kind == mark.AskConfirmation {
			text, a.Reason, _ = strings.Cut(text, " ")
			text = strings.TrimRight(text, ",:;.")
		}
		if err == nil {
			a.Value, err = k.value(ctx, q, text)
		}
		if errors.Is(err, errNoMore) || errors.Is(err, errLate) {
			return a, err
		}
		if _, ends := errors.AsType[*term.Exit](err); ends {
			return a, err
		}
		if err == nil {
			err = q.Check(&a)
		}
		if err == nil {
			return a, nil
		}
		fmt.Fprintf(k.e.Stderr, "(%s)\n", brief.Clean(err.Error()))
	}
}

// leave says how to answer the questions that a person has left open.
func (k *keyboard) leave(s *runstore.Stock, id string) {
	if !s.Durable {
		fmt.Fprintln(k.e.Stderr, "The run ends here, because it is kept in memory.")
		return
	}
	ctx := context.Background()
	sup, err := s.Supervise(k.e, nil)
	if err != nil {
		return
	}
	defer sup.Close(ctx)
	open, err := sup.Questions(ctx, id)
	if err != nil {
		return
	}
	for _, q := range open {
		fmt.Fprintln(k.e.Stderr, "Answer with: "+brief.Clean(runstore.HowToAnswer(id, q, len(open) > 1)))
	}
}

// show prints a question with its line breaks, and the beginnings of the texts to edit.
func (k *keyboard) show(q *mark.Question) {
	var text strings.Builder
	text.WriteString(brief.CleanText(cmp.Or(q.Text, string(q.Kind))))
	if !q.Deadline.IsZero() {
		text.WriteString("\n(" + runstore.DeadlineOf(*q) + ")")
	}
	for _, key := range slices.Sorted(maps.Keys(q.Keys)) {
		fmt.Fprintf(&text, "\n  %s: %s", brief.Clean(key), brief.Line(textOf(q.Keys[key]), 100))
	}
	if q.Kind == mark.AskForm {
		fields, _ := q.Fields() // whoever asked has read them
		for _, f := range fields {
			text.WriteString("\n  " + brief.Clean(f.String()))
		}
	}
	fmt.Fprintln(k.e.Stderr, text.String())
}

// filledIn asks for the fields of a form, one after the other.
func (k *keyboard) filledIn(ctx context.Context, q *mark.Question) (json.RawMessage, error) {
	fields, err := q.Fields()
	if err != nil {
		return nil, err
	}
	texts := make(map[string]string)
	for i := 0; i < len(fields); {
		f := &fields[i]
		text, err := k.ask(ctx, brief.Line(f.Name, 40)+"> ")
		if err != nil {
			return nil, err
		}
		if text != "" {
			if _, err := f.Read(text); err != nil {
				fmt.Fprintf(k.e.Stderr, "(%s)\n", brief.Clean(err.Error()))
				continue
			}
			texts[f.Name] = text
		} else if f.Required && len(f.Default) == 0 {
			fmt.Fprintf(k.e.Stderr, "(%s is needed; Ctrl-C leaves the question open)\n", brief.Clean(f.Name))
			continue
		}
		i++
	}
	return q.Fill(texts)
}

// hintOf returns the prompt of a question.
func (k *keyboard) hintOf(q *mark.Question) string {
	switch q.Kind {
	case mark.AskApproval, mark.AskConfirmation:
		return "yes or no, and why> "
	case mark.AskForm:
		return "yes to fill it in, decline or cancel> "
	case mark.AskEdit:
		if editor := k.editor(); editor != nil {
			return fmt.Sprintf("e for %s, key=value, or an empty line> ", brief.Line(filepath.Base(editor[0]), 20))
		}
		return "key=value, or an empty line> "
	case mark.AskResolution:
		if q.IsEdited() {
			return strings.Join(q.Options, ", ") + "> "
		}
		return "retry, skip, or result TEXT> "
	}
	if len(q.Options) > 0 {
		return brief.Clean(strings.Join(q.Options, ", ")) + "> "
	}
	return "answer> "
}

// value converts a line into the answer that the question needs. For an edit, value reads more lines, up to an empty line.
func (k *keyboard) value(ctx context.Context, q *mark.Question, text string) (json.RawMessage, error) {
	switch q.Kind {
	case mark.AskResolution:
		word, result, _ := strings.Cut(text, " ")
		return json.Marshal(mark.Resolution{Action: word, Result: strings.TrimSpace(result)})
	case mark.AskForm:
		if word := strings.ToLower(text); word == "" || word == "y" || word == "yes" {
			return k.filledIn(ctx, q)
		}
	case mark.AskEdit:
		if editor := k.editor(); text == "e" && editor != nil {
			return k.edited(ctx, editor, q.Keys)
		}
		var set []string
		for text != "" {
			set = append(set, text)
			var err error
			if text, err = k.ask(ctx, k.hintOf(q)); err != nil {
				return nil, err
			}
		}
		if len(set) == 0 {
			return json.Marshal(q.Keys)
		}
		return (&answerFlags{set: set}).value(*q, nil)
	}
	return answerValue(q, text)
}
