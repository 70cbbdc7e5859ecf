// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/tool"
)

func toJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// copyOf is a copy that shares nothing.
func copyOf(t testing.TB, list []*genai.Content) []*genai.Content {
	t.Helper()
	var own []*genai.Content
	if err := json.Unmarshal([]byte(toJSON(t, list)), &own); err != nil {
		t.Fatal(err)
	}
	return own
}

// writer is a model that says what a seed says, whatever it is asked. It notes its
// requests, as they are and as they were.
type writer struct {
	testing.TB
	rand  *rand.Rand
	asked [][]*genai.Content
	was   []string
}

func (*writer) Name() string { return "writer" }

func (w *writer) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	w.asked, w.was = append(w.asked, req.Contents), append(w.was, toJSON(w, req.Contents))
	c := &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{Text: fmt.Sprint("answer ", len(w.asked))}}}
	switch w.rand.IntN(5) {
	case 0, 1:
		c.Parts = append(c.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{
			ID: fmt.Sprint("c", len(w.asked)), Name: "look",
			Args: map[string]any{"at": "cat", "deep": map[string]any{"n": 1.0, "list": []any{"a", nil, true}}},
		}})
	case 2:
		c.Parts = append(c.Parts, &genai.Part{Text: "hm", Thought: true, ThoughtSignature: []byte("signed")})
	case 3:
		c.Parts = append(c.Parts, genai.NewPartFromBytes([]byte("png"), "image/png"))
	}
	return func(yield func(*model.LLMResponse, error) bool) { yield(&model.LLMResponse{Content: c}, nil) }
}

// unchanged fails the test if a request has changed since the model got it.
func (w *writer) unchanged(t testing.TB) {
	t.Helper()
	for i, list := range w.asked {
		if got := toJSON(t, list); got != w.was[i] {
			t.Errorf("request %d has changed:\n%s\nit was\n%s", i, got, w.was[i])
		}
	}
}

