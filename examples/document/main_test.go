// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/model/provider"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

const (
	refined = "Mimi lived in a library and slept on the books. One night she dreamed the words, and in the morning she could read."
	output  = `[InitialWriterAgent] A cat lived in a library. She slept on the books.
[CriticAgent] Give the cat a name and a wish.
[RefinerAgent] Mimi lived in a library. She slept on the books and wished that she could read them.
[CriticAgent] Let the wish come true.
[RefinerAgent] Mimi lived in a library and slept on the books. One night she dreamed the words, and in the morning she could read.
[CriticAgent] No major issues found.
[Tool Call] exitLoop triggered by RefinerAgent 
[RefinerAgent] the loop ends in iteration 3: the critic has found no major issues

current_document:
` + refined + "\n"
)

func noEnv(string) string { return "" }

// K4: the seed's program, to the end.
func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), nil, noEnv, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(output, out.String()); diff != "" {
		t.Error(diff)
	}
}

// K4, C33: the document is the last refined text at every moment, and the log
// says why the loop ended.
func TestTheDocumentIsKept(t *testing.T) {
	exitLoop, err := newExitLoop(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var docs []any
	var exit *session.Exit
	for ev := range write(t, exitLoop).Events().All() {
		if doc, ok := ev.Actions.StateDelta[stateDoc]; ok {
			docs = append(docs, doc)
		}
		if ev.Actions.Exit != nil {
			exit = ev.Actions.Exit
		}
	}
	if len(docs) != 3 || docs[2] != refined {
		t.Errorf("the document was %q", docs)
	}
	want := &session.Exit{By: "RefinerAgent", Reason: "the critic has found no major issues", HandledBy: "IterativeWriter/RefinementLoop"}
	if diff := cmp.Diff(want, exit); diff != "" {
		t.Error(diff)
	}
}

// write runs the agents with the scripted model and returns the session.
func write(t *testing.T, exitLoop tool.Tool) session.Session {
	t.Helper()
	llm, err := openModel(t.Context(), "", noEnv)
	if err != nil {
		t.Fatal(err)
	}
	svc := session.InMemoryService()
	if err := runAgent(t.Context(), llm, exitLoop, svc, "Write a document about a cat", io.Discard); err != nil {
		t.Fatal(err)
	}
	got, err := svc.Get(t.Context(), &session.GetRequest{AppName: appName, UserID: userID, SessionID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	if doc, err := got.Session.State().Get(stateDoc); err != nil || doc != refined {
		t.Errorf("in the end the document is %q, %v", doc, err)
	}
	return got.Session
}

// The seed's handler as one writes it for ADK v1, and for v2.
type noArgs struct{}

func exitLoopV1(ctx tool.Context, input map[string]any) (noArgs, error) {
	fmt.Fprintf(io.Discard, "[Tool Call] exitLoop triggered by %s \n", ctx.AgentName())
	ctx.Actions().Escalate = true
	return noArgs{}, nil
}

func exitLoopV2(ctx agent.Context, input map[string]any) (noArgs, error) {
	fmt.Fprintf(io.Discard, "[Tool Call] exitLoop triggered by %s \n", ctx.AgentName())
	ctx.Actions().Escalate = true
	return noArgs{}, nil
}

func TestBothSpellings(t *testing.T) {
	cfg := functiontool.Config{Name: "exitLoop", Description: "Call this function ONLY when the critique indicates no further changes are needed."}
	v1, err1 := functiontool.New(cfg, exitLoopV1)
	v2, err2 := functiontool.New(cfg, exitLoopV2)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	for _, exitLoop := range []tool.Tool{v1, v2} {
		evs := write(t, exitLoop).Events()
		if x := evs.At(evs.Len() - 1).Actions.Exit; x == nil || !x.Plain || x.By != "RefinerAgent" {
			t.Errorf("got %+v", x)
		}
	}
}

func TestModelFlag(t *testing.T) {
	err := run(t.Context(), []string{"-model", "openai/gpt-5-mini"}, noEnv, io.Discard, io.Discard)
	if _, ok := err.(interface{ Unwrap() error }); !ok || !strings.Contains(err.Error(), "OPENAI_API_KEY") {
		t.Errorf("got %v", err)
	}
	if llm, err := openModel(t.Context(), "ollama/qwen3", noEnv); err != nil || llm.Name() != "qwen3" {
		t.Errorf("got %v, %v", llm, err)
	}
	if _, err := provider.Open(t.Context(), "scripted/script.yaml", noEnv); err != nil {
		t.Error(err)
	}
}
