// SPDX-License-Identifier: Apache-2.0

package runlog

import (
	"fmt"
	"maps"
	"slices"

	"github.com/refrain-dev/refrain/internal/history/progress/verify"
	"github.com/refrain-dev/refrain/internal/seal/statekey"
)

// Verified is the result of the verification of a log.
type Verified struct {
	Run    string            `json:"run,omitempty"`
	Events int               `json:"events"`
	Chain  string            `json:"chain"`
	Flaw   *Flaw             `json:"flaw,omitempty"`
	Loops  []verify.LoopSeal `json:"loops"`
	// Runs has the verified end of each run in the log, and the run that has not ended.
	Runs []verify.RunSeal `json:"runs,omitempty"`
	// State lists the differences between the stored state of the session and the state that follows from the
	// events.
	State []string `json:"state,omitempty"`
}

// Seals returns how many seals of loops and runs were compared, and how many loops and runs have a problem.
func (v *Verified) Seals() (compared, bad int) {
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

// Problem says why the log is not as it was written; empty if nothing shows that.
func (v *Verified) Problem() string {
	compared, bad := v.Seals()
	switch {
	case v.Flaw != nil:
		return v.Flaw.String()
	case bad > 0:
		return fmt.Sprintf("%d of %d seals do not match, so the log was changed", bad, compared)
	case len(v.State) > 0:
		return "the state of the run does not match its events: " + v.State[0]
	}
	return ""
}

// Named returns the name of v.Runs[i] for people: "run" with the ID of its session. If the session has several runs, it
// adds which one it is, such as "2 of 3". If the session's ID is unknown, as in a file without a head, Named uses the
// invocation ID of the events.
func (v *Verified) Named(i int) string {
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

// Verified computes all hashes and the state again, in one pass over the log, and compares them with the stored ones.
func (r *Run) Verified() (*Verified, error) {
	v := &Verified{Run: r.ID, Events: r.Len(), Loops: []verify.LoopSeal{}}
	if r.File != nil && r.File.Head == nil {
		v.Run = ""
	}
	log := verify.New(r.Events())
	var err error
	if v.Chain, v.Flaw, err = r.chained(log.Add); err != nil {
		return nil, err
	}
	if r.File != nil && r.File.Masked() > 0 && v.Flaw == nil {
		v.Flaw = &Flaw{Problem: fmt.Sprintf("secrets were struck out of %d of its lines when it was written, so its hashes "+
			"are not those of the run; take it out of its store with refrain export", r.File.Masked())}
	}
	if loops := log.Loops(); loops != nil {
		v.Loops = loops
	}
	if v.Runs = log.Runs(); r.Store != nil {
		v.State = log.State(r.view)
	} else if r.File != nil && log.TellsState() { // otherwise an older version has written the log
		r.verifyHead(v)
	}
	return v, r.Err()
}

// verifyHead compares the first line of a file with the events of the file.
func (r *Run) verifyHead(v *Verified) {
	if n := len(v.Runs); r.File.Head.isOver() && n > 0 && v.Runs[n-1].Open && v.Flaw == nil {
		v.Flaw = &Flaw{Problem: fmt.Sprintf("its first line says that the run is %s, but its end is missing",
			r.File.Head.Status)}
	}
	for _, key := range slices.Sorted(maps.Keys(r.Initial)) {
		if statekey.Own(key) {
			v.State = append(v.State, fmt.Sprintf("key %q is in the first line, and the run had nothing to begin with",
				key))
		}
	}
}