// talk runs a loop of a writer and a critic, and returns the writer's model and
// the log.
func talk(t *testing.T, seed uint64, change func(*llmagent.Config)) (w *writer, log []string) {
	t.Helper()
	w = &writer{TB: t, rand: rand.New(rand.NewPCG(seed, 1))}
	cfg := llmagent.Config{Name: "a", Model: w, Tools: []tool.Tool{tools(t)}}
	change(&cfg)
	critic := newAgent(t, llmagent.Config{Name: "b", Model: &writer{TB: t, rand: rand.New(rand.NewPCG(seed, 2))}, Tools: []tool.Tool{tools(t)}})
	steps := []agent.Agent{newAgent(t, cfg), critic}
	if seed%2 == 0 { // then the agent has the last word, and is told to go on
		steps = steps[:1]
	}
	th := newThread(t, newLoop(t, loopagent.Config{MaxIterations: longtest.N[uint](12, 40)}, steps...))
	th.cfg.MaxLLMCalls = -1
	if _, err := th.ask(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	for ev := range th.session().Events().All() {
		log = append(log, ev.Author+": "+toJSON(t, ev.Content))
	}
	return w, log
}

func tools(t testing.TB) tool.Tool {
	return function(t, "look", func(tool.Context) (map[string]any, error) {
		return map[string]any{"deep": map[string]any{"list": []any{1.0, map[string]any{}}}}, nil
	})
}

// change does something at random to a conversation, in place and not.
func change(r *rand.Rand, list []*genai.Content) []*genai.Content {
	for range r.IntN(4) {
		if len(list) == 0 {
			return append(list, genai.NewContentFromText("new", genai.RoleUser))
		}
		i, j := r.IntN(len(list)), r.IntN(len(list))
		if list[i] == nil || list[j] == nil { // slices.Delete left it in an earlier request
			continue
		}
		switch c := list[i]; r.IntN(12) {
		case 0:
			list = append(list, genai.NewContentFromText("appended", genai.RoleUser))
		case 1:
			list = slices.Delete(list, min(i, j), max(i, j))
		case 2:
			list = list[i:]
		case 3:
			list = list[:i+1]
		case 4:
			list[i] = genai.NewContentFromText("replaced", genai.RoleUser)
		case 5:
			list[i], list[j] = list[j], list[i]
		case 6:
			list = append(list, c)
		case 7:
			c.Role = "somebody"
		case 8:
			c.Parts = append(c.Parts, genai.NewPartFromText("more"))
		case 9:
			c.Parts = append(c.Parts, list[j].Parts...)
		case 10:
			c.Parts = c.Parts[:len(c.Parts)-min(1, len(c.Parts))]
		default:
			if len(c.Parts) > 0 {
				changePart(r, c.Parts[r.IntN(len(c.Parts))])
			}
		}
	}
	return list
}

func changePart(r *rand.Rand, p *genai.Part) {
	values := func(m map[string]any) {
		if deep, ok := m["deep"].(map[string]any); ok && r.IntN(2) == 0 {
			if l, ok := deep["list"].([]any); ok && len(l) > 0 && r.IntN(2) == 0 {
				l[0] = "edited"
			} else {
				delete(deep, "list")
			}
			return
		}
		m["new"] = 1.0
	}
	switch call, answer := p.FunctionCall, p.FunctionResponse; {
	case call != nil && call.Args != nil && r.IntN(2) == 0:
		values(call.Args)
	case call != nil:
		call.Name += "!"
	case answer != nil && answer.Response != nil && r.IntN(2) == 0:
		values(answer.Response)
	case answer != nil:
		p.FunctionResponse = nil
	case p.InlineData != nil:
		p.InlineData.MIMEType = "image/gif"
	case r.IntN(3) == 0:
		*p = genai.Part{FunctionCall: &genai.FunctionCall{Name: "made up"}}
	default:
		p.Text += "!"
	}
}

// Callbacks find in each request what a plain copy of the conversation would have,
// whatever they have done to earlier ones, then and since; the model gets what they
// leave there; and what they do is neither in the log nor in any other request.
func TestCallbacksChangeOneRequest(t *testing.T) {
	for seed := range longtest.N[uint64](20, 200) {
		plain, want := talk(t, seed, func(*llmagent.Config) {})
		var kept []*model.LLMRequest
		rnd := rand.New(rand.NewPCG(seed, 3))
		var expected []string
		w, log := talk(t, seed, func(cfg *llmagent.Config) {
			cfg.BeforeModelCallbacks = []llmagent.BeforeModelCallback{
				func(_ agent.CallbackContext, req *model.LLMRequest) (*model.LLMResponse, error) {
					base := plain.asked[len(kept)]
					if got, want := toJSON(t, req.Contents), toJSON(t, base); got != want {
						t.Fatalf("seed %d: callbacks get for request %d\n%s\nwant\n%s", seed, len(kept), got, want)
					}
					kept = append(kept, req)
					turn := rnd.Uint64()
					req.Contents = change(rand.New(rand.NewPCG(turn, 0)), req.Contents)
					expected = append(expected, toJSON(t, change(rand.New(rand.NewPCG(turn, 0)), copyOf(t, base))))
					return nil, nil
				},
			}
			cfg.AfterModelCallbacks = []llmagent.AfterModelCallback{
				func(agent.CallbackContext, *model.LLMResponse, error) (*model.LLMResponse, error) {
					if rnd.IntN(3) == 0 { // too late
						req := kept[rnd.IntN(len(kept))]
						req.Contents = change(rnd, req.Contents)
					}
					return nil, nil
				},
			}
		})
		if diff := cmp.Diff(expected, w.was); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		if diff := cmp.Diff(want, log); diff != "" {
			t.Fatalf("seed %d: the log: %s", seed, diff)
		}
		w.unchanged(t)
		plain.unchanged(t)
	}
}

// A model that writes into the list of its request does not change the next one.
func TestModelsListIsItsOwn(t *testing.T) {
	plain, _ := talk(t, 1, func(*llmagent.Config) {})
	w, _ := talk(t, 1, func(cfg *llmagent.Config) { cfg.Model = &scribbler{cfg.Model.(*writer)} })
	if diff := cmp.Diff(plain.was, w.was); diff != "" {
		t.Error(diff)
	}
}

type scribbler struct{ *writer }

func (s *scribbler) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	answer := s.writer.GenerateContent(ctx, req, stream)
	req.Contents[0] = genai.NewContentFromText("mine", genai.RoleUser)
	return answer
}

