// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
	"github.com/refrain-dev/refrain/tool/loadmemorytool"
	"github.com/refrain-dev/refrain/tool/preloadmemorytool"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// Programs from ADK, and their tests, compare what tools tell models and people.
func TestTextsOfToolsAreADKs(t *testing.T) {
	slow, err := functiontool.New(functiontool.Config{Name: "slow", Description: "Waits.", IsLongRunning: true},
		func(tool.Context, struct{}) (map[string]any, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	ctx := &agent.StrictContextMock{Ctx: t.Context()}
	var req model.LLMRequest
	if err := loadmemorytool.New().(tool.RequestProcessor).ProcessRequest(ctx, &req); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ got, want string }{
		{loadmemorytool.New().Description(), "Loads the memory for the current user."},
		{preloadmemorytool.New().Description(), "Preloads relevant memory for the current user."},
		{slow.(tool.Function).Declaration().Description, "NOTE: This is a long-running operation."},
		{req.Config.SystemInstruction.Parts[0].Text, "You have memory"},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("the text is %q, want %q in it", c.got, c.want)
		}
	}
	for confirmation, want := range map[*toolconfirmation.ToolConfirmation]error{
		nil: tool.ErrConfirmationRequired, {Confirmed: false}: tool.ErrConfirmationRejected,
	} {
		in := &asked{StrictContextMock: *ctx, answer: confirmation, actions: new(session.EventActions)}
		err := tool.Confirm(in, "pay", true)
		if !errors.Is(err, want) || err.Error() != `error tool "pay" `+want.Error() {
			t.Errorf("the error is %v", err)
		}
	}
}

// asked is the context of a call, with the answer of a person.
type asked struct {
	agent.StrictContextMock
	answer  *toolconfirmation.ToolConfirmation
	actions *session.EventActions
}

func (a *asked) ToolConfirmation() *toolconfirmation.ToolConfirmation { return a.answer }
func (a *asked) RequestConfirmation(string, any) error                { return nil }
func (a *asked) Actions() *session.EventActions                       { return a.actions }
