// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/history/progress/verify"
	"github.com/refrain-dev/refrain/internal/history/runlog"
)

// verifyFlags are the flags of refrain verify.
type verifyFlags struct {
	store, expect string
	json          bool
}

func NewVerify(e *term.Env) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify FILE|RUN",
		Short: "Check that the log of a run was not changed",
		Long: `Check that the log of a run was not changed, in a store or in a file that refrain export
or refrain run --record has written.

The events of a run form a chain of hashes, from the definition and the inputs on. Every
loop ends with a stop record, and every run with its end; both hold the hash of the
chain up to there. verify computes the hashes again and compares them. The change is
before the first one that does not match, and after the last one that matches. After the end of a run, only events
that continue the run or begin another run are allowed. In a store, verify also rebuilds
the state from the events. The last line of a file of refrain export has a hash of the
whole file; with --audit each line has a hash, so verify can name the first changed event.

The report has one line for each loop, for each run, and for the whole log. Exit code 0
if all hashes match, 1 otherwise.

A run is "unsealed" if it has not ended, or was ended by an old version without hashes.
verify cannot check whether the log of an unsealed run is complete. An unsealed run is
not an error.

Anybody who can write the log can also compute new hashes. To detect this, keep the hash
of the whole log in another place, and give it to --expect.`,
		Example: `  refrain verify last
  refrain run loop.yaml --record run.jsonl
  refrain verify run.jsonl
  refrain export last --audit -o audit.jsonl
  refrain verify audit.jsonl --expect sha256:4be1...`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runVerify(cmd.Context(), e, f, args[0])
		},
	}
	fl := cmd.Flags()
	runstore.Flag(fl, &f.store)
	fl.StringVar(&f.expect, "expect", "", "`hash` of the whole log that you kept")
	fl.BoolVar(&f.json, "json", false, "write JSON")
	return cmd
}

func runVerify(ctx context.Context, e *term.Env, f verifyFlags, word string) error {
	run, err := runstore.Open(ctx, e, f.store, word)
	if err != nil {
		return err
	}
	defer run.Close()
	v, err := run.Verified()
	if err != nil {
		return term.Failure(err)
	}
	if f.expect != "" && f.expect != v.Chain && v.Flaw == nil {
		v.Flaw = &runlog.Flaw{Problem: "the hash of the log is not the expected hash, " + f.expect}
	}
	if err := term.Report(e, f.json, v, func(w io.Writer) error { return printVerified(w, v) }); err != nil {
		return err
	}
	compared, _ := v.Seals()
	switch problem := v.Problem(); {
	case problem != "":
		return term.Failure(fmt.Errorf("%s: %s", word, problem))
	case slices.ContainsFunc(v.Runs, func(r verify.RunSeal) bool { return r.Open }): // its seal comes with its end
	case compared == 0 && !(run.File != nil && run.File.Hashed()) && f.expect == "":
		return term.Failure(fmt.Errorf("%s: the log has no seal to compare, because no loop has stopped and no run has "+
			"ended", word))
	}
	return nil
}

func printVerified(out io.Writer, v *runlog.Verified) error {
	w := bufio.NewWriter(out)
	for _, one := range v.Loops {
		printSeal(w, string(one.Loop), one.Digest, one.Problem, "")
	}
	for i, seal := range v.Runs {
		printSeal(w, v.Named(i), seal.Digest, seal.Problem, seal.Unsealed)
	}
	for _, problem := range v.State {
		printSeal(w, "state", "", problem, "")
	}
	line := fmt.Sprintf("log      %d events: %s", v.Events, v.Chain)
	if v.Flaw != nil {
		line = "CHANGED  log: " + v.Flaw.String()
	}
	fmt.Fprintln(w, line)
	return w.Flush()
}

// printSeal writes whether the events under a seal are unchanged.
func printSeal(w io.Writer, of, digest, problem, unsealed string) {
	line := fmt.Sprintf("ok       %s: %s", of, digest)
	switch {
	case problem != "":
		line = fmt.Sprintf("CHANGED  %s: %s", of, problem)
	case unsealed != "":
		line = fmt.Sprintf("unsealed %s: %s", of, unsealed)
	}
	fmt.Fprintln(w, line)
}
