// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// answerFlags are the flags of refrain answer.
type answerFlags struct {
	clusterFlags
	store, question, reason, payload string
	set                              []string
	goOn                             bool
}

func newAnswer(e *term.Env) *cobra.Command {
	var f answerFlags
	cmd := &cobra.Command{
		Use:   "answer RUN [ANSWER]",
		Short: "Answer a question that a run asks",
		Long: `Answer the question that a run waits for. Without ANSWER, show the question.

ANSWER is yes or no for an approval or a confirmation, and any text for a question.
For an edit, give the new values of state keys with --set; a value that is valid JSON
is read as JSON.

To say whether a call that was cut off took place, use refrain resolve.`,
		Example: `  refrain answer last
  refrain answer last yes --resume
  refrain answer r_1f0c3a2b no --reason "the second paragraph repeats the first"
  refrain answer last "The cat and the moon"
  refrain answer last --set draft="It was a cat." --set score=7`,
		Args:              term.Args(1, 2),
		ValidArgsFunction: runstore.Complete(e, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.here(cmd.Context(), e, cmd.Flags()); err != nil {
				return err
			}
			return f.run(cmd.Context(), e, args[0], args[1:])
		},
	}
	fl := cmd.Flags()
	runstore.Flag(fl, &f.store)
	f.flags(fl, temporalFlag)
	fl.StringVar(&f.question, "question", "", "`ID` of the question, if the run asks several")
	fl.StringVar(&f.reason, "reason", "", "`text` that goes with the answer")
	fl.StringVar(&f.payload, "payload", "", "`JSON` that goes back to the tool with the confirmation")
	fl.StringArrayVar(&f.set, "set", nil, "set a state key, as `key=value`; repeat the flag for more keys")
	fl.BoolVar(&f.goOn, "resume", false, "resume the run at once")
	return cmd
}

func (f *answerFlags) run(ctx context.Context, e *term.Env, word string, answer []string) error {
	if len(answer) == 0 && len(f.set) == 0 {
		if f.question+f.reason+f.payload != "" || f.goOn {
			return fmt.Errorf("no answer given; write: refrain answer RUN ANSWER")
		}
		return withQuestions(ctx, e, f.store, word, func(_ *runstore.Stock, _ *supervisor.Supervisor, id string, open []mark.Question) error {
			return printQuestions(e.Stdout, id, open)
		})
	}
	return withQuestions(ctx, e, f.store, word, func(s *runstore.Stock, sup *supervisor.Supervisor, id string, open []mark.Question) error {
		q, err := chooseQuestion(id, open, f.question, func(q mark.Question) bool { return q.Kind != mark.AskResolution }, "refrain resolve "+id)
		if err != nil {
			return err
		}
		a := mark.Answer{ID: q.ID, Reason: f.reason}
		if a.Value, err = f.value(q, answer); err != nil {
			return term.UsageError(err)
		}
		return f.give(ctx, e, s, sup, id, q, a, f.goOn)
	})
}

// value is the answer as the question wants to have it.
func (f *answerFlags) value(q mark.Question, answer []string) (json.RawMessage, error) {
	if q.Kind == mark.AskEdit {
		if f.payload != "" {
			return nil, fmt.Errorf("--payload is only for the confirmation of a tool call, and %s is another question",
				q.ID)
		}
		edit := make(map[string]any, len(f.set))
		for _, s := range f.set {
			key, text, ok := strings.Cut(s, "=")
			if !ok || key == "" {
				return nil, fmt.Errorf("--set %q: write it as key=value", s)
			}
			v, err := session.PlainJSON([]byte(text))
			if err != nil {
				v = text
			}
			edit[key] = v
		}
		if len(answer) > 0 || len(edit) == 0 {
			return nil, fmt.Errorf("%s asks for values of the state; give them with --set key=value", q.ID)
		}
		return json.Marshal(edit)
	}
	if len(f.set) > 0 || len(answer) == 0 {
		return nil, fmt.Errorf("%s does not ask for values of the state; write: refrain answer RUN ANSWER", q.ID)
	}
	if f.payload != "" && q.Kind != mark.AskConfirmation {
		return nil, fmt.Errorf("--payload is only for the confirmation of a tool call, and %s is another question",
			q.ID)
	}
	switch q.Kind {
	case mark.AskText:
		return json.Marshal(answer[0])
	case mark.AskConfirmation:
		c := map[string]any{}
		if f.payload != "" {
			payload, err := session.PlainJSON([]byte(f.payload))
			if err != nil {
				return nil, fmt.Errorf("--payload: %w", err)
			}
			c["payload"] = payload
		}
		yes, err := yesOrNo(answer[0])
		c["confirmed"] = yes
		if err != nil {
			return nil, err
		}
		return json.Marshal(c)
	}
	yes, err := yesOrNo(answer[0])
	if err != nil {
		return nil, err
	}
	return json.Marshal(yes)
}

func yesOrNo(word string) (bool, error) {
	switch strings.ToLower(word) {
	case "yes", "y", "true", "ok":
		return true, nil
	case "no", "n", "false":
		return false, nil
	}
	return false, fmt.Errorf("the answer is yes or no, not %q; add a comment with --reason", word)
}
