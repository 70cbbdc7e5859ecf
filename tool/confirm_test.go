// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// wrap returns the one tool of a toolset with confirmation, as a request has it.
func wrap(t *testing.T, f tool.Tool, always bool, p tool.ConfirmationProvider) tool.Function {
	t.Helper()
	got, err := tool.WithConfirmation(set{tools: []tool.Tool{f}}, always, p).Tools(call(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	req := &model.LLMRequest{}
	if err := tool.Process(call(t, nil), req, got[0]); err != nil {
		t.Fatal(err)
	}
	w, ok := req.Tools[f.Name()].(tool.Function)
	if !ok {
		t.Fatalf("the request has a %T", req.Tools[f.Name()])
	}
	return w
}

// LOOP 32: a person is asked before a call.
func TestWithConfirmationAsksAPerson(t *testing.T) {
	byName := func(name string, args any) bool {
		m, _ := args.(map[string]any)
		return name == "delete" && m["all"] == true
	}
	yes, no := &toolconfirmation.ToolConfirmation{Confirmed: true}, &toolconfirmation.ToolConfirmation{}
	for _, tt := range []struct {
		name     string
		always   bool
		provider tool.ConfirmationProvider
		args     map[string]any
		answer   *toolconfirmation.ToolConfirmation
		want     error
	}{
		{"nobody is asked", false, nil, nil, nil, nil},
		{"asked", true, nil, nil, nil, tool.ErrConfirmationRequired},
		{"approved", true, nil, nil, yes, nil},
		{"rejected", true, nil, nil, no, tool.ErrConfirmationRejected},
		{"the provider says so", false, byName, map[string]any{"all": true}, nil, tool.ErrConfirmationRequired},
		{"the provider has the last word", true, byName, nil, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := call(t, tt.answer)
			res, err := tool.Call(ctx, wrap(t, &manual{plain: "delete"}, tt.always, tt.provider), tt.args)
			if !errors.Is(err, tt.want) || (tt.want == nil) != (res["by"] == "delete") {
				t.Fatalf("got %v, %v; want %v", res, err, tt.want)
			}
			asked, ok := ctx.Actions().RequestedToolConfirmations["call-1"]
			if want := errors.Is(tt.want, tool.ErrConfirmationRequired); ok != want || ctx.Actions().SkipSummarization != want {
				t.Errorf("asked: %v, turn ended: %v; want %v", ok, ctx.Actions().SkipSummarization, want)
			} else if ok && !strings.Contains(asked.Hint, "delete()") {
				t.Errorf("the hint names the tool, got %q", asked.Hint)
			}
		})
	}
}

// packing is a function that prepares its requests by itself.
type packing struct{ manual }

func (p *packing) ProcessRequest(_ tool.Context, req *model.LLMRequest) error {
	req.Model = "prepared"
	return tool.Pack(req, p)
}

func TestWithConfirmationTakesTheToolsPlace(t *testing.T) {
	f := wrap(t, &packing{manual{plain: "delete"}}, true, nil)
	if _, err := tool.Call(call(t, nil), f, nil); !errors.Is(err, tool.ErrConfirmationRequired) {
		t.Errorf("got %v", err)
	}
	ts := tool.WithConfirmation(set{tools: []tool.Tool{plain("idle")}}, true, nil)
	if got, err := ts.Tools(call(t, nil)); err != nil || got[0] != tool.Tool(plain("idle")) {
		t.Errorf("what cannot be called is left as it is, got %v, %v", got, err)
	}
}
