// SPDX-License-Identifier: Apache-2.0

package runlog

import (
	"fmt"
	"maps"
	"slices"

	"github.com/refrain-dev/refrain/internal/history/progress/verify"
	"github.com/refrain-dev/refrain/internal/seal/statekey"
)

// Verified is what verify tells of a log.
type Verified struct {
	Run    string            `json:"run,omitempty"`
	Events int               `json:"events"`
	Chain  string            `json:"chain"`
	Flaw   *Flaw             `json:"flaw,omitempty"`
	Loops  []verify.LoopSeal `json:"loops"`
	// Runs are the ends of runs, and the run that has none.
	Runs []verify.RunSeal `json:"runs,omitempty"`
	// State says what of the state that is kept beside the log is not what its events
	// come to.
	State []string `json:"state,omitempty"`
}

// Seals counts what was compared, and what does not agree.
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

// Named is a run by the ID that people know: that of its session. Of several in one
// session it says which, and of one in a file without an ID it has nothing better than
// that of its events.
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

// Verified makes all hashes again, and the state, in one pass over the log.
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
	} else if log.TellsState() { // else a version before this one has written it
		r.verifyHead(v)
	}
	return v, r.Err()
}

// verifyHead holds what the first line of a file says of the run against its events.
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