// What a callback answers with may be a piece of its request. It may not change the
// log afterwards.
func TestResponseIsNoPieceOfARequest(t *testing.T) {
	for _, by := range []string{"before", "after", "error"} {
		var kept *model.LLMRequest
		echo := func() (*model.LLMResponse, error) { return &model.LLMResponse{Content: kept.Contents[0]}, nil }
		cfg := llmagent.Config{Name: "a", Model: script(t, says("x"))}
		cfg.BeforeModelCallbacks = []llmagent.BeforeModelCallback{
			func(_ agent.CallbackContext, req *model.LLMRequest) (*model.LLMResponse, error) {
				if kept = req; by == "before" {
					return echo()
				}
				return nil, nil
			},
		}
		switch by {
		case "after":
			cfg.AfterModelCallbacks = []llmagent.AfterModelCallback{func(agent.CallbackContext, *model.LLMResponse, error) (*model.LLMResponse, error) { return echo() }}
		case "error":
			cfg.Model = fake(func(_ context.Context, _ *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
				yield(nil, fmt.Errorf("broken"))
			})
			fails := func(agent.CallbackContext, *model.LLMRequest, error) (*model.LLMResponse, error) {
				return echo()
			}
			cfg.OnModelErrorCallbacks = []llmagent.OnModelErrorCallback{fails}
		}
		cfg.AfterAgentCallbacks = []agent.AfterAgentCallback{func(agent.Context) (*genai.Content, error) {
			kept.Contents[0].Parts[0].Text = "edited"
			return nil, nil
		}}
		th := newThread(t, newAgent(t, cfg))
		th.must("go")
		for ev := range th.session().Events().All() {
			if text := ev.Text(); text != "go" {
				t.Errorf("%s: the log has %q", by, text)
			}
		}
	}
}

// The request of callbacks on errors is the one that callbacks before the model had, as
// they left it; without such callbacks it is a copy too.
func TestErrorCallbacksHaveTheSameRequest(t *testing.T) {
	for _, before := range []bool{true, false} {
		var had *model.LLMRequest
		cfg := llmagent.Config{Name: "a", Model: fake(func(_ context.Context, req *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
			req.Contents, req.Config.Temperature = nil, new(float32(2)) // as ADK's models set things
			yield(nil, fmt.Errorf("broken"))
		})}
		if before {
			cfg.BeforeModelCallbacks = []llmagent.BeforeModelCallback{func(_ agent.CallbackContext, req *model.LLMRequest) (*model.LLMResponse, error) {
				had = req
				req.Contents[0].Parts[0].Text += " there"
				return nil, nil
			}}
		}
		cfg.OnModelErrorCallbacks = []llmagent.OnModelErrorCallback{func(_ agent.CallbackContext, req *model.LLMRequest, _ error) (*model.LLMResponse, error) {
			want := "go"
			if before {
				want = "go there"
			}
			if got := words(req.Contents[0]); got != want || before && req != had {
				t.Errorf("before %t: got %q, the same request: %t", before, got, req == had)
			}
			if req.Config.Temperature != nil {
				t.Errorf("before %t: the request has what the model has set", before)
			}
			req.Contents[0].Parts[0].Text = "edited"
			return response("sorry"), nil
		}}
		th := newThread(t, newAgent(t, cfg))
		th.must("go")
		if got := th.session().Events().At(0).Text(); got != "go" {
			t.Errorf("before %t: the log has %q", before, got)
		}
	}
}

