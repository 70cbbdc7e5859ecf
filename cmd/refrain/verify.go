// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
)

// verifyFlags are the flags of refrain verify.
type verifyFlags struct {
	store, expect string
	json          bool
}

func newVerify(e *env) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify FILE|RUN",
		Short: "Check that the log of a run was not changed",
		Long: `Check that the log of a run was not changed, in a store or in a file that refrain export
or refrain run --record has written.

Every loop ends with a stop record, which holds a hash of the loop's events; every run
ends with a hash of the whole run, from the definition and the inputs to its end.
verify computes the hashes again and compares. After the end of a run, only events that
continue it or begin another run may stand. In a store, verify also rebuilds the state
from the events. A file of refrain export has a hash of everything in its last line;
with --audit each line has one, so the first changed event is named.

The report has one line for each loop, for each run, and for the whole log. Exit code 0
if all agree, 1 otherwise.

A run that has not ended, or that an old version without hashes has ended, is
"unsealed": whether its last events are all there cannot be checked. That is not an
error.

Somebody who can write the log can also compute new hashes. To notice that, keep the
hash of the whole log in another place, and give it to --expect.`,
		Example: `  refrain verify last
  refrain run loop.yaml --record run.jsonl
  refrain verify run.jsonl
  refrain export last --audit -o audit.jsonl
  refrain verify audit.jsonl --expect sha256:4be1...`,
		Args:              between(1, 1),
		ValidArgsFunction: completeRuns(e, 1),
		RunE:              func(cmd *cobra.Command, args []string) error { return verify(cmd.Context(), e, f, args[0]) },
	}
	fl := cmd.Flags()
	storeFlag(fl, &f.store)
	fl.StringVar(&f.expect, "expect", "", "`hash` of the whole log that you kept")
	fl.BoolVar(&f.json, "json", false, "write JSON")
	return cmd
}

// verified is what verify tells of a log.
type verified struct {
	Run    string         `json:"run,omitempty"`
	Events int            `json:"events"`
	Chain  string         `json:"chain"`
	Flaw   *flaw          `json:"flaw,omitempty"`
	Loops  []verifiedLoop `json:"loops"`
	// Runs are the ends of runs, and the run that has none.
	Runs []progress.RunSeal `json:"runs,omitempty"`
	// State says what of the state that is kept beside the log is not what its events
	// come to.
	State []string `json:"state,omitempty"`
}

// seals counts what was compared, and what does not agree.
func (v *verified) seals() (compared, bad int) {
	for _, l := range v.Loops {
		if compared++; l.Problem != "" {
			bad++
		}
	}
	for _, r := range v.Runs {
		if r.Unsealed == "" {
			compared++
		}
		if r.Problem != "" {
			bad++
		}
	}
	return compared, bad
}

// verifiedLoop is one loop as verify tells of it.
type verifiedLoop struct {
	progress.Seal
	Reason string `json:"stop_reason,omitempty"`
	Digest string `json:"digest,omitempty"`
}

func verify(ctx context.Context, e *env, f verifyFlags, word string) error {
	run, err := openRun(ctx, e, f.store, word)
	if err != nil {
		return err
	}
	defer run.close()
	v, err := run.verified()
	if err != nil {
		return &exitError{exitFailed, err}
	}
	if f.expect != "" && f.expect != v.Chain && v.Flaw == nil {
		v.Flaw = &flaw{Problem: "its hash is not the expected one, " + f.expect}
	}
	if err := printVerified(e, v, f.json); err != nil {
		return &exitError{exitFailed, fmt.Errorf("write the result: %w", err)}
	}
	compared, bad := v.seals()
	switch {
	case v.Flaw != nil:
		return &exitError{exitFailed, fmt.Errorf("%s: %s", word, v.Flaw)}
	case bad > 0:
		return &exitError{exitFailed, fmt.Errorf("%s: %d of %d seals do not agree: it is not as it was recorded", word, bad, compared)}
	case len(v.State) > 0:
		return &exitError{exitFailed, fmt.Errorf("%s: its state is not what its events come to: %s", word, v.State[0])}
	case compared == 0 && !(run.file != nil && run.file.sealed()) && f.expect == "":
		return &exitError{exitFailed, fmt.Errorf("%s: no loop has stopped in it, and no run has ended with a seal, so there is nothing to compare", word)}
	}
	return nil
}

