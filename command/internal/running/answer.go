// SPDX-License-Identifier: Apache-2.0

package running

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/clusters"
	"github.com/refrain-dev/refrain/command/internal/deffile"
	"github.com/refrain-dev/refrain/command/internal/live"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/runs/cluster"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// askedFlags are the flags of refrain answer and refrain resolve.
type askedFlags struct {
	clusters.Flags
	store, question, reason string
	goOn                    bool
}

// add adds the flags. name is the flag that chooses a question, and usage its help.
func (f *askedFlags) add(cmd *cobra.Command, e *term.Env, name, usage string) {
	fl := cmd.Flags()
	runstore.Flag(fl, &f.store)
	f.AddTo(cmd, e, clusters.AddressUsage)
	fl.StringVar(&f.question, name, "", usage)
	fl.StringVar(&f.reason, "reason", "", "`text` that the log keeps as the reason for the answer")
	fl.BoolVar(&f.goOn, "resume", false, "resume the run at once")
}

// answerFlags are the flags of refrain answer.
type answerFlags struct {
	askedFlags
	payload string
	set     []string
}

func NewAnswer(e *term.Env) *cobra.Command {
	var f answerFlags
	cmd := &cobra.Command{
		Use:   "answer RUN [ANSWER]",
		Short: "Answer a question that a run asks",
		Long: `Answer the question that a run waits for. Without ANSWER, show the question.

ANSWER is yes or no for an approval or a confirmation, and any text for a question.
For an edit, give the new values of state keys with --set; a value that is valid JSON
is read as JSON. For a form of an MCP server, give its fields with --set, or answer
decline or cancel.

If the run asks whether a call that was cut off took place, use refrain resolve.`,
		Example: `  refrain answer last
  refrain answer last yes --resume
  refrain answer r_1f0c3a2b no --reason "the second paragraph repeats the first"
  refrain answer last "The cat and the moon"
  refrain answer last --set draft="It was a cat." --set score=7`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), e, args[0], args[1:]) },
	}
	f.add(cmd, e, "question", "`ID` of the question, if the run asks several")
	fl := cmd.Flags()
	fl.StringVar(&f.payload, "payload", "", "`JSON` that the tool gets with the confirmation")
	fl.StringArrayVar(&f.set, "set", nil, "set a state key or a field of a form, as `key=value`; repeat the flag for more")
	return cmd
}

func (f *answerFlags) run(ctx context.Context, e *term.Env, word string, answer []string) error {
	only := len(answer) == 0 && len(f.set) == 0
	if only && (f.question+f.reason+f.payload != "" || f.goOn) {
		return fmt.Errorf("no answer given; write: refrain answer RUN ANSWER")
	}
	return f.withQuestions(ctx, e, word, func(a *openRun) error {
		if only {
			return printQuestions(e, e.Stdout, a.id, a.open)
		}
		q, err := a.choose(f.question, func(q mark.Question) bool { return q.Kind != mark.AskResolution }, "refrain resolve "+a.id)
		if err != nil {
			return err
		}
		value, err := f.value(q, answer)
		if err != nil {
			return term.UsageError(err)
		}
		return f.give(ctx, e, a, q, value)
	})
}

// value returns the answer in the form that the question needs.
func (f *answerFlags) value(q mark.Question, answer []string) (json.RawMessage, error) {
	if f.payload != "" && q.Kind != mark.AskConfirmation {
		return nil, fmt.Errorf("--payload is only for the confirmation of a tool call, and %s is another question", q.ID)
	}
	if q.Kind == mark.AskForm && len(f.set) > 0 {
		if len(answer) > 0 {
			return nil, fmt.Errorf("%s asks for fields; give them with --set field=value, or answer decline or cancel", q.ID)
		}
		texts, err := deffile.ParseSets(f.set)
		if err != nil {
			return nil, err
		}
		value, err := q.Fill(texts)
		if err == nil {
			err = q.Check(&mark.Answer{ID: q.ID, Value: value})
		}
		return value, err
	}
	if q.Kind == mark.AskEdit {
		sets, err := deffile.ParseSets(f.set)
		if err != nil {
			return nil, err
		}
		edit := make(map[string]any, len(sets))
		for key, text := range sets {
			if edit[key], err = session.PlainJSON([]byte(text)); err != nil {
				edit[key] = text
			}
		}
		if len(answer) > 0 || len(edit) == 0 {
			return nil, fmt.Errorf("%s asks for values of the state; give them with --set key=value", q.ID)
		}
		return json.Marshal(edit)
	}
	if len(f.set) > 0 || len(answer) == 0 {
		return nil, fmt.Errorf("%s does not ask for values of the state; write: refrain answer RUN ANSWER", q.ID)
	}
	value, err := answerValue(&q, answer[0])
	if err != nil || f.payload == "" {
		return value, err
	}
	var c map[string]any
	if err := json.Unmarshal(value, &c); err != nil {
		return nil, err
	}
	if c["payload"], err = session.PlainJSON([]byte(f.payload)); err != nil {
		return nil, fmt.Errorf("--payload: %w", err)
	}
	return json.Marshal(c)
}

