// SPDX-License-Identifier: Apache-2.0

package remoteagent_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/remoteagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// echoes answers with what it was sent.
func echoes(_ context.Context, x *a2asrv.ExecutorContext, yield yield) {
	yield(a2a.NewMessage(a2a.MessageRoleAgent, x.Message.Parts...), nil)
}

// A26, D4: the payload is filled from the state.
func TestPayload(t *testing.T) {
	state := map[string]any{"draft": `Once "upon"`, "n": 3, "analysis": map[string]any{"list": []any{1.5, "x"}}}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			r := serve(t, kind, echoes)
			for _, tt := range []struct {
				name    string
				payload any
				want    any
			}{
				{"text", "Judge: {{draft}} {draft} {{missing}}", `Judge: Once "upon" {draft} `},
				{"one placeholder is a text", "{{n}}", "3"},
				{"the seed's", map[string]any{"data": "{{draft}}"}, map[string]any{"data": `Once "upon"`}},
				{"values", map[string]any{"n": "{{ n }}", "deep": "{{analysis.list}}", "text": "n={{n}}", "const": true, "none": "{{none?}}", "list": []any{"{{n}}", nil}},
					map[string]any{"n": 3.0, "deep": []any{1.5, "x"}, "text": "n=3", "const": true, "none": "", "list": []any{3.0, nil}}},
				{"Go's own types", map[string]string{"k": "{{n}}"}, map[string]any{"k": 3.0}},
			} {
				got := newTalk(t, made(t, r, func(c *remoteagent.A2AConfig) { c.Payload = tt.payload }), state).say(t.Context(), "Hi")
				if got.err != nil {
					t.Fatalf("%s: %v", tt.name, got.err)
				}
				equal(t, tt.name, tt.want, got.state["out"])
			}
		})
	}
}

// The user's files go to the remote agent too.
func TestUserMessageIsSent(t *testing.T) {
	r := serve(t, kinds[0], echoes)
	tk := newTalk(t, made(t, r), nil)
	got := tk.send(t.Context(), &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{
		{Text: "Look:"}, {InlineData: &genai.Blob{Data: []byte("PNG"), MIMEType: "image/png"}}, {FileData: &genai.FileData{FileURI: "https://example.org/a", MIMEType: "text/plain"}},
	}})
	if got.err != nil {
		t.Fatal(got.err)
	}
	if c := got.events[len(got.events)-1].Content; len(c.Parts) != 3 || string(c.Parts[1].InlineData.Data) != "PNG" ||
		c.Parts[2].FileData.FileURI != "https://example.org/a" {
		t.Errorf("got %+v", c.Parts)
	}
	if got := tk.send(t.Context(), &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{Thought: true, Text: "x"}}}); got.err == nil ||
		!strings.Contains(got.err.Error(), "nothing to send") {
		t.Errorf("got %v", got.err)
	}
}

// D4: the endpoint is filled too, and no value chooses the server.
func TestEndpointTemplate(t *testing.T) {
	r := serve(t, kinds[0], echoes)
	var paths []string
	r.intercept(func(_ http.ResponseWriter, req *http.Request) bool {
		if req.Method == http.MethodGet {
			paths = append(paths, req.URL.RequestURI())
			req.URL.Path = a2asrv.WellKnownAgentCardPath
		}
		return false
	})
	at := func(source string) func(*remoteagent.A2AConfig) {
		return func(c *remoteagent.A2AConfig) { c.AgentCardSource = source }
	}
	state := map[string]any{"team": "a b/c", "tenant": "x&y=1", "up": ".."}
	got := newTalk(t, made(t, r, at(r.URL+"/{{team}}/agent?tenant={{tenant}}")), state).say(t.Context(), "Hi")
	if got.err != nil {
		t.Fatal(got.err)
	}
	equal(t, "paths", []string{"/a%20b%2Fc/agent/.well-known/agent-card.json?tenant=x%26y%3D1"}, paths)
	got = newTalk(t, made(t, r, at(r.URL+"/{{up}}/agent")), state).say(t.Context(), "Hi")
	if got.err == nil || !strings.Contains(got.err.Error(), "could lead elsewhere") {
		t.Errorf("got %v", got.err)
	}
}

// Headers are sent with every request, and are filled from the state.
func TestHeaders(t *testing.T) {
	for _, kind := range kinds {
		r := serve(t, kind, writes("x"))
		with := func(c *remoteagent.A2AConfig) { c.Headers = map[string]string{"Authorization": "Bearer {{token}}"} }
		if got := newTalk(t, made(t, r, with), map[string]any{"token": "abc"}).say(t.Context(), "Hi"); got.err != nil {
			t.Fatal(got.err)
		}
		for _, h := range r.headers {
			if h.Get("Authorization") != "Bearer abc" {
				t.Errorf("%s: got %q", kind.name, h.Get("Authorization"))
			}
		}
		got := newTalk(t, made(t, r, with), map[string]any{"token": "a\r\nX: y"}).say(t.Context(), "Hi")
		if got.err == nil || !strings.Contains(got.err.Error(), "line break") {
			t.Errorf("got %v", got.err)
		}
	}
}

