// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"slices"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/supervisor"
)

// A run whose config asks for it keeps the files of its message as artifacts, whether it begins at once, behind another run
// of its session, or waits for its turn; a fork has them too.
func TestRunsKeepTheFilesOfTheirMessages(t *testing.T) {
	store, files, w := session.InMemoryService(), artifact.InMemoryService(), newWorld("step")
	step := w.step(t, "step")
	sup := process(t, store, step, func(c *supervisor.Config) { c.MaxRuns, c.ArtifactService = 1, files })
	begin := func(id string) *supervisor.Run {
		req := request()
		req.SessionID = id
		req.Message = &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{genai.NewPartFromBytes([]byte("a,b"), "text/csv")}}
		req.Program = &supervisor.Program{Agent: step, RunConfig: agent.RunConfig{SaveInputBlobsAsArtifacts: true}}
		run, err := sup.Start(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	names := func(id string) []string {
		got, err := files.List(t.Context(), &artifact.ListRequest{AppName: "app", UserID: "ana", SessionID: id})
		if err != nil {
			t.Fatal(err)
		}
		return got.FileNames
	}
	first, waits := begin("one"), begin("two")
	<-w.seen
	if !waits.Queued() || len(names("one")) != 1 || len(names("two")) != 1 {
		t.Errorf("the sessions have the files %q and %q", names("one"), names("two"))
	}
	close(w.gate["step"])
	completed(t, first)
	completed(t, waits)
	completed(t, begin("one"))
	fork, err := sup.Fork(t.Context(), "one", supervisor.Checkpoint{Seq: int64(view(t, store, "one").Log().Len())})
	if err != nil {
		t.Fatal(err)
	}
	if all := names("one"); len(all) != 2 || !slices.Equal(names(fork), all) {
		t.Errorf("the session has the files %q, its fork %q", all, names(fork))
	}
	for _, id := range []string{"one", "two"} {
		for ev := range view(t, store, id).Log().All() {
			if ev.Content != nil && slices.ContainsFunc(ev.Content.Parts, func(p *genai.Part) bool { return p.InlineData != nil }) {
				t.Errorf("event %d of session %q still has the file", ev.Seq, id)
			}
		}
	}
}