// answerValue is a text as the question wants to have its answer.
func answerValue(q *mark.Question, text string) (json.RawMessage, error) {
	value := operations.AnswerValue(q, text)
	err := q.Check(&mark.Answer{ID: q.ID, Value: value})
	switch q.Kind {
	case mark.AskText:
		return value, nil
	case mark.AskApproval, mark.AskConfirmation:
		if err != nil {
			err = fmt.Errorf("the answer is yes or no, not %q; add a comment with --reason", text)
		}
	case mark.AskForm:
		if _, unread := (&mark.Answer{Value: value}).Form(); unread != nil {
			err = fmt.Errorf("give the fields of the form with --set field=value, or answer decline or cancel, not %q", text)
		}
	}
	return value, err
}

// openRun is a run of a store, with the questions that it asks.
type openRun struct {
	s    *runstore.Stock
	sup  *supervisor.Supervisor
	id   string
	open []mark.Question
}

// withQuestions opens the run that word names, and calls do with the run's open questions.
func (f *askedFlags) withQuestions(ctx context.Context, e *term.Env, word string, do func(*openRun) error) error {
	s, sup, id, err := runstore.OpenSupervised(ctx, e, f.store, word)
	if err != nil {
		return err
	}
	defer s.Close()
	open, err := sup.Questions(ctx, id)
	if err != nil {
		return term.Failure(err)
	}
	return do(&openRun{s, sup, id, open})
}

// chooseQuestion returns the question with the ID, or without an ID the only question that fits the command.
func (a *openRun) choose(id string, fits func(mark.Question) bool, other string) (mark.Question, error) {
	run, open := a.id, a.open
	fitting := slices.DeleteFunc(slices.Clone(open), func(q mark.Question) bool { return !fits(q) })
	if id != "" {
		named := func(q mark.Question) bool {
			return q.ID == id || q.Call == id || strings.HasPrefix(q.ID, "q"+strings.TrimPrefix(id, "call")+"-")
		}
		if i := slices.IndexFunc(fitting, named); i >= 0 {
			return fitting[i], nil
		}
		if slices.ContainsFunc(open, named) {
			return mark.Question{}, term.UsageError(fmt.Errorf("question %s is of another kind; answer it with %s", id, other))
		}
	}
	switch {
	case len(open) == 0:
		return mark.Question{}, term.UsageError(fmt.Errorf("run %s has no open question; see refrain show %[1]s", run))
	case len(fitting) == 0:
		return mark.Question{}, term.UsageError(fmt.Errorf("run %s has no question of this kind; answer its questions with %s", run, other))
	case id != "":
		return mark.Question{}, term.UsageError(fmt.Errorf("run %s has no open question %q; refrain answer %s lists the "+
			"open questions", run, id, run))
	case len(fitting) > 1:
		var ids []string
		for _, q := range fitting {
			ids = append(ids, q.ID)
		}
		return mark.Question{}, term.UsageError(fmt.Errorf("run %s has %d open questions; choose one of %s; refrain "+
			"answer %s shows them", run, len(ids), strings.Join(ids, ", "), run))
	}
	return fitting[0], nil
}

// give records the answer in the run, and resumes the run if goOn is set.
func (f *askedFlags) give(ctx context.Context, e *term.Env, of *openRun, q mark.Question, value json.RawMessage) error {
	a, id := mark.Answer{ID: q.ID, Value: value, Reason: f.reason}, of.id
	if err := q.Check(&a); err != nil {
		return term.UsageError(err)
	}
	run, open, err := f.giveOnly(ctx, e, of.sup, id, a)
	if err != nil {
		return term.Failure(err)
	}
	switch {
	case len(open) > 0:
		fmt.Fprintf(e.Stderr, "run %s has the answer, and has more questions:\n", id)
		return printQuestions(e, e.Stderr, id, open)
	case f.goOn:
		var shown term.Shown
		if err := shown.Choose(e); err != nil {
			return err
		}
		if clusters.InCluster(&run) { // which goes on by itself
			return watch(ctx, e, of.s, live.WatchOptions{Shown: shown}, id)
		}
		return resumeIn(ctx, e, of.s, resumeFlags{shown: shown, grace: defaultGrace}, id)
	case clusters.InCluster(&run):
		fmt.Fprintf(e.Stderr, "run %s has the answer, and its workers continue it\n", id)
		return nil
	}
	fmt.Fprintf(e.Stderr, "run %s has the answer\n%s\n", id, runstore.HowToResumeIn(ctx, of.s.Service, id))
	return nil
}

