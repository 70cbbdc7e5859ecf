// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// plain is a tool that can do nothing.
type plain string

func (p plain) Name() string      { return string(p) }
func (plain) Description() string { return "" }
func (plain) IsLongRunning() bool { return false }

// manual is a tool written by hand, without ProcessRequest.
type manual struct {
	plain
	declared string // another name than its own
	run      func(ctx tool.Context, args any) (map[string]any, error)
}

func (m *manual) Declaration() *genai.FunctionDeclaration {
	name := m.Name()
	if m.declared != "" {
		name = m.declared
	}
	return &genai.FunctionDeclaration{Name: name}
}

func (m *manual) Run(ctx tool.Context, args any) (map[string]any, error) {
	if m.run == nil {
		return map[string]any{"by": m.Name()}, nil
	}
	return m.run(ctx, args)
}

// search is a tool that the provider runs, and that prepares the request alone.
type search struct {
	plain
	err error
}

func (s search) ProcessRequest(_ tool.Context, req *model.LLMRequest) error {
	req.Config = &genai.GenerateContentConfig{Tools: []*genai.Tool{{GoogleSearch: &genai.GoogleSearch{}}}}
	return s.err
}

func invocation(ctx context.Context) agent.InvocationContext {
	return drive.NewInvocation(ctx, drive.Invocation{
		ID: "e-1", Session: session.NewView(session.ViewConfig{AppName: "app", UserID: "ana", SessionID: "s1"}),
	})
}

func call(t *testing.T, answer *toolconfirmation.ToolConfirmation) tool.Context {
	return agent.NewToolContext(invocation(t.Context()), "call-1", nil, answer)
}

func names(req *model.LLMRequest) []string {
	all := []string{}
	for _, t := range req.Config.Tools {
		for _, d := range t.FunctionDeclarations {
			all = append(all, d.Name)
		}
	}
	return all
}

// A12: tools by ADK's method shapes, with and without ProcessRequest.
func TestProcessPacksWhatIsWrittenByHand(t *testing.T) {
	req := &model.LLMRequest{}
	for _, it := range []tool.Tool{search{plain: "web"}, &manual{plain: "one"}, &manual{plain: "two"}} {
		if err := tool.Process(call(t, nil), req, it); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"one", "two"}, names(req)); diff != "" {
		t.Error(diff)
	}
	if len(req.Config.Tools) != 2 || len(req.Tools) != 2 {
		t.Errorf("one genai.Tool has all declarations, another one the search: got %d, and %d tools by name", len(req.Config.Tools), len(req.Tools))
	}
	if f, ok := req.Tools["two"].(tool.Function); !ok || f.Name() != "two" {
		t.Errorf("a request knows its tools by name, got %v", req.Tools["two"])
	}
}

func TestProcessRefusesWhatCannotBeUsed(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		tool tool.Tool
		is   error
		text string
	}{
		{&manual{plain: "known"}, nil, `pack tool "known": duplicate tool: the request has another one of that name; rename one of them`},
		{plain("idle"), tool.ErrUnusable, `pack tool "idle": a tool_test.plain has neither`},
		{&manual{}, nil, "pack tool: a *tool_test.manual has no name"},
		{&manual{plain: "a", declared: "b"}, nil, `pack tool "a": its declaration has the name "b"`},
		{search{plain: "web", err: broken}, broken, `prepare tool "web": broken`},
	} {
		req := &model.LLMRequest{Tools: map[string]any{"known": plain("known")}}
		err := tool.Process(call(t, nil), req, tt.tool)
		if err == nil || !strings.HasPrefix(err.Error(), tt.text) || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("got %v, want %s", err, tt.text)
		}
	}
}

// What a config holds may belong to an agent that serves several runs.
func TestPackLeavesSharedSlicesAlone(t *testing.T) {
	decls := make([]*genai.FunctionDeclaration, 1, 8)
	decls[0] = &genai.FunctionDeclaration{Name: "own"}
	tools := make([]*genai.Tool, 1, 8)
	tools[0] = &genai.Tool{FunctionDeclarations: decls}
	for range 2 {
		req := &model.LLMRequest{Config: &genai.GenerateContentConfig{Tools: tools}}
		if err := errors.Join(tool.Pack(req, &manual{plain: "one"}), tool.Pack(req, &manual{plain: "two"})); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"own", "one", "two"}, names(req)); diff != "" {
			t.Error(diff)
		}
	}
	if len(tools[0].FunctionDeclarations) != 1 || decls[:2][1] != nil || tools[:2][1] != nil {
		t.Error("Pack wrote into slices that it was given")
	}
}

// A panic is an error to the model, without a stack trace.
func TestCallTurnsAPanicIntoAnError(t *testing.T) {
	_, err := tool.Call(call(t, nil), &manual{plain: "bad", run: func(tool.Context, any) (map[string]any, error) { panic("no such luck") }}, nil)
	if err == nil || err.Error() != `tool "bad": panic: no such luck` {
		t.Errorf("got %v", err)
	}
	if p, ok := errors.AsType[*agent.PanicError](err); !ok || !strings.Contains(string(p.Stack), "tool_test.go") {
		t.Error("where it happened is kept beside the text")
	}
	_, err = tool.Call(call(t, nil), &manual{plain: "good", run: func(_ tool.Context, args any) (map[string]any, error) {
		if m, ok := args.(map[string]any); !ok || m == nil {
			t.Errorf("no arguments are an empty map, got %#v", args)
		}
		return nil, nil
	}}, nil)
	if err != nil {
		t.Error(err)
	}
}

// set is a toolset of given tools.
type set struct {
	tools []tool.Tool
	err   error
}

func (set) Name() string                                       { return "set" }
func (s set) Tools(agent.ReadonlyContext) ([]tool.Tool, error) { return s.tools, s.err }

func TestFilterToolsetKeepsWhatPasses(t *testing.T) {
	all := []tool.Tool{plain("a"), plain("b"), plain("c")}
	for _, p := range []tool.Predicate{tool.StringPredicate([]string{"c", "a"}), tool.AllowedToolsPredicate([]string{"a", "c", "x"})} {
		ts := tool.FilterToolset(set{tools: all}, p)
		got, err := ts.Tools(call(t, nil))
		if err != nil || ts.Name() != "set" {
			t.Error(ts.Name(), err)
		}
		if diff := cmp.Diff([]tool.Tool{plain("a"), plain("c")}, got); diff != "" {
			t.Error(diff)
		}
	}
	broken := errors.New("broken")
	if _, err := tool.FilterToolset(set{err: broken}, tool.StringPredicate(nil)).Tools(call(t, nil)); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a filter without a predicate is a mistake in the program")
		}
	}()
	tool.FilterToolset(set{}, nil)
}
