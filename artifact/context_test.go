// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/artifact/disk"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// services are the artifact services of this project.
var services = map[string]func(t *testing.T) artifact.Service{
	"memory": func(*testing.T) artifact.Service { return artifact.InMemoryService() },
	"disk": func(t *testing.T) artifact.Service {
		s, err := disk.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	},
}

// heard notes what a model is told.
type heard struct {
	model.LLM
	system []string
}

func (h *heard) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	h.system = append(h.system, req.Config.SystemInstruction.Parts[0].Text)
	return h.LLM.GenerateContent(ctx, req, stream)
}

// E6, E7, D9: what a tool saves, tools and callbacks can list and load, in this
// session and, for a user's files, in others; and the event says what was saved.
func TestToolsKeepFiles(t *testing.T) {
	for name, open := range services {
		t.Run(name, func(t *testing.T) {
			files := open(t)
			keep := function(t, "keep", func(ctx tool.Context) (string, error) {
				for file, texts := range map[string][]string{"notes.md": {"one", "two"}, "user:style.md": {"dry"}} {
					for _, text := range texts {
						if _, err := ctx.Artifacts().Save(ctx, file, genai.NewPartFromText(text)); err != nil {
							return "", err
						}
					}
				}
				if _, err := ctx.Artifacts().Save(ctx, "../notes.md", genai.NewPartFromText("x")); !errors.Is(err, artifact.ErrInvalid) {
					t.Errorf("Save to another folder: %v", err)
				}
				return "kept", nil
			})
			read := function(t, "read", func(ctx tool.Context) (string, error) {
				list, err := ctx.Artifacts().List(ctx)
				if err != nil {
					return "", err
				}
				last, err := ctx.Artifacts().Load(ctx, "notes.md")
				if err != nil {
					return "", err
				}
				first, err := ctx.Artifacts().LoadVersion(ctx, "notes.md", 1)
				if err != nil {
					return "", err
				}
				if _, err := ctx.Artifacts().Load(ctx, "none.md"); !errors.Is(err, artifact.ErrNotFound) {
					t.Errorf("Load of what is not there: %v", err)
				}
				return strings.Join(append(list.FileNames, last.Part.Text, first.Part.Text), " "), nil
			})
			var seen string
			llm := script(t, scripted.Answer{Calls: []scripted.Call{{Name: "keep"}}}, scripted.Answer{Calls: []scripted.Call{{Name: "read"}}},
				scripted.Answer{Text: "Done."})
			a, err := llmagent.New(llmagent.Config{
				Name: "clerk", Model: llm, Tools: []tool.Tool{keep, read},
				AfterAgentCallbacks: []agent.AfterAgentCallback{func(ctx agent.CallbackContext) (*genai.Content, error) {
					got, err := ctx.Artifacts().Load(ctx, "user:style.md")
					if err == nil {
						seen = got.Part.Text
					}
					return nil, err
				}},
			})
			if err != nil {
				t.Fatal(err)
			}
			evs := run(t, a, files, "s1")
			if diff := cmp.Diff(map[string]int64{"notes.md": 2, "user:style.md": 1}, evs[1].Actions.ArtifactDelta); diff != "" {
				t.Errorf("what the event says was saved (-want +got):\n%s", diff)
			}
			if got := evs[3].Content.Parts[0].FunctionResponse.Response["result"]; got != "notes.md user:style.md two one" {
				t.Errorf("the second tool read %v", got)
			}
			if seen != "dry" {
				t.Errorf("the callback read %q", seen)
			}
			list, err := files.List(t.Context(), &artifact.ListRequest{AppName: "app", UserID: "ana", SessionID: "s2"})
			if err != nil || len(list.FileNames) != 1 || list.FileNames[0] != "user:style.md" {
				t.Errorf("another session sees %v, %v", list, err)
			}
		})
	}
}

