// SPDX-License-Identifier: Apache-2.0

package hook_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/process/hook"
)

func Example() {
	gate, err := hook.NewFunc("no_mail", func(_ context.Context, ev hook.Event) error {
		if ev.Data.Tool.Name == "send_mail" {
			return &hook.VetoError{Reason: "nobody sends mail from here"}
		}
		return nil
	}, hook.Config{})
	if err != nil {
		log.Fatal(err)
	}
	err = gate.Call(context.Background(), hook.Event{
		ID: "call-1", Type: hook.BeforeTool,
		Data: hook.Data{Agent: "writer", Tool: &hook.Tool{Name: "send_mail"}},
	})
	if veto, ok := errors.AsType[*hook.VetoError](err); ok {
		fmt.Println(veto.Reason)
	}
	// Output: nobody sends mail from here
}

// E7: a Go function stops what is to be done by an error. A veto counts even where
// errors do not.
func TestFuncs(t *testing.T) {
	var passed error
	broken, why := errors.New("broken"), &hook.VetoError{Reason: "no"}
	for _, tt := range []struct {
		returns error
		onError hook.OnError
		stops   bool
	}{
		{nil, "", false}, {broken, "", true}, {why, "", true}, {broken, hook.Continue, false}, {why, hook.Continue, true},
	} {
		h, err := hook.NewFunc("f", func(context.Context, hook.Event) error { return tt.returns },
			hook.Config{OnError: tt.onError, Failed: func(err error) { passed = err }})
		if err != nil {
			t.Fatal(err)
		}
		err = h.Call(t.Context(), told)
		if (err != nil) != tt.stops || err != nil && !errors.Is(err, tt.returns) {
			t.Errorf("%v, %q: got error %v", tt.returns, tt.onError, err)
		}
	}
	if !errors.Is(passed, broken) || !strings.Contains(passed.Error(), "before_tool of function f") {
		t.Errorf("passed over: %v", passed)
	}
	if _, err := hook.NewFunc("f", nil, hook.Config{}); err == nil {
		t.Error("no function is one")
	}
}

// Every point is told before or after something.
func TestPoints(t *testing.T) {
	all := hook.Points()
	if len(all) != 10 {
		t.Errorf("%d points", len(all))
	}
	for _, p := range all {
		if p.Before() == strings.HasPrefix(string(p), "after_") {
			t.Errorf("%s is neither, or both", p)
		}
	}
}

// An event is data. An interpreter without a script would run it.
func TestCommandThatWouldRunTheEvent(t *testing.T) {
	for _, args := range [][]string{{"sh"}, {"env", "bash", "-s"}, {"python3", "-"}} {
		if _, err := hook.NewCommand(hook.CommandConfig{Args: args}); err == nil || !strings.Contains(err.Error(), "as code") {
			t.Errorf("%q: %v", args, err)
		}
	}
	if _, err := hook.NewCommand(hook.CommandConfig{Args: []string{"sh", "-c", "cat"}}); err != nil {
		t.Error(err)
	}
}
