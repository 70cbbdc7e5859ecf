// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/tool"
)

// Callbacks that change nothing are called in ADK's order, each of a list.
func TestOrderOfCallbacks(t *testing.T) {
	var got []string
	note := func(s string) { got = append(got, s) }
	look := function(t, "look", func(tool.Context) (map[string]any, error) { note("look"); return nil, errors.New("dark") })
	cfg := llmagent.Config{
		Name: "a", Model: script(t, calls("look"), scripted.Answer{Error: &scripted.Failure{Status: 500}}), Tools: []tool.Tool{look},
		BeforeAgentCallbacks: []agent.BeforeAgentCallback{func(agent.Context) (*genai.Content, error) { note("before agent"); return nil, nil }},
		AfterAgentCallbacks:  []agent.AfterAgentCallback{func(agent.Context) (*genai.Content, error) { note("after agent"); return nil, nil }},
	}
	for i := range 2 {
		name := func(s string) string { return fmt.Sprintf("%s %d", s, i+1) }
		cfg.BeforeModelCallbacks = append(cfg.BeforeModelCallbacks, func(agent.CallbackContext, *model.LLMRequest) (*model.LLMResponse, error) {
			note(name("before model"))
			return nil, nil
		})
		cfg.AfterModelCallbacks = append(cfg.AfterModelCallbacks, func(_ agent.CallbackContext, _ *model.LLMResponse, err error) (*model.LLMResponse, error) {
			note(fmt.Sprintf("after model %d (error: %v)", i+1, err != nil))
			return nil, nil
		})
		cfg.OnModelErrorCallbacks = append(cfg.OnModelErrorCallbacks, func(agent.CallbackContext, *model.LLMRequest, error) (*model.LLMResponse, error) {
			note(name("on model error"))
			if i == 1 {
				return response("sorry"), nil
			}
			return nil, nil
		})
		cfg.BeforeToolCallbacks = append(cfg.BeforeToolCallbacks, func(agent.ToolContext, tool.Tool, map[string]any) (map[string]any, error) {
			note(name("before tool"))
			return nil, nil
		})
		cfg.OnToolErrorCallbacks = append(cfg.OnToolErrorCallbacks, func(_ agent.ToolContext, _ tool.Tool, _ map[string]any, err error) (map[string]any, error) {
			note(name("on tool error"))
			return nil, nil
		})
		cfg.AfterToolCallbacks = append(cfg.AfterToolCallbacks, func(_ agent.ToolContext, tl tool.Tool, _, _ map[string]any, err error) (map[string]any, error) {
			note(fmt.Sprintf("after tool %d %s: %v", i+1, tl.Name(), err))
			return nil, nil
		})
	}
	events := newThread(t, newAgent(t, cfg)).must("go")
	if diff := cmp.Diff([]string{"a: call look", "a: answer look map[error:dark]", "a: sorry"}, events); diff != "" {
		t.Error(diff)
	}
	want := []string{
		"before agent",
		"before model 1", "before model 2", "after model 1 (error: false)", "after model 2 (error: false)",
		"before tool 1", "before tool 2", "look", "on tool error 1", "on tool error 2", "after tool 1 look: dark", "after tool 2 look: dark",
		"before model 1", "before model 2", "on model error 1", "on model error 2",
		"after model 1 (error: false)", "after model 2 (error: false)",
		"after agent",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// As in ADK, what makes up for a model's error goes through the after callbacks
// like any other response.
func TestAfterModelSeesWhatTheErrorCallbackReturned(t *testing.T) {
	cfg := llmagent.Config{
		Name: "a", Model: script(t, scripted.Answer{Error: &scripted.Failure{Status: 400}}),
		OnModelErrorCallbacks: []llmagent.OnModelErrorCallback{
			func(agent.CallbackContext, *model.LLMRequest, error) (*model.LLMResponse, error) {
				return response("sorry"), nil
			},
		},
		AfterModelCallbacks: []llmagent.AfterModelCallback{
			func(_ agent.CallbackContext, resp *model.LLMResponse, err error) (*model.LLMResponse, error) {
				return response("very " + resp.Content.Parts[0].Text), err
			},
		},
	}
	if diff := cmp.Diff([]string{"a: very sorry"}, newThread(t, newAgent(t, cfg)).must("go")); diff != "" {
		t.Error(diff)
	}
}

// The first model callback that returns something takes the place of the rest.
func TestModelCallbacksReplace(t *testing.T) {
	instead := func(text string) (*model.LLMResponse, error) { return response(text), nil }
	never := func() (*model.LLMResponse, error) { t.Error("called after another has answered"); return nil, nil }
	broken := scripted.Answer{Error: &scripted.Failure{Status: 400}}
	for _, tt := range []struct {
		name   string
		answer scripted.Answer
		change func(*llmagent.Config)
		want   string // or the error
		calls  int
	}{
		{"before", says("x"), func(c *llmagent.Config) {
			c.BeforeModelCallbacks = []llmagent.BeforeModelCallback{
				func(agent.CallbackContext, *model.LLMRequest) (*model.LLMResponse, error) { return instead("cached") },
				func(agent.CallbackContext, *model.LLMRequest) (*model.LLMResponse, error) { return never() },
			}
		}, "cached", 0},
		{"before fails", says("x"), func(c *llmagent.Config) {
			c.BeforeModelCallbacks = []llmagent.BeforeModelCallback{
				func(agent.CallbackContext, *model.LLMRequest) (*model.LLMResponse, error) {
					return nil, errors.New("no")
				},
			}
		}, "before model callback: no", 0},
		{"after", says("x"), func(c *llmagent.Config) {
			c.AfterModelCallbacks = []llmagent.AfterModelCallback{
				func(_ agent.CallbackContext, resp *model.LLMResponse, _ error) (*model.LLMResponse, error) {
					return instead("not " + resp.Content.Parts[0].Text)
				},
				func(agent.CallbackContext, *model.LLMResponse, error) (*model.LLMResponse, error) { return never() },
			}
		}, "not x", 1},
		{"after fails", says("x"), func(c *llmagent.Config) {
			c.AfterModelCallbacks = []llmagent.AfterModelCallback{
				func(agent.CallbackContext, *model.LLMResponse, error) (*model.LLMResponse, error) {
					return nil, errors.New("no")
				},
			}
		}, "after model callback: no", 1},
		{"after an error", broken, func(c *llmagent.Config) {
			c.AfterModelCallbacks = []llmagent.AfterModelCallback{
				func(_ agent.CallbackContext, resp *model.LLMResponse, err error) (*model.LLMResponse, error) {
					if resp != nil || err == nil {
						t.Errorf("told %v, %v", resp, err)
					}
					return instead("all is well")
				},
			}
		}, "all is well", 1},
		{"on error fails", broken, func(c *llmagent.Config) {
			c.OnModelErrorCallbacks = []llmagent.OnModelErrorCallback{
				func(agent.CallbackContext, *model.LLMRequest, error) (*model.LLMResponse, error) {
					return nil, errors.New("no")
				},
			}
		}, "on model error callback: no", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := record(script(t, tt.answer))
			cfg := llmagent.Config{Name: "a", Model: rec, OutputKey: "doc"}
			tt.change(&cfg)
			th := newThread(t, newAgent(t, cfg))
			evs, err := th.ask(t.Context(), "go")
			switch {
			case err != nil:
				if !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v", err)
				}
			case len(evs) != 1 || evs[0].Text() != tt.want || th.state("doc") != tt.want:
				t.Errorf("got %q, doc %v", lines(evs), th.state("doc"))
			}
			if len(rec.requests) != tt.calls {
				t.Errorf("the model was asked %d times", len(rec.requests))
			}
		})
	}
}

