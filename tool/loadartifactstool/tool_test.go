// SPDX-License-Identifier: Apache-2.0

package loadartifactstool_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/loadartifactstool"
)

// listener keeps the conversations that a model gets.
type listener struct {
	model.LLM
	asked [][]*genai.Content
}

func (l *listener) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	l.asked = append(l.asked, req.Contents)
	return l.LLM.GenerateContent(ctx, req, stream)
}

// library has files of the session "now" of ana.
func library(ctx context.Context, files map[string]*genai.Part) (artifact.Service, error) {
	svc := artifact.InMemoryService()
	for name, part := range files {
		_, err := svc.Save(ctx, &artifact.SaveRequest{AppName: "app", UserID: "ana", SessionID: "now", FileName: name, Part: part})
		if err != nil {
			return nil, err
		}
	}
	return svc, nil
}

// ask runs an agent with load_artifacts, whose model answers from a script. It returns what the agent has
// said and what its model was asked.
func ask(ctx context.Context, files artifact.Service, answers ...scripted.Answer) (said string, asked [][]*genai.Content, err error) {
	script, err := scripted.New(scripted.Script{Answers: answers})
	if err != nil {
		return "", nil, err
	}
	llm := &listener{LLM: script}
	a, err := llmagent.New(llmagent.Config{Name: "reader", Model: llm, Tools: []tool.Tool{loadartifactstool.New()}})
	if err != nil {
		return "", nil, err
	}
	r, err := runner.New(runner.Config{AppName: "app", Agent: a, SessionService: session.InMemoryService(), ArtifactService: files,
		AutoCreateSession: true})
	if err != nil {
		return "", nil, err
	}
	msg := genai.NewContentFromText("Is the report good?", genai.RoleUser)
	for ev, err := range r.Run(ctx, "ana", "now", msg, agent.RunConfig{}) {
		if err != nil {
			return said, llm.asked, err
		}
		said += ev.Text()
	}
	return said, llm.asked, nil
}

func load(names ...any) scripted.Answer {
	return scripted.Answer{Calls: []scripted.Call{{Name: "load_artifacts", Args: map[string]any{"artifact_names": names}}}}
}

// The model sees which files there are, asks for one, and reads it.
func Example() {
	ctx := context.Background()
	files, err := library(ctx, map[string]*genai.Part{"report.md": genai.NewPartFromText("All tests pass.")})
	if err != nil {
		fmt.Println(err)
		return
	}
	ask1 := load("report.md")
	ask1.MatchRequest = `You have a list of artifacts:\n\["report.md"\]`
	said, _, err := ask(ctx, files, ask1,
		scripted.Answer{MatchRequest: `Artifact report.md is:\nuser: All tests pass\.`, Text: "It is."})
	fmt.Println(said, err)
	// Output: It is. <nil>
}

// Files are in the request after the call, in a form that models take, and in no other request.
func TestFilesReachTheModel(t *testing.T) {
	picture := genai.NewPartFromBytes([]byte("\x89PNG"), "image/png")
	files, err := library(t.Context(), map[string]*genai.Part{
		"data.csv":    genai.NewPartFromBytes([]byte("a;b\xff"), "text/csv; charset=latin-1"),
		"logo.png":    picture,
		"tool.bin":    genai.NewPartFromBytes([]byte{1, 2, 3}, "application/octet-stream"),
		"user:me.txt": genai.NewPartFromText("Ana"),
	})
	if err != nil {
		t.Fatal(err)
	}
	said, asked, err := ask(t.Context(), files,
		load("data.csv", "logo.png", "tool.bin", "user:me.txt", "made-up.md", "../../etc/passwd", "data.csv"),
		load(), scripted.Answer{Text: "Fine."})
	if err != nil || said != "Fine." {
		t.Fatalf("%q, %v", said, err)
	}
	if len(asked) != 3 {
		t.Fatalf("%d requests, want 3", len(asked))
	}
	if n := len(asked[2]) - len(asked[0]); n != 4 {
		t.Errorf("%d contents more in the last request than in the first, want two calls with their answers", n)
	}
	var got []string
	var shown *genai.Part
	for _, c := range asked[1][3:] {
		if c.Role != genai.RoleUser || len(c.Parts) != 2 {
			t.Fatalf("content %+v", c)
		}
		got = append(got, c.Parts[0].Text+" "+c.Parts[1].Text)
		if c.Parts[1].InlineData != nil {
			shown = c.Parts[1]
		}
	}
	want := []string{
		"Artifact data.csv is: a;b\uFFFD",
		"Artifact logo.png is: ",
		`Artifact tool.bin is: [A file of the type "application/octet-stream", 3 bytes, which cannot be shown.]`,
		"Artifact user:me.txt is: Ana",
		"Artifact made-up.md is: [There is no such file.]",
		"Artifact ../../etc/passwd is: [There is no such file.]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(picture, shown); diff != "" {
		t.Errorf("the picture (-want +got)\n%s", diff)
	}
}

// A call that has no names is told so, and the run goes on.
func TestWrongArguments(t *testing.T) {
	files, err := library(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	said, _, err := ask(t.Context(), files, load(5), scripted.Answer{MatchRequest: "want a list of file names", Text: "Sorry."})
	if err != nil || said != "Sorry." {
		t.Errorf("%q, %v", said, err)
	}
}

func TestNoArtifactService(t *testing.T) {
	_, _, err := ask(t.Context(), nil, scripted.Answer{Text: "Hello."})
	if err == nil || !strings.Contains(err.Error(), "load_artifacts") || !strings.Contains(err.Error(), "ArtifactService") {
		t.Errorf("error %v", err)
	}
}
