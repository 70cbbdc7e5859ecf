// SPDX-License-Identifier: Apache-2.0

package live

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

type buffer struct{ bytes.Buffer }

func (*buffer) Close() error { return nil }

func TestDiary(t *testing.T) {
	var file buffer
	d := &diary{file: &file, spends: func() string { return "0.40" }, agents: map[string]bool{"coder": true}}
	says := func(agent, text string) *session.Event {
		ev := &session.Event{Address: session.Address("loop/" + agent), Author: agent, Iteration: 3}
		ev.Content = genai.NewContentFromText(text, genai.RoleModel)
		return ev
	}
	doing := &session.Event{Address: "loop/coder", Iteration: 3}
	doing.Partial, doing.CustomMetadata = true, map[string]any{mark.MetadataDoing: "runs go test ./..."}
	d.event(doing, nil)
	d.event(says("coder", "I have mended it.\n\n\x1b[2JAll of it."), nil)
	d.event(says("check", strings.Repeat("ok\n", 50)+"FAIL one\nFAIL two\n"), nil)
	d.event(&session.Event{Address: "loop", Mark: &mark.Mark{Kind: mark.KindIterationFinished}}, []string{"Iteration 3  2s"})
	user := says("user", "my prompt")
	user.Author = "user"
	d.event(user, nil)
	d.finished(Request{Session: "r_1"}, result{next: []string{"Take it with: git merge fix"}})
	var got []string
	for line := range strings.Lines(file.String()) {
		got = append(got, strings.TrimSuffix(line, "\n")[len("2006-01-02 15:04:05 "):])
	}
	want := []string{"[3 coder] runs go test ./...", "[3 coder] I have mended it.", "[3 coder] [2JAll of it."}
	for range mostLines - 2 {
		want = append(want, "[3 check] ok")
	}
	want = append(want, "[3 check] FAIL one", "[3 check] FAIL two", "Iteration 3  2s", "cost so far: 0.40", "run r_1 completed",
		"Take it with: git merge fix")
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var none *diary
	none.event(doing, []string{"x"})
	none.finished(Request{}, result{})
	none.close()
}

// A provider that does not answer is said in the lines of a run, once in a while and not for each attempt.
func TestProviderThatDoesNotAnswer(t *testing.T) {
	var out bytes.Buffer
	p := &plain{out: io.Discard, err: &out}
	f := new(progress.Fold)
	for range 5 {
		ev := &session.Event{Address: "loop/coder", Iteration: 1}
		ev.Partial, ev.CustomMetadata = true, map[string]any{mark.MetadataDoing: "waits: its provider did not answer, attempt 2 of 11 follows"}
		if err := p.event(ev, nil, f); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(out.String(), "coder waits: its provider did not answer"); n != 1 {
		t.Errorf("it is said %d times:\n%s", n, out.String())
	}
}