// What is called for each call of the model is called behind the callbacks, unless one
// of them has answered, and can fail the agent.
func TestOnModelCalls(t *testing.T) {
	var got []string
	answers, fails := false, false
	a := newAgent(t, llmagent.Config{
		Name: "a", Model: script(t, calls("look"), says("done")), Tools: []tool.Tool{answering(t, "look", "x")},
		BeforeModelCallbacks: []llmagent.BeforeModelCallback{func(agent.CallbackContext, *model.LLMRequest) (*model.LLMResponse, error) {
			if got = append(got, "callback"); answers {
				return response("mine"), nil
			}
			return nil, nil
		}},
		OnModelCalls: []func(agent.CallbackContext) error{
			func(ctx agent.CallbackContext) error {
				got = append(got, "call by "+ctx.AgentName())
				if fails {
					return errors.New("not now")
				}
				return ctx.State().Set("called", len(got))
			},
		},
	})
	th := newThread(t, a)
	th.must("go")
	answers = true
	th.must("again")
	answers, fails = false, true
	_, err := th.ask(t.Context(), "and again")
	if err == nil || !strings.Contains(err.Error(), "before model callback: not now") {
		t.Errorf("got %v", err)
	}
	want := []string{"callback", "call by a", "callback", "call by a", "callback", "callback", "call by a"}
	if diff := cmp.Diff(want, got); diff != "" || th.state("called") != 4.0 {
		t.Errorf("%s; called is %v", diff, th.state("called"))
	}
}