// Whatever field of a content a callback changes, the model gets it so, and the next
// request has it as it was.
func TestEachFieldOfAContent(t *testing.T) {
	full := new(genai.Part)
	populate(reflect.ValueOf(full).Elem())
	full.FunctionResponse.ID = "1"
	for name, p := range map[string]*genai.Part{
		"full": full, "text": {Text: "hello"}, "signed": {Text: "hello", ThoughtSignature: []byte("me")},
		"call":   {FunctionCall: &genai.FunctionCall{ID: "1", Name: "look", Args: map[string]any{"a": "b", "deep": map[string]any{"n": 1.0}, "list": []any{1.0}}}},
		"answer": {FunctionResponse: &genai.FunctionResponse{ID: "1", Name: "look", Response: map[string]any{"a": "b"}}},
		"both":   {FunctionCall: full.FunctionCall, FunctionResponse: &genai.FunctionResponse{ID: "1"}},
	} {
		said := event(genai.RoleModel, p)
		said.Author = "a"
		call := event(genai.RoleModel, &genai.Part{FunctionCall: &genai.FunctionCall{ID: "1", Name: "look"}})
		call.Author = "a"
		// Edits of one content, each by its number.
		all := edits(&genai.Content{Role: "model", Parts: []*genai.Part{p}}, -1)
		n := 0
		var bases, got []string
		m := fake(func(_ context.Context, req *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
			got = append(got, toJSON(t, req.Contents[2]))
			yield(response("x"), nil)
		})
		a := newAgent(t, llmagent.Config{Name: "a", Model: m, BeforeModelCallbacks: []llmagent.BeforeModelCallback{
			func(_ agent.CallbackContext, req *model.LLMRequest) (*model.LLMResponse, error) {
				bases = append(bases, toJSON(t, req.Contents[2]))
				edits(req.Contents[2], n)
				n++
				return nil, nil
			},
		}})
		th := newThread(t, sequence(t, custom(t, "b", call, said), newLoop(t, loopagent.Config{MaxIterations: uint(all)}, a)))
		th.cfg.MaxLLMCalls = -1
		th.must("go")
		if n != all || all < 10 {
			t.Fatalf("%s: %d edits of %d", name, n, all)
		}
		for i := range bases {
			if bases[i] != bases[0] {
				t.Errorf("%s: edit %d is in the next request: %s", name, i-1, bases[i])
				break
			}
			if got[i] == bases[0] {
				t.Errorf("%s: the model does not get edit %d", name, i)
			}
		}
	}
}

// populate gives each field below v a value.
func populate(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		populate(v.Elem())
	case reflect.Struct:
		for _, field := range v.Fields() {
			populate(field)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		populate(v.Index(0))
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]any{"key": "value", "deep": map[string]any{"key": []any{"value"}}}))
	default:
		edit(v)
	}
}

// edit changes a value that has nothing below it.
func edit(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Float64:
		v.SetFloat(v.Float() + 1)
	case reflect.Uint8:
		v.SetUint(v.Uint() + 1)
	case reflect.Interface:
		v.Set(reflect.ValueOf("edited"))
	default:
		v.SetInt(v.Int() + 1e9) // a duration is written in seconds
	}
}

// edits counts the ways to change one thing in a content, and changes the n-th.
func edits(c *genai.Content, n int) (all int) {
	var visit func(v reflect.Value, set func(reflect.Value))
	do := func(f func()) {
		if all == n {
			f()
		}
		all++
	}
	visit = func(v reflect.Value, set func(reflect.Value)) {
		fresh := func() {
			own := reflect.New(v.Type()).Elem()
			populate(own)
			set(own)
		}
		switch v.Kind() {
		case reflect.Pointer:
			if v.IsNil() {
				do(fresh)
				return
			}
			do(func() { set(reflect.Zero(v.Type())) })
			if all <= n || n < 0 {
				visit(v.Elem(), v.Elem().Set)
			}
		case reflect.Struct:
			for _, field := range v.Fields() {
				visit(field, field.Set)
			}
		case reflect.Slice:
			do(func() { set(reflect.Append(v, reflect.Zero(v.Type().Elem()))) })
			if v.Type().Elem().Kind() == reflect.Uint8 { // bytes are not edited in place
				return
			}
			for i := range v.Len() {
				visit(v.Index(i), v.Index(i).Set)
			}
		case reflect.Map:
			if v.IsNil() {
				do(fresh)
				return
			}
			do(func() { v.SetMapIndex(reflect.ValueOf("new"), reflect.ValueOf("value")) })
			keys := v.MapKeys()
			slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
			for _, key := range keys {
				do(func() { v.SetMapIndex(key, reflect.Value{}) })
				if all <= n || n < 0 {
					visit(v.MapIndex(key), func(to reflect.Value) { v.SetMapIndex(key, to) })
				}
			}
		case reflect.Interface:
			switch below := v.Elem(); below.Kind() {
			case reflect.Map, reflect.Slice:
				visit(below, set)
			default:
				do(func() { set(reflect.ValueOf("edited")) })
			}
		default:
			do(func() {
				own := reflect.New(v.Type()).Elem()
				own.Set(v)
				edit(own)
				set(own)
			})
		}
	}
	visit(reflect.ValueOf(c).Elem(), reflect.ValueOf(c).Elem().Set)
	return all
}
