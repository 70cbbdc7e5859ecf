// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/command/cluster"
	"github.com/refrain-dev/refrain/command/internal/live"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// withQuestions opens a run and finds what it asks.
func withQuestions(ctx context.Context, e *term.Env, store, word string,
	do func(*runstore.Stock, *supervisor.Supervisor, string, []mark.Question) error) error {
	s, sup, id, err := runstore.OpenSupervised(ctx, e, store, word)
	if err != nil {
		return err
	}
	defer s.Close()
	open, err := sup.Questions(ctx, id)
	if err != nil {
		return term.Failure(err)
	}
	return do(s, sup, id, open)
}

// chooseQuestion finds the question that somebody means, among those that a
// command is for.
func chooseQuestion(run string, open []mark.Question, id string, fits func(mark.Question) bool,
	other string) (mark.Question, error) {
	fitting := slices.DeleteFunc(slices.Clone(open), func(q mark.Question) bool { return !fits(q) })
	if id != "" {
		named := func(q mark.Question) bool {
			return q.ID == id || strings.HasPrefix(q.ID, "q"+strings.TrimPrefix(id, "call")+"-")
		}
		if i := slices.IndexFunc(fitting, named); i >= 0 {
			return fitting[i], nil
		}
		if slices.ContainsFunc(open, named) {
			return mark.Question{}, term.UsageError(fmt.Errorf("%s is another kind of question: see %s", id, other))
		}
	}
	switch {
	case len(open) == 0:
		return mark.Question{}, term.UsageError(fmt.Errorf("run %s asks nothing", run))
	case len(fitting) == 0:
		return mark.Question{}, term.UsageError(fmt.Errorf("run %s asks another kind of question: see %s", run, other))
	case id != "":
		return mark.Question{}, term.UsageError(fmt.Errorf("run %s does not ask %q, or has its answer; refrain "+
			"answer %s shows what it asks", run, id, run))
	case len(fitting) > 1:
		var ids []string
		for _, q := range fitting {
			ids = append(ids, q.ID)
		}
		return mark.Question{}, term.UsageError(fmt.Errorf("run %s asks %d things: choose one of %s; refrain answer "+
			"%s shows them", run, len(ids), strings.Join(ids, ", "), run))
	}
	return fitting[0], nil
}

// give gives the answer to the run, and goes on with it if that is wanted.
func (f *clusterFlags) give(ctx context.Context, e *term.Env, s *runstore.Stock, sup *supervisor.Supervisor, id string, q mark.Question,
	a mark.Answer, goOn bool) error {
	if err := q.Check(&a); err != nil {
		return term.UsageError(err)
	}
	run, open, err := f.answer(ctx, e, sup, id, a)
	if err != nil {
		return term.Failure(err)
	}
	switch {
	case len(open) > 0:
		fmt.Fprintf(e.Stderr, "run %s has the answer, and asks more:\n", id)
		return printQuestions(e.Stderr, id, open)
	case goOn:
		shown, err := term.ChosenMode(e, term.Auto, false, false)
		if err != nil {
			return err
		}
		if inCluster(&run) { // which goes on by itself
			return watch(ctx, e, s, live.WatchOptions{Progress: shown}, id)
		}
		return resumeIn(ctx, e, s, resumeFlags{progress: shown, grace: defaultGrace}, id)
	}
	if inCluster(&run) {
		fmt.Fprintf(e.Stderr, "run %s has the answer, and its workers continue it\n", id)
		return nil
	}
	fmt.Fprintf(e.Stderr, "run %s has the answer\n%s\n", id, runstore.HowToResumeIn(ctx, s.Service, id))
	return nil
}

// answer gives the answer, by way of the cluster if that is wanted. It returns how the run stood before,
// and what it asks still.
func (f *clusterFlags) answer(ctx context.Context, e *term.Env, sup *supervisor.Supervisor, id string,
	a mark.Answer) (mark.Run, []mark.Question, error) {
	st, err := sup.Standing(ctx, id)
	if err != nil {
		return st.Run, nil, err
	}
	if !f.on {
		open, err := sup.Answer(ctx, id, a)
		return st.Run, open, err
	}
	c, driver, err := f.of(ctx, e, sup, id)
	if err != nil {
		return st.Run, nil, err
	}
	defer c.Close()
	if err := askFor(ctx, e, c, id, driver, cluster.Request{Do: cluster.AskAnswer, Answer: &a}); err != nil {
		return st.Run, nil, err
	}
	open, err := sup.Questions(ctx, id)
	return st.Run, open, err
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
			fmt.Fprintf(&b, ", %s", runstore.DeadlineOf(q))
		}
		fmt.Fprintf(&b, "\n  %s\n", strings.ReplaceAll(q.Text, "\n", "\n  "))
		fmt.Fprintf(&b, "  Answer with: %s\n", runstore.HowToAnswer(id, q, len(open) > 1))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
