// SPDX-License-Identifier: Apache-2.0

package rename_test

import (
	"testing"

	"github.com/refrain-dev/refrain/definition/internal/rename"
	"github.com/refrain-dev/refrain/internal/text/source"
)

// Every field in which a key or an agent can be named has the new name; everything else stays.
func TestField(t *testing.T) {
	own := map[string]string{"draft": "draft-1", "mark": "mark_1"}
	names := rename.Names{Reads: own, Writes: own, Agents: map[string]string{"critic": "critic_1"}, Earlier: true}
	for _, tt := range []struct{ field, text, want string }{
		{"instructions", "Improve {{draft}}, {draft?}, not {{drafts}}; {{best.draft}}", "Improve {{draft-1}}, {draft-1?}, not {{drafts}}; {{best.draft-1}}"},
		{"command", "{draft} {{mark.score}}", "{draft} {{mark_1.score}}"},
		{"value", "state.draft + state.mark", `state["draft-1"] + state.mark_1`},
		{"output_key", "draft", "draft-1"},
		{"output_key", "loop_output", "loop_output"},
		{"result", "mark", "mark_1"},
		{"score", "mark", "mark_1"},
		{"order", "critic", "critic_1"},
		{"name", "critic", "critic_1"},
		{"name", "draft", "draft"},
		{"model", "draft", "draft"},
		{"description", "the draft", "the draft"},
	} {
		got := names.Field(tt.field, &source.Node{Kind: source.Scalar, Value: tt.text})
		if got.Value != tt.want {
			t.Errorf("%s: %q is %q, want %q", tt.field, tt.text, got.Value, tt.want)
		}
	}
}

// Names in the parts of a field change by what the part is.
func TestFieldOfParts(t *testing.T) {
	own := map[string]string{"draft": "draft_1", "mark": "mark_1"}
	names := rename.Names{Reads: own, Writes: own, Agents: map[string]string{"critic": "critic_1"}}
	scalar := func(s string) *source.Node { return &source.Node{Kind: source.Scalar, Value: s} }
	dict := func(parts ...*source.Node) *source.Node { return &source.Node{Kind: source.Map, Content: parts} }
	list := func(parts ...*source.Node) *source.Node { return &source.Node{Kind: source.List, Content: parts} }
	score := names.Field("score", dict(scalar("key"), scalar("mark"), scalar("judge"), dict(scalar("step"), scalar("critic")),
		scalar("label"), scalar("mark"), scalar("expr"), scalar("state.mark * 2")))
	stop := names.Field("stop_when", dict(scalar("any"), list(scalar("state.mark > 3"), dict(scalar("text"),
		scalar("draft"), scalar("of"), scalar("critic")))))
	set := names.Field("set", dict(scalar("draft"), scalar("state.draft + 'x'"), scalar("other"), scalar("1")))
	for i, got := range [][2]string{
		{score.Content[1].Value, "mark_1"}, {score.Content[3].Content[1].Value, "critic_1"}, {score.Content[5].Value, "mark"},
		{score.Content[7].Value, "state.mark_1 * 2"}, {stop.Content[1].Content[0].Value, "state.mark_1 > 3"},
		{stop.Content[1].Content[1].Content[1].Value, "draft"}, {stop.Content[1].Content[1].Content[3].Value, "critic_1"},
		{set.Content[0].Value, "draft_1"}, {set.Content[1].Value, "state.draft_1 + 'x'"}, {set.Content[2].Value, "other"},
	} {
		if got[0] != got[1] {
			t.Errorf("%d: %q, want %q", i, got[0], got[1])
		}
	}
}
