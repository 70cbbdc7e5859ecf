// SPDX-License-Identifier: Apache-2.0

package runfiles

import (
	"errors"
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/session/mark"
)

// startFrom makes the files those that a step begins with: of the state, or of what a person has decided about
// files that somebody else has changed. If they have changed without a decision, the step asks for it by
// its error.
func startFrom(ctx agent.InvocationContext, t *workspace.Tree, now *state) error {
	discarded, was := make(map[workspace.Hash]bool), now.hash
	for _, a := range drive.At(ctx).Answers() {
		h := workspace.Hash(a.ID[strings.LastIndexByte(a.ID, '-')+1:])
		r, err := a.EditResolution()
		if !h.Valid() || err != nil {
			continue // of another question
		}
		if discarded[h] = r.Action == mark.ResolveDiscard; !discarded[h] {
			now.hash = h
		}
		if r.Action == mark.ResolveBase {
			now.base = h
		}
	}
	if now.hash != was {
		now.edits = strings.TrimSpace(fmt.Sprintf("%s %s:%s", now.edits, was, now.hash))
	}
	t.CountFrom(now.base)
	_, err := t.Ensure(ctx, now.hash)
	edit, ok := errors.AsType[*workspace.StrangerError](err)
	switch {
	case !ok || !drive.At(ctx).CanAsk():
		return err
	case discarded[edit.Tree]:
		if _, err := t.Restore(ctx, now.hash); err != nil {
			return err
		}
		_, err := t.Ensure(ctx, now.hash)
		return err
	}
	q := mark.Edited(fmt.Sprintf("Files changed in %s while the run did not work there: %s. %s takes them as the beginning of "+
		"%s, %s also as what later changes are compared with, and %s goes back to the files of the run (the changed ones are kept as tree %s).",
		edit.Dir, edit.Some(20), mark.ResolveKeep, ctx.Agent().Name(), mark.ResolveBase, mark.ResolveDiscard, edit.Tree))
	q.ID = drive.At(ctx).QuestionIDOf(string(edit.Tree))
	return &taskagent.QuestionError{Question: q}
}
