// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/platform"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// somewhere is an invocation that a user's test has made up.
type somewhere struct {
	agent.StrictContextMock
	in session.Session
}

func (s *somewhere) Session() session.Session   { return s.in }
func (s *somewhere) Artifacts() agent.Artifacts { return nil }
func (s *somewhere) Memory() agent.Memory       { return nil }

func newSomewhere(t *testing.T) *somewhere {
	ids := platform.WithUUIDProvider(t.Context(), func() string { return "u1" })
	made, err := session.InMemoryService().Create(ids, &session.CreateRequest{
		AppName: "app", UserID: "ana", SessionID: "s1", State: map[string]any{"n": 1, "gone": "x"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &somewhere{agent.NewStrictContextMock(ids), made.Session}
}

// A tool can be tested with a context over an invocation that no runner has made.
func TestNewToolContextOverAnyInvocation(t *testing.T) {
	count, err := functiontool.New(functiontool.Config{Name: "count", Description: "Counts.", RequireConfirmation: true},
		func(ctx tool.Context, _ struct{}) (float64, error) {
			v, err := ctx.State().Get("n")
			if err != nil {
				return 0, err
			}
			n := v.(float64) + 1
			return n, errors.Join(ctx.State().Set("n", n), ctx.State().Set("gone", nil))
		})
	if err != nil {
		t.Fatal(err)
	}
	in, actions := newSomewhere(t), new(session.EventActions)
	ctx := agent.NewToolContext(in, "", actions, nil)
	if _, err := tool.Call(ctx, count.(tool.Function), map[string]any{}); !errors.Is(err, tool.ErrConfirmationRequired) {
		t.Errorf("without an answer: %v", err)
	}
	if _, ok := actions.RequestedToolConfirmations["u1"]; !ok || !actions.SkipSummarization || ctx.FunctionCallID() != "u1" {
		t.Errorf("the call %q asks for %v", ctx.FunctionCallID(), actions.RequestedToolConfirmations)
	}
	ctx = agent.NewToolContext(in, "c1", actions, &toolconfirmation.ToolConfirmation{Confirmed: true})
	if res, err := tool.Call(ctx, count.(tool.Function), map[string]any{}); err != nil || res["result"] != 2.0 {
		t.Errorf("the tool returns %v, %v", res, err)
	}
	if v, ok := actions.StateDelta["gone"]; actions.StateDelta["n"] != 2.0 || !ok || v != nil {
		t.Errorf("delta %v", actions.StateDelta)
	}
	if _, err := ctx.ReadonlyState().Get("gone"); !errors.Is(err, session.ErrStateKeyNotExist) {
		t.Errorf("the call sees what it has removed: %v", err)
	}
	if v, err := in.in.State().Get("n"); err != nil || v != 1.0 {
		t.Errorf("the session has changed without an event: %v, %v", v, err)
	}
	if id, user := ctx.SessionID(), ctx.UserID(); id != "s1" || user != "ana" || ctx.AppName() != "app" {
		t.Errorf("session %q of %q", id, user)
	}
	if _, err := ctx.SearchMemory(ctx, "x"); err == nil || !strings.Contains(err.Error(), "MemoryService") {
		t.Errorf("a search without memory: %v", err)
	}
}

// saves takes every file as its version 7.
type saves struct{ agent.Artifacts }

func (saves) Save(ctx context.Context, _ string, _ *genai.Part) (*artifact.SaveResponse, error) {
	return &artifact.SaveResponse{Version: 7}, ctx.Err()
}

type withFiles struct{ *somewhere }

func (withFiles) Artifacts() agent.Artifacts { return saves{} }

// The context of a callback records what it saves, and cannot ask a person; what NewContext changes is in no event.
func TestNewCallbackContextAndNewContext(t *testing.T) {
	actions := new(session.EventActions)
	ctx := agent.NewCallbackContext(withFiles{newSomewhere(t)}, actions)
	if _, err := ctx.Artifacts().Save(ctx, "a.txt", genai.NewPartFromText("x")); err != nil || actions.ArtifactDelta["a.txt"] != 7 {
		t.Errorf("saved %v, %v", actions.ArtifactDelta, err)
	}
	if err := ctx.RequestConfirmation("", nil); err == nil {
		t.Error("a callback has asked for a confirmation")
	}
	plain := agent.NewContext(newSomewhere(t))
	if plain.Actions() == nil || plain.FunctionCallID() != "" || plain.ToolConfirmation() != nil || plain.Artifacts() != nil {
		t.Errorf("a context of nothing: %+v", plain.Actions())
	}
}
