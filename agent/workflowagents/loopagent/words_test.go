// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"testing"

	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/session"
)

// D21, C33: the critic's last words are no document. The editor, who leaves the
// loop in silence, lets what it said before stand.
func TestSilentExitLetsTheStepsEarlierWordsStand(t *testing.T) {
	editor := turns(t, "editor", words("a document"), words("the document"), escalate(&session.Event{}))
	root := loopOf(t, "refine", 5, func(c *loopagent.Config) { c.OutputKey = "document" }, says(t, "critic", "no issues"), editor)
	evs, err := play(t, root)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "last words", lines(evs[len(evs)-1:]), []string{"refine: the document"})
	check(t, "document", evs[len(evs)-1].Actions.StateDelta["document"], any("the document"))
}
