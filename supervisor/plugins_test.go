// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/plugin"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/supervisor"
)

// A plugin gets the message of each run before it is in the log, whether the run begins at once, waits for its turn, or is
// submitted for another process; in a new session and behind another run.
func TestPluginsGetTheMessageOfEachRun(t *testing.T) {
	store, w := session.InMemoryService(), newWorld("step")
	agents := make(map[string]int)
	guard, err := plugin.New(plugin.Config{
		Name: "guard",
		OnUserMessageCallback: func(ctx agent.InvocationContext, msg *genai.Content) (*genai.Content, error) {
			agents[ctx.Agent().Name()]++
			if ctx.Session().UserID() != "ana" || ctx.InvocationID() == "" || ctx.UserContent() != msg {
				t.Errorf("the context has the session of %q and the invocation %q", ctx.Session().UserID(), ctx.InvocationID())
			}
			switch text := msg.Parts[0].Text; text {
			case "bad":
				return nil, errors.New("not this")
			case "worse":
				panic("guard is broken")
			default:
				return genai.NewContentFromText(strings.Replace(text, "secret", "***", 1), genai.RoleUser), nil
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	sup := process(t, store, w.step(t, "step"), func(c *supervisor.Config) {
		c.MaxRuns, c.PluginConfig.Plugins = 1, []*plugin.Plugin{guard}
	})
	says := func(id, text string) supervisor.Request {
		req := request()
		req.SessionID, req.Message, req.Started.Name = id, genai.NewContentFromText(text, genai.RoleUser), "tale"
		return req
	}
	said := func(id string) string { // the last message of the session
		text := ""
		for ev := range view(t, store, id).Log().All() {
			if ev.Author == "user" && ev.Text() != "" {
				text = ev.Text()
			}
		}
		return text
	}
	for _, id := range []string{"behind", "behind submitted"} { // sessions in which something has run
		run, err := sup.Start(t.Context(), says(id, "first"))
		if err != nil {
			t.Fatal(err)
		}
		<-w.seen
		w.gate["step"] <- struct{}{}
		completed(t, run)
	}
	first, err := sup.Start(t.Context(), says("first", "the secret"))
	if err != nil {
		t.Fatal(err)
	}
	<-w.seen
	runs := []*supervisor.Run{first}
	for _, id := range []string{"queued", "behind"} {
		run, err := sup.Start(t.Context(), says(id, "the secret"))
		if err != nil {
			t.Fatal(err)
		}
		if !run.Queued() {
			t.Fatalf("the run of session %q does not wait", id)
		}
		runs = append(runs, run)
	}
	for _, id := range []string{"submitted", "behind submitted"} {
		if _, err := sup.Submit(t.Context(), says(id, "the secret")); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"first", "queued", "behind", "submitted", "behind submitted"} {
		if got := said(id); got != "the ***" {
			t.Errorf("session %q begins with %q", id, got)
		}
	}
	for text, want := range map[string]string{"bad": "not this", "worse": "guard is broken"} {
		for _, id := range []string{"refused", "behind submitted 2"} {
			_, err := sup.Start(t.Context(), says(id, text))
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `plugin "guard"`) {
				t.Errorf("start with %q: %v", text, err)
			}
			if _, err := sup.Submit(t.Context(), says(id, text)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("submit with %q: %v", text, err)
			}
			if _, err := sup.Resume(t.Context(), id, supervisor.ResumeOptions{}); !errors.Is(err, supervisor.ErrNotFound) {
				t.Errorf("a refused message leaves a run: %v", err)
			}
		}
	}
	close(w.gate["step"])
	for _, run := range runs {
		completed(t, run)
	}
	if agents["step"] == 0 || agents["tale"] == 0 || len(agents) != 2 {
		t.Errorf("the message was for %v", agents)
	}
}