// Later iterations go on with the conversation, unless they are to begin anew.
func TestConversation(t *testing.T) {
	for _, anew := range []bool{false, true} {
		r := serve(t, kinds[0], writes("x"))
		l := newLoop(t, loopagent.Config{
			AgentConfig:   agent.Config{Name: "l", SubAgents: []agent.Agent{made(t, r, func(c *remoteagent.A2AConfig) { c.NewContext = anew })}},
			MaxIterations: 3,
		})
		tk := newTalk(t, l, nil)
		for range 2 {
			if got := tk.say(t.Context(), "Hi"); got.err != nil {
				t.Fatal(got.err)
			}
		}
		ids, contexts := make(map[string]bool), make(map[string]bool)
		for _, m := range r.messages {
			ids[m.ID] = true
			contexts[m.ContextID] = true
		}
		want := 2 // none, and then the one
		if anew {
			want = 1
		}
		if len(ids) != 6 || len(contexts) != want {
			t.Errorf("new: %t: %d message IDs, %d contexts", anew, len(ids), len(contexts))
		}
	}
}

// LOOP 14: the answers of a remote judge about one version are independent, so the judge does not know the other ones.
func TestConversationOfAJudge(t *testing.T) {
	r := serve(t, kinds[0], writes("7"))
	l := newLoop(t, loopagent.Config{
		AgentConfig:   agent.Config{Name: "l", SubAgents: []agent.Agent{made(t, r, func(c *remoteagent.A2AConfig) { c.OutputKey = "mark" })}},
		MaxIterations: 1, Rules: loop.Plan{Score: &loop.Score{Key: "mark", Judge: &loop.Judge{Step: "far", Samples: 3}}},
	})
	if got := newTalk(t, l, nil).say(t.Context(), "Hi"); got.err != nil {
		t.Fatal(got.err)
	}
	for _, m := range r.messages {
		if m.ContextID != "" {
			t.Errorf("message %s goes on with conversation %s", m.ID, m.ContextID)
		}
	}
	if len(r.messages) != 3 {
		t.Errorf("%d messages", len(r.messages))
	}
}

// A message that was sent before has the same ID when its step is tried again.
func TestMessageIDOfATryIsTheSame(t *testing.T) {
	r := serve(t, kinds[1], writes("x"))
	var ids []string
	see := func(ctx agent.CallbackContext, req *a2a.SendMessageRequest) (*session.Event, error) {
		ids = append(ids, req.Message.ID)
		if err := ctx.State().Set("seen", len(ids)); err != nil || len(ids) == 1 {
			return nil, errors.Join(err, errors.New("not yet"))
		}
		return nil, nil
	}
	cfg := func(c *remoteagent.A2AConfig) { c.BeforeRequestCallbacks = []remoteagent.BeforeA2ARequestCallback{see} }
	got := newTalk(t, retried(t, made(t, r, cfg)), nil).say(t.Context(), "Hi")
	if got.err != nil {
		t.Fatal(got.err)
	}
	if len(ids) != 2 || ids[0] != ids[1] {
		t.Errorf("got %q", ids)
	}
	equal(t, "the callback's change", any(2.0), got.state["seen"])
}

// What has failed is a new message when it is tried again.
func TestMessageIDAfterAFailureIsAnother(t *testing.T) {
	tries := 0
	r := serve(t, kinds[0], func(ctx context.Context, x *a2asrv.ExecutorContext, yield yield) {
		if tries++; tries > 1 {
			writes("x")(ctx, x, yield)
		} else if begins(x, yield) {
			ends(x, yield, a2a.TaskStateFailed, says("not now"))
		}
	})
	if got := newTalk(t, retried(t, made(t, r)), nil).say(t.Context(), "Hi"); got.err != nil {
		t.Fatal(got.err)
	}
	if a, b := r.message(0).ID, r.message(1).ID; a == b {
		t.Errorf("both are %q", a)
	}
}

// A callback can answer in the remote agent's place.
func TestBeforeRequestCallbackAnswers(t *testing.T) {
	r := serve(t, kinds[0], writes("x"))
	got := newTalk(t, made(t, r, func(c *remoteagent.A2AConfig) {
		c.BeforeRequestCallbacks = []remoteagent.BeforeA2ARequestCallback{func(agent.CallbackContext, *a2a.SendMessageRequest) (*session.Event, error) {
			ev := &session.Event{}
			ev.Content = genai.NewContentFromText("from a cache", genai.RoleModel)
			return ev, nil
		}}
	}), nil).say(t.Context(), "Hi")
	if got.err != nil || len(r.said()) != 0 {
		t.Errorf("%v, %q", got.err, r.said())
	}
	equal(t, "words", []string{"from a cache"}, got.words())
}
