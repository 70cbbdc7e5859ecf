// SPDX-License-Identifier: Apache-2.0

package live

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

type buffer struct{ bytes.Buffer }

func (*buffer) Close() error { return nil }

func TestDiary(t *testing.T) {
	var file buffer
	root := &definition.Agent{Name: "loop", Type: definition.TypeLoop, Loop: new(definition.Loop)}
	root.Loop.NoProgress = &loop.NoProgress{Keys: []string{"compared"}}
	root.SubAgents = []*definition.Agent{{Name: "coder", Type: definition.TypeCLI}, {Name: "check", ResultKey: "checked", Command: new(definition.Command)},
		{Name: "until", OutputKey: "compared"}}
	d, err := newDiary(&definition.Definition{Root: root}, func() (*os.File, error) { return nil, os.ErrPermission }, func() string { return "0.40" })
	if !errors.Is(err, os.ErrPermission) || d.file != nil {
		t.Fatalf("a file that cannot be opened: %v, %v", err, d.file)
	}
	d.file = &file
	says := func(agent, text string) *session.Event {
		ev := &session.Event{Address: session.Address("loop/" + agent), Author: agent, Iteration: 3}
		ev.Content = genai.NewContentFromText(text, genai.RoleModel)
		return ev
	}
	doing := func(text string) *session.Event {
		ev := &session.Event{Address: "loop/coder", Iteration: 3}
		ev.Partial, ev.CustomMetadata = true, map[string]any{mark.MetadataDoing: text}
		return ev
	}
	silent := says("check", "")
	silent.Actions.StateDelta = map[string]any{"checked": map[string]any{"exit_code": 1.0}}
	user := says("user", "my prompt")
	user.Author = "user"
	for _, ev := range []*session.Event{doing("runs go test ./..."), doing("I have mended it."), says("coder", "I have\nmended it."),
		says("coder", "I have mended it.\n\n\x1b[2JAll of it."), says("check", strings.Repeat("ok\n", 50)+"FAIL one\nFAIL two\n"), says("until", "FAIL (time)"),
		says("check", "it fails"), says("coder", "again"), says("check", "it fails"), silent, user, says("task", `{"a":1}`)} {
		d.event(ev, nil)
	}
	d.event(&session.Event{Address: "loop", Mark: &mark.Mark{Kind: mark.KindIterationFinished}}, []string{"Iteration 3  2s"})
	d.event(says("loop", "it fails"), nil)
	d.finished(Request{Session: "r_1"}, result{next: []string{"Take it with: git merge fix"}, tasks: &progress.Tasks{Total: 4, Open: 1,
		Titles: []string{"One"}, Failed: []string{"Two: why"}}})
	var got []string
	for line := range strings.Lines(file.String()) {
		got = append(got, strings.TrimSuffix(line, "\n")[len("2006-01-02 15:04:05 "):])
	}
	want := []string{"[3 coder] runs go test ./...", "[3 coder] I have mended it.", "[3 coder] I have mended it.", "[3 coder] [2JAll of it."}
	for range mostLines - 2 {
		want = append(want, "[3 check] ok")
	}
	want = append(want, "[3 check] FAIL one", "[3 check] FAIL two", "[3 check] it fails", "[3 coder] again", "[3 check] the same as before",
		"[3 check] exit code 1, without output", "Iteration 3  2s", "cost so far: 0.40", "[3 loop] it fails", "run r_1 completed",
		"Tasks of the plan: 2 of 4 done", "  open: One", "  failed: Two: why", "Take it with: git merge fix")
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var none *diary
	none.event(user, []string{"x"})
	none.finished(Request{}, result{})
	none.close()
}

// A provider that does not answer is said in the lines of a run, once in a while and not for each attempt.
func TestProviderThatDoesNotAnswer(t *testing.T) {
	d := &diary{agents: map[string]bool{"coder": true}}
	var all []string
	for range 5 {
		ev := &session.Event{Address: "loop/coder", Iteration: 1}
		ev.Partial, ev.CustomMetadata = true, map[string]any{mark.MetadataDoing: "waits: its provider did not answer, attempt 2 of 11 follows"}
		all = append(all, d.event(ev, nil)...)
	}
	if want := []string{"[1 coder] waits: its provider did not answer, attempt 2 of 11 follows"}; !slices.Equal(all, want) {
		t.Errorf("the lines are %q, want %q", all, want)
	}
}