// A before callback may change the request, for this one call.
func TestBeforeModelChangesTheRequest(t *testing.T) {
	rec := record(script(t, calls("look"), says("done")))
	n := 0
	a := newAgent(t, llmagent.Config{
		Name: "a", Model: rec, Tools: []tool.Tool{answering(t, "look", "x")},
		BeforeModelCallbacks: []llmagent.BeforeModelCallback{
			func(ctx agent.CallbackContext, req *model.LLMRequest) (*model.LLMResponse, error) {
				n++
				req.Contents[0] = genai.NewContentFromText(fmt.Sprintf("%s (%d)", req.Contents[0].Parts[0].Text, n), genai.RoleUser)
				req.Config.Temperature = new(float32(n))
				return nil, ctx.State().Set("asked", n)
			},
		},
	})
	th := newThread(t, a)
	th.must("go")
	if rec.heard(0)[0] != "user: go (1)" || rec.heard(1)[0] != "user: go (2)" || *rec.requests[1].Config.Temperature != 2 {
		t.Errorf("got %q, then %q", rec.heard(0), rec.heard(1))
	}
	if th.state("asked") != 2.0 {
		t.Errorf("asked is %v", th.state("asked"))
	}
}

// Tool callbacks likewise; what one changes of the arguments is not in the log.
func TestToolCallbacksReplace(t *testing.T) {
	type (
		args = map[string]any
		cb   = llmagent.Config
	)
	for _, tt := range []struct {
		name   string
		change func(*cb)
		want   string
	}{
		{"before", func(c *cb) {
			c.BeforeToolCallbacks = []llmagent.BeforeToolCallback{func(agent.ToolContext, tool.Tool, args) (args, error) { return args{"text": "cached"}, nil }}
		}, "map[text:cached]"},
		{"before fails", func(c *cb) {
			c.BeforeToolCallbacks = []llmagent.BeforeToolCallback{func(agent.ToolContext, tool.Tool, args) (args, error) { return nil, errors.New("not now") }}
		}, "map[error:not now]"},
		{"before panics", func(c *cb) {
			c.BeforeToolCallbacks = []llmagent.BeforeToolCallback{func(agent.ToolContext, tool.Tool, args) (args, error) { panic("help") }}
		}, "map[error:panic: help]"},
		{"on error", func(c *cb) {
			c.BeforeToolCallbacks = []llmagent.BeforeToolCallback{func(agent.ToolContext, tool.Tool, args) (args, error) { return nil, errors.New("not now") }}
			c.OnToolErrorCallbacks = []llmagent.OnToolErrorCallback{func(_ agent.ToolContext, _ tool.Tool, _ args, err error) (args, error) {
				return args{"later": err.Error()}, nil
			}}
		}, "map[later:not now]"},
		{"on error fails", func(c *cb) {
			c.BeforeToolCallbacks = []llmagent.BeforeToolCallback{func(agent.ToolContext, tool.Tool, args) (args, error) { return nil, errors.New("the key is 1234") }}
			c.OnToolErrorCallbacks = []llmagent.OnToolErrorCallback{func(agent.ToolContext, tool.Tool, args, error) (args, error) {
				return nil, errors.New("no access")
			}}
		}, "map[error:no access]"},
		{"after", func(c *cb) {
			c.AfterToolCallbacks = []llmagent.AfterToolCallback{func(_ agent.ToolContext, _ tool.Tool, _, result args, _ error) (args, error) {
				return args{"text": fmt.Sprint("not ", result["text"])}, nil
			}}
		}, "map[text:not x]"},
		{"after fails", func(c *cb) {
			c.AfterToolCallbacks = []llmagent.AfterToolCallback{func(agent.ToolContext, tool.Tool, args, args, error) (args, error) { return nil, errors.New("lost") }}
		}, "map[error:lost]"},
		{"arguments", func(c *cb) {
			c.BeforeToolCallbacks = []llmagent.BeforeToolCallback{func(_ agent.ToolContext, _ tool.Tool, in args) (args, error) { in["wrong"] = 1; return nil, nil }}
			c.AfterToolCallbacks = []llmagent.AfterToolCallback{func(_ agent.ToolContext, _ tool.Tool, in, _ args, _ error) (args, error) { return in, nil }}
		}, "map[wrong:1]"},
	} {
		for _, n := range []int{1, 2} { // alone, and in a goroutine
			var names []string
			for range n {
				names = append(names, "look")
			}
			cfg := llmagent.Config{Name: "a", Model: script(t, calls(names...), says("done")), Tools: []tool.Tool{answering(t, "look", "x")}}
			tt.change(&cfg)
			evs, err := newThread(t, newAgent(t, cfg)).ask(t.Context(), "go")
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range evs[1].Content.Parts {
				if got := fmt.Sprint(p.FunctionResponse.Response); got != tt.want {
					t.Errorf("%s, call %d of %d: got %s, want %s", tt.name, i+1, n, got, tt.want)
				}
			}
			if in := evs[0].Content.Parts[0].FunctionCall.Args; len(in) > 0 {
				t.Errorf("%s: the call in the log was changed: %v", tt.name, in)
			}
		}
	}
}

