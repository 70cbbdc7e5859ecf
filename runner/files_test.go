// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// upload is a message with a text and two files.
func upload() *genai.Content {
	return &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{
		genai.NewPartFromText("Sum these up."), genai.NewPartFromBytes([]byte("a,b"), "text/csv"), genai.NewPartFromBytes([]byte{1, 2}, "image/png"),
	}}
}

// The field was declared, documented and read nowhere.
func TestFilesOfTheMessageAreArtifacts(t *testing.T) {
	for _, durable := range []bool{false, true} {
		store, files, msg := session.InMemoryService(), artifact.InMemoryService(), upload()
		var got *genai.Content
		a := custom(t, "a", func(ctx agent.InvocationContext, _ yield) { got = ctx.UserContent() })
		r := newRunner(t, runner.Config{Agent: a, SessionService: store, ArtifactService: files, AutoCreateSession: true, Durable: durable})
		if _, err := collect(t, r.Run(t.Context(), "ana", "s1", msg, agent.RunConfig{SaveInputBlobsAsArtifacts: true})); err != nil {
			t.Fatal(err)
		}
		s, err := store.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
		if err != nil {
			t.Fatal(err)
		}
		first := s.Session.Events().At(0)
		one, two := "artifact_"+first.InvocationID+"_1", "artifact_"+first.InvocationID+"_2"
		if first.Content.Parts[0].Text != "Sum these up." || first.Content.Parts[1].InlineData != nil || !strings.Contains(first.Content.Parts[1].Text, one) ||
			!strings.Contains(first.Content.Parts[2].Text, two) {
			t.Errorf("the log has %v", first.Content.Parts)
		}
		if d := first.Actions.ArtifactDelta; len(d) != 2 || d[one] != 1 || d[two] != 1 {
			t.Errorf("the event names the artifacts %v", d)
		}
		if got == nil || got.Parts[1].InlineData != nil || !strings.Contains(got.Parts[1].Text, one) {
			t.Errorf("the agent got %v", got)
		}
		if msg.Parts[1].InlineData == nil {
			t.Error("the caller's message has changed")
		}
		saved, err := files.Load(t.Context(), &artifact.LoadRequest{AppName: "app", UserID: "ana", SessionID: "s1", FileName: one})
		if err != nil || string(saved.Part.InlineData.Data) != "a,b" || saved.Part.InlineData.MIMEType != "text/csv" {
			t.Errorf("the artifact is %v, %v", saved, err)
		}
	}
}

func TestFilesStayInTheMessage(t *testing.T) {
	for _, c := range []struct {
		files artifact.Service
		cfg   agent.RunConfig
	}{{nil, agent.RunConfig{SaveInputBlobsAsArtifacts: true}}, {artifact.InMemoryService(), agent.RunConfig{}}} {
		var got *genai.Content
		a := custom(t, "a", func(ctx agent.InvocationContext, _ yield) { got = ctx.UserContent() })
		r := newRunner(t, runner.Config{Agent: a, SessionService: session.InMemoryService(), ArtifactService: c.files, AutoCreateSession: true})
		if _, err := collect(t, r.Run(t.Context(), "ana", "s1", upload(), c.cfg)); err != nil || got.Parts[1].InlineData == nil {
			t.Errorf("the agent got %v, %v", got, err)
		}
	}
}

// full is an artifact service without space.
type full struct{ artifact.Service }

func (full) Save(context.Context, *artifact.SaveRequest) (*artifact.SaveResponse, error) {
	return nil, errBoom
}

func TestFileThatCannotBeSavedRefusesTheMessage(t *testing.T) {
	store := session.InMemoryService()
	a := custom(t, "a", func(agent.InvocationContext, yield) { t.Error("the agent runs") })
	r := newRunner(t, runner.Config{Agent: a, SessionService: store, ArtifactService: full{artifact.InMemoryService()}, AutoCreateSession: true})
	_, err := collect(t, r.Run(t.Context(), "ana", "s1", upload(), agent.RunConfig{SaveInputBlobsAsArtifacts: true}))
	if !errors.Is(err, errBoom) || !strings.Contains(err.Error(), "part 2") {
		t.Errorf("got %v", err)
	}
	if s, err := store.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s1"}); err != nil || s.Session.Events().Len() != 0 {
		t.Errorf("the log has events: %v", err)
	}
}