// verified makes all hashes again, and the state.
func (r *oneRun) verified() (v *verified, err error) {
	v = &verified{Run: r.id, Events: len(r.events), Loops: []verifiedLoop{}}
	if r.file != nil && r.file.head == nil {
		v.Run = ""
	}
	if v.Chain, v.Flaw, err = r.chained(); err != nil {
		return nil, err
	}
	stops := stopsBySeq(r.events)
	for _, s := range progress.Verify(r.events, r.wholes.of) {
		one := verifiedLoop{Seal: s}
		if rec := stops[s.Seq]; rec != nil {
			one.Reason, one.Digest = string(rec.Reason), rec.Digest
		}
		v.Loops = append(v.Loops, one)
	}
	v.Runs = progress.VerifyRuns(r.events, r.wholes.of)
	if r.store != nil {
		v.State = progress.VerifyState(r.view, r.events, r.wholes.of)
	} else {
		r.verifyHead(v)
	}
	return v, r.wholes.err
}

// verifyHead holds what the first line of a file says of the run against its events.
func (r *oneRun) verifyHead(v *verified) {
	if !progress.TellsState(r.events) {
		return // a version before this one has written it
	}
	if n := len(v.Runs); r.file.head.over() && n > 0 && v.Runs[n-1].Open && v.Flaw == nil {
		v.Flaw = &flaw{Problem: fmt.Sprintf("its first line says that the run is %s, and there is no end of it", r.file.head.Status)}
	}
	for _, key := range slices.Sorted(maps.Keys(r.initial)) {
		if session.OwnKey(key) {
			v.State = append(v.State, fmt.Sprintf("key %q is in the first line, and the run had nothing to begin with", key))
		}
	}
}

func printVerified(e *env, v *verified, asJSON bool) error {
	if asJSON {
		enc := newJSON(e.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	}
	for _, one := range v.Loops {
		if err := printSeal(e, string(one.Loop), one.Digest, one.Problem, ""); err != nil {
			return err
		}
	}
	for i, seal := range v.Runs {
		if err := printSeal(e, v.named(i), seal.Digest, seal.Problem, seal.Unsealed); err != nil {
			return err
		}
	}
	for _, problem := range v.State {
		if err := printSeal(e, "state", "", problem, ""); err != nil {
			return err
		}
	}
	line := fmt.Sprintf("log      %d events: %s", v.Events, v.Chain)
	if v.Flaw != nil {
		line = "CHANGED  log: " + v.Flaw.String()
	}
	_, err := fmt.Fprintln(e.stdout, line)
	return err
}

// named is a run by the ID that people know: that of its session. Of several in one
// session it says which, and of one in a file without an ID it has nothing better than
// that of its events.
func (v *verified) named(i int) string {
	switch {
	case v.Run == "":
		return "run " + v.Runs[i].Run
	}
	var ids []string
	for _, r := range v.Runs {
		if !slices.Contains(ids, r.Run) {
			ids = append(ids, r.Run)
		}
	}
	if len(ids) == 1 {
		return "run " + v.Run
	}
	return fmt.Sprintf("run %s, %d of %d", v.Run, slices.Index(ids, v.Runs[i].Run)+1, len(ids))
}

// printSeal says whether what a seal is over is as it was.
func printSeal(e *env, of, digest, problem, unsealed string) error {
	line := fmt.Sprintf("ok       %s: %s", of, digest)
	switch {
	case problem != "":
		line = fmt.Sprintf("CHANGED  %s: %s", of, problem)
	case unsealed != "":
		line = fmt.Sprintf("unsealed %s: %s", of, unsealed)
	}
	_, err := fmt.Fprintln(e.stdout, line)
	return err
}