// A callback for errors gets those of calls for which there is no tool, too.
func TestToolErrorCallbackGetsUnknownTools(t *testing.T) {
	for _, tt := range []struct {
		answer map[string]any
		err    error
		want   string
	}{
		{map[string]any{"hint": "use look"}, nil, "map[hint:use look]"},
		{nil, errors.New("ask for less"), "map[error:ask for less]"},
		{nil, nil, `map[error:there is no tool "loook"; the tools are: look]`},
	} {
		cfg := llmagent.Config{Name: "a", Model: script(t, calls("loook"), says("done")), Tools: []tool.Tool{answering(t, "look", "x")}}
		cfg.OnToolErrorCallbacks = []llmagent.OnToolErrorCallback{func(_ agent.ToolContext, f tool.Tool, _ map[string]any, err error) (map[string]any, error) {
			if f.Name() != "loook" || f.IsLongRunning() || f.Description() == "" || !strings.Contains(err.Error(), "no tool") {
				t.Errorf("the callback got %q and %v", f.Name(), err)
			}
			return tt.answer, tt.err
		}}
		evs, err := newThread(t, newAgent(t, cfg)).ask(t.Context(), "go")
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(evs[1].Content.Parts[0].FunctionResponse.Response); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

func TestAgentCallbacksReplace(t *testing.T) {
	rec := record(script(t, says("x"), says("y")))
	th := newThread(t, newAgent(t, llmagent.Config{
		Name: "a", Model: rec,
		BeforeAgentCallbacks: []agent.BeforeAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
			if ctx.UserContent().Parts[0].Text == "hello" {
				return genai.NewContentFromText("hello yourself", genai.RoleModel), nil
			}
			return nil, nil
		}},
		AfterAgentCallbacks: []agent.AfterAgentCallback{func(agent.Context) (*genai.Content, error) {
			return genai.NewContentFromText("bye", genai.RoleModel), nil
		}},
	}))
	if diff := cmp.Diff([]string{"a: hello yourself"}, th.must("hello")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a: x", "a: bye"}, th.must("go")); diff != "" {
		t.Error(diff)
	}
	if len(rec.requests) != 1 {
		t.Errorf("the model was asked %d times", len(rec.requests))
	}
}

// An agent that was told to do no more asks no more.
func TestEndInvocation(t *testing.T) {
	end := function(t, "end", func(ctx tool.Context) (map[string]any, error) { ctx.EndInvocation(); return nil, nil })
	th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: script(t, calls("end")), Tools: []tool.Tool{end}}))
	if diff := cmp.Diff([]string{"a: call end", "a: answer end map[]"}, th.must("go")); diff != "" {
		t.Error(diff)
	}
}
