// SPDX-License-Identifier: Apache-2.0

package running

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/brief"
	"github.com/refrain-dev/refrain/session/mark"
)

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
	return f.withQuestions(ctx, e, word, func(a *asked) error {
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
