// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"encoding/json"
	"fmt"
	"hash"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
)

// fingerprint is a hash that identifies the output of a step. It includes the step's text, in which any white space is
// equal, and its changes of the state. It leaves out keys with the prefix temp: or [drive.KeyPrefixConversation], and the
// fields that a [drive.Reporter] removes. The order of the events of different branches makes no difference.
type fingerprint struct {
	h        hash.Hash64 // the hash of the events in the loop's own branch
	branches map[string]*fingerprint
	branch   string // the loop's branch
	tree     *drive.Tree
	buf      []byte
	unknown  bool // a part of the output could not be hashed
}

func newFingerprint(branch string, tree *drive.Tree) *fingerprint {
	return &fingerprint{h: fnv.New64a(), branch: branch, tree: tree}
}

func (f *fingerprint) reset() {
	f.h.Reset()
	f.unknown = false
	clear(f.branches)
}

// add adds an event to the fingerprint. It ignores partial events and marks.
func (f *fingerprint) add(ev *session.Event) {
	if ev.Partial || ev.Mark != nil {
		return
	}
	if ev.Branch != f.branch {
		f.ofBranch(ev.Branch).add(ev)
		return
	}
	f.buf = f.buf[:0]
	for word := range strings.FieldsSeq(ev.Text()) {
		if f.buf = append(append(f.buf, word...), ' '); len(f.buf) >= 4096 {
			f.h.Write(f.buf)
			f.buf = f.buf[:0]
		}
	}
	f.h.Write(f.buf)
	if delta := ev.Actions.StateDelta; len(delta) > 0 {
		reporter, reports := f.tree.Find(ev.Author).(drive.Reporter)
		for _, k := range slices.Sorted(maps.Keys(delta)) {
			if strings.HasPrefix(k, session.KeyPrefixTemp) || strings.HasPrefix(k, drive.KeyPrefixConversation) {
				continue // a resumed run does not find temp: keys in the log; a conversation's ID differs each time
			}
			v := delta[k]
			if reports {
				v = reporter.Compared(ev, v)
			}
			b, err := json.Marshal(v)
			f.unknown = f.unknown || err != nil
			f.write("\x00", k, "\x01")
			f.h.Write(b)
		}
	}
	// The event does not have the contents of an artifact.
	f.unknown = f.unknown || len(ev.Actions.ArtifactDelta) > 0
}

// ofBranch returns the fingerprint of a parallel branch.
func (f *fingerprint) ofBranch(branch string) *fingerprint {
	of := f.branches[branch]
	if of == nil {
		if of = newFingerprint(branch, f.tree); f.branches == nil {
			f.branches = make(map[string]*fingerprint)
		}
		f.branches[branch] = of
	}
	return of
}

func (f *fingerprint) write(texts ...string) {
	for _, s := range texts {
		f.buf = append(f.buf[:0], s...)
		f.h.Write(f.buf)
	}
}

// sum returns the fingerprint as text; "" if a part of the output could not be hashed.
func (f *fingerprint) sum() string {
	for _, branch := range slices.Sorted(maps.Keys(f.branches)) {
		of := f.branches[branch]
		f.unknown = f.unknown || of.unknown
		f.write("\x00", branch, "\x01", of.sum())
	}
	if f.unknown {
		return ""
	}
	return fmt.Sprintf("%016x", f.h.Sum64())
}
