// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"maps"
	"strings"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
)

// tempMemo has the temp: keys on which decisions of the tree's loops depend. Stores drop temp: keys. So the runner
// writes these into the metadata of the event that sets them, and a resumed run makes the same decisions.
type tempMemo struct {
	keys map[string]bool
	all  bool // a loop may read any key
}

// newTempMemo returns the memo of a tree; nil if no loop reads a temp: key.
func newTempMemo(tree *drive.Tree) *tempMemo {
	m := &tempMemo{keys: make(map[string]bool)}
	for _, name := range tree.Names() {
		traits := drive.TraitsOf(tree.Find(name), true)
		m.all = m.all || traits.ReadsAnyState
		for _, k := range traits.ReadsState {
			if strings.HasPrefix(k, session.KeyPrefixTemp) {
				m.keys[k] = true
			}
		}
	}
	if !m.all && len(m.keys) == 0 {
		return nil
	}
	return m
}

// saveTemp copies an event's temp: keys into its metadata, which stores keep.
func (m *tempMemo) saveTemp(ev *session.Event) {
	if m == nil {
		return
	}
	var kept map[string]any
	for k, v := range ev.Actions.StateDelta {
		if strings.HasPrefix(k, session.KeyPrefixTemp) && (m.all || m.keys[k]) {
			if kept == nil {
				kept = make(map[string]any)
			}
			kept[k] = v
		}
	}
	if kept == nil {
		return
	}
	metadata := maps.Clone(ev.CustomMetadata)
	if metadata == nil {
		metadata = make(map[string]any, 1)
	}
	metadata[drive.MetadataTemp] = kept
	ev.CustomMetadata = metadata
}

// restoreTemp sets the temp: keys in an event's metadata in the state.
func (m *tempMemo) restoreTemp(view *session.View, ev *session.Event) {
	if m == nil {
		return
	}
	kept, _ := ev.CustomMetadata[drive.MetadataTemp].(map[string]any)
	for k, v := range kept {
		_ = view.State().Set(k, v) // temp: keys are never refused
	}
}
