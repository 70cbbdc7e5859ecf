// SPDX-License-Identifier: Apache-2.0

package running

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/session/mark"
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

// errNoMore is the error of a question when the input has ended.
var errNoMore = errors.New("the input has ended")

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

// answer asks a question until the answer is valid.
func (k *keyboard) answer(ctx context.Context, q *mark.Question) (mark.Answer, error) {
	fmt.Fprintln(k.e.Stderr, q.Text)
	for {
		a := mark.Answer{ID: q.ID}
		text, err := k.ask(ctx, hintOf(q))
		if err == nil {
			a.Value, err = k.value(ctx, q, text)
		}
		if errors.Is(err, errNoMore) {
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
		fmt.Fprintf(k.e.Stderr, "(%v)\n", err)
	}
}

// hintOf returns the prompt of a question.
func hintOf(q *mark.Question) string {
	switch q.Kind {
	case mark.AskApproval, mark.AskConfirmation:
		return "yes or no> "
	case mark.AskEdit:
		return "key=value, or an empty line> "
	case mark.AskResolution:
		if q.IsEdited() {
			return strings.Join(q.Options, ", ") + "> "
		}
		return "retry, skip, or result TEXT> "
	}
	if len(q.Options) > 0 {
		return strings.Join(q.Options, ", ") + "> "
	}
	return "answer> "
}

// value converts a line into the answer that the question needs. For an edit, value reads more lines, up to an empty line.
func (k *keyboard) value(ctx context.Context, q *mark.Question, text string) (json.RawMessage, error) {
	switch q.Kind {
	case mark.AskResolution:
		word, result, _ := strings.Cut(text, " ")
		return json.Marshal(mark.Resolution{Action: word, Result: strings.TrimSpace(result)})
	case mark.AskEdit:
		var set []string
		for text != "" {
			set = append(set, text)
			var err error
			if text, err = k.ask(ctx, hintOf(q)); err != nil {
				return nil, err
			}
		}
		if len(set) == 0 {
			return json.Marshal(q.Keys)
		}
		return (&answerFlags{set: set}).value(*q, nil)
	}
	return said(q, text)
}