// giveOnly records the answer, through the cluster if f.On is set. It returns the status that the run had before, and the
// questions that are still open.
func (f *askedFlags) giveOnly(ctx context.Context, e *term.Env, sup *supervisor.Supervisor, id string,
	a mark.Answer) (mark.Run, []mark.Question, error) {
	st, err := sup.Status(ctx, id)
	if err != nil {
		return st.Run, nil, err
	}
	if !f.On {
		open, err := sup.Answer(ctx, id, a)
		return st.Run, open, err
	}
	c, driver, err := f.Of(ctx, e, sup, id)
	if err != nil {
		return st.Run, nil, err
	}
	defer c.Close()
	if err := clusters.AskFor(ctx, e, c, id, driver, cluster.Request{Do: cluster.AskAnswer, Answer: &a}); err != nil {
		return st.Run, nil, err
	}
	open, err := sup.Questions(ctx, id)
	return st.Run, open, err
}

// printQuestions writes the open questions of a run, each with the command that answers it.
func printQuestions(e *term.Env, w io.Writer, id string, open []mark.Question) error {
	if len(open) == 0 {
		_, err := fmt.Fprintf(w, "run %s has no open question\n", id)
		return err
	}
	var b strings.Builder
	for _, q := range open {
		b.WriteString(string(q.Kind))
		if len(open) > 1 {
			b.WriteString(" " + q.ID)
		}
		if !q.Deadline.IsZero() {
			fmt.Fprintf(&b, ", %s", runstore.DeadlineOf(q))
		}
		fmt.Fprintf(&b, "\n  %s\n", strings.ReplaceAll(brief.CleanText(q.Text), "\n", "\n  "))
		fmt.Fprintf(&b, "  Answer with: %s\n", e.Hint(runstore.HowToAnswer(id, q, len(open) > 1)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// resolveFlags are the flags of refrain resolve.
type resolveFlags struct {
	askedFlags
	result              string
	retry, skip         bool
	keep, discard, base bool
}

func NewResolve(e *term.Env) *cobra.Command {
	var f resolveFlags
	cmd := &cobra.Command{
		Use:   "resolve RUN",
		Short: "Decide what a run does about a call that was cut off, or about changed files",
		Long: `Tell the run whether a call that must not be made twice (effect: at_most_once) took
place. The call was cut off while it ran, so Refrain cannot know. Give one of:

  --result TEXT  the call took place, with this result
  --retry        the call did not take place; make it now
  --skip         skip the call

If somebody has changed files in the run's workspace while the run did not work there,
tell the run what to do with them. Give one of:

  --keep         continue with the changed files
  --base         continue with the changed files, and compare later changes with them
                 (protect, limits)
  --discard      restore the files of the run; the changed files stay in the store`,
		Example: `  refrain answer last
  refrain resolve last --result "order 4711"
  refrain resolve r_1f0c3a2b --call call-x2mh3k --retry --resume
  refrain resolve last --keep --resume`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), e, args[0], cmd.Flags().Changed("result"))
		},
	}
	fl := cmd.Flags()
	f.add(cmd, e, "call", "`ID` of the call or of its question, if there are several")
	fl.StringVar(&f.result, "result", "", "the call took place, and this `text` is its result")
	fl.BoolVar(&f.retry, "retry", false, "the call did not take place; make it now")
	fl.BoolVar(&f.skip, "skip", false, "skip the call")
	fl.BoolVar(&f.keep, "keep", false, "continue with the changed files")
	fl.BoolVar(&f.base, "base", false, "continue with the changed files, and compare later changes with them")
	fl.BoolVar(&f.discard, "discard", false, "restore the files of the run")
	return cmd
}

func (f *resolveFlags) run(ctx context.Context, e *term.Env, word string, made bool) error {
	r := mark.Resolution{Result: f.result}
	chosen := 0
	for action, on := range map[string]bool{mark.ResolveResult: made, mark.ResolveRetry: f.retry, mark.ResolveSkip: f.skip,
		mark.ResolveKeep: f.keep, mark.ResolveBase: f.base, mark.ResolveDiscard: f.discard} {
		if on {
			r.Action = action
			chosen++
		}
	}
	if chosen != 1 {
		return errors.New("give one of --result TEXT, --retry and --skip, or for changed files --keep, --base and --discard")
	}
	return f.withQuestions(ctx, e, word, func(a *openRun) error {
		q, err := a.choose(f.question, func(q mark.Question) bool { return q.Kind == mark.AskResolution }, "refrain answer "+a.id)
		if err != nil {
			return err
		}
		if len(q.Options) > 0 && !slices.Contains(q.Options, r.Action) {
			return term.UsageError(fmt.Errorf("--%s is no answer to the question of run %s; give --%s. %s", r.Action, a.id,
				strings.Join(q.Options, ", --"), brief.Clean(q.Text)))
		}
		value, err := json.Marshal(r)
		if err != nil {
			return err
		}
		return f.give(ctx, e, a, q, value)
	})
}