// D3, D5, C9: a prompt can name a file, as ADK writes it and as this project
// does; the newest version counts, and a file that is not there is nothing.
func TestPromptsNameFiles(t *testing.T) {
	for name, open := range services {
		t.Run(name, func(t *testing.T) {
			files := open(t)
			keep := function(t, "keep", func(ctx tool.Context) (string, error) {
				for file, part := range map[string]*genai.Part{
					"notes.md":      genai.NewPartFromText("# Notes\n{{user_input}} {draft}"),
					"user:style.md": genai.NewPartFromText("dry"),
					"data.csv":      genai.NewPartFromBytes([]byte("a,b"), "text/csv"),
				} {
					for _, p := range []*genai.Part{genai.NewPartFromText("old"), part} {
						if _, err := ctx.Artifacts().Save(ctx, file, p); err != nil {
							return "", err
						}
					}
				}
				return "kept", nil
			})
			clerk, err := llmagent.New(llmagent.Config{
				Name: "clerk", Tools: []tool.Tool{keep},
				Model: script(t, scripted.Answer{Calls: []scripted.Call{{Name: "keep"}}}, scripted.Answer{Text: "Kept."}),
			})
			if err != nil {
				t.Fatal(err)
			}
			llm := &heard{LLM: script(t, scripted.Answer{Text: "Read."})}
			reader, err := llmagent.New(llmagent.Config{
				Name: "reader", Model: llm,
				Instruction: "<{artifact.notes.md}><{{artifact.notes.md}}><{artifact.user:style.md}><{{artifact.data.csv}}>" +
					"<{{artifact.none.md}}><{artifact.none.md?}>{{#artifact.none.md}}some{{/artifact.none.md}}{{^artifact.none.md}}none{{/artifact.none.md}}",
			})
			if err != nil {
				t.Fatal(err)
			}
			both, err := sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{Name: "both", SubAgents: []agent.Agent{clerk, reader}}})
			if err != nil {
				t.Fatal(err)
			}
			run(t, both, files, "s1")
			notes := "<# Notes\n{{user_input}} {draft}>"
			if want := notes + notes + "<dry><a,b><><>none\n\n"; !strings.HasPrefix(llm.system[0], want) {
				t.Errorf("the prompt is\n%s\nwant\n%s", llm.system[0], want)
			}
		})
	}
}

// E6: a tool can search what earlier sessions said, once they were handed over.
func TestToolsSearchMemory(t *testing.T) {
	var found []string
	search := function(t, "search", func(ctx tool.Context) (string, error) {
		got, err := ctx.SearchMemory(ctx, "banana")
		if err != nil {
			return "", err
		}
		for _, m := range got.Memories {
			found = append(found, m.Author+": "+m.Content.Parts[0].Text)
		}
		return "searched", ctx.Memory().AddSessionToMemory(ctx, ctx.Session())
	})
	sessions, memories := session.InMemoryService(), memory.InMemoryService()
	for _, id := range []string{"s1", "s2"} {
		a, err := llmagent.New(llmagent.Config{
			Name: "clerk", Tools: []tool.Tool{search},
			Model: script(t, scripted.Answer{Calls: []scripted.Call{{Name: "search"}}}, scripted.Answer{Text: "Done."}),
		})
		if err != nil {
			t.Fatal(err)
		}
		r, err := runner.New(runner.Config{AppName: "app", Agent: a, SessionService: sessions, MemoryService: memories, AutoCreateSession: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range r.Run(t.Context(), "ana", id, genai.NewContentFromText("a banana in "+id, genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff([]string{"user: a banana in s1"}, found); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

func script(t *testing.T, answers ...scripted.Answer) *scripted.Model {
	t.Helper()
	m, err := scripted.New(scripted.Script{Answers: answers})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// function is a tool without arguments.
func function(t *testing.T, name string, f func(tool.Context) (string, error)) tool.Tool {
	t.Helper()
	made, err := functiontool.New(functiontool.Config{Name: name}, func(ctx tool.Context, _ struct{}) (string, error) { return f(ctx) })
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// run asks an agent once and returns what is said.
func run(t *testing.T, a agent.Agent, files artifact.Service, id string) []*session.Event {
	t.Helper()
	r, err := runner.New(runner.Config{AppName: "app", Agent: a, SessionService: session.InMemoryService(), ArtifactService: files, AutoCreateSession: true})
	if err != nil {
		t.Fatal(err)
	}
	var evs []*session.Event
	for ev, err := range r.Run(t.Context(), "ana", id, genai.NewContentFromText("Hello", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
		evs = append(evs, ev)
	}
	return evs
}
