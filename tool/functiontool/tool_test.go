// SPDX-License-Identifier: Apache-2.0

package functiontool_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// The handlers of both generations of ADK are one type.
var (
	_ functiontool.Func[struct{}, struct{}] = func(tool.Context, struct{}) (struct{}, error) { return struct{}{}, nil }
	_ functiontool.Func[struct{}, struct{}] = func(agent.Context, struct{}) (struct{}, error) { return struct{}{}, nil }
)

func call(t testing.TB, answer *toolconfirmation.ToolConfirmation) tool.Context {
	ictx := drive.NewInvocation(t.Context(), drive.Invocation{
		ID: "e-1", Session: session.NewView(session.ViewConfig{AppName: "app", UserID: "ana", SessionID: "s1"}),
	})
	return agent.NewToolContext(ictx, "call-1", nil, answer)
}

// made is a tool as agents use it.
func made[A, R any](t testing.TB, cfg functiontool.Config, handler functiontool.Func[A, R]) tool.Function {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name = "plan"
	}
	got, err := functiontool.New(cfg, handler)
	if err != nil {
		t.Fatal(err)
	}
	f, ok := got.(tool.Function)
	if !ok {
		t.Fatalf("got a %T", got)
	}
	return f
}

type stop struct {
	City string    `json:"city" jsonschema:"where"`
	Days int       `json:"days,omitempty"`
	At   time.Time `json:"at,omitzero"`
}

type trip struct {
	Title  string            `json:"title"`
	Budget uint8             `json:"budget,omitempty"`
	Stops  []stop            `json:"stops,omitempty"`
	Notes  map[string]string `json:"notes,omitempty"`
	Fast   *bool             `json:"fast,omitempty"`
}

func TestDeclarationIsReadOffTheTypes(t *testing.T) {
	f := made(t, functiontool.Config{Description: "Plans."}, func(tool.Context, stop) ([]string, error) { return nil, nil })
	req := &model.LLMRequest{}
	if err := tool.Process(call(t, nil), req, f); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(req.Config.Tools[0].FunctionDeclarations)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"description":"Plans.","name":"plan",` +
		`"parametersJsonSchema":{"type":"object","properties":{"city":{"type":"string","description":"where"},` +
		`"days":{"type":"integer"},"at":{"type":"string"}},"required":["city"],"additionalProperties":false},` +
		`"responseJsonSchema":{"type":"object","properties":{"result":{"type":["null","array"],"items":{"type":"string"}}},` +
		`"required":["result"]}}]`
	var g, w any
	if err := errors.Join(json.Unmarshal(got, &g), json.Unmarshal([]byte(want), &w)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("got %s\n%s", got, diff)
	}
}

// T7: no arguments and no result are declared as none.
func TestDeclarationOfEmptyTypes(t *testing.T) {
	f := made(t, functiontool.Config{IsLongRunning: true}, func(tool.Context, struct{}) (struct{}, error) { return struct{}{}, nil })
	d := f.Declaration()
	if d.ParametersJsonSchema != nil || d.ResponseJsonSchema != nil {
		t.Errorf("got %+v", d)
	}
	if !f.IsLongRunning() || !strings.Contains(d.Description, "long-running") || f.Description() != "" {
		t.Errorf("the model is told that it takes long, got %q", d.Description)
	}
	anything := made(t, functiontool.Config{}, func(tool.Context, stop) (any, error) { return nil, nil })
	if d := anything.Declaration(); d.ParametersJsonSchema == nil || d.ResponseJsonSchema != nil {
		t.Errorf("a result of any type is declared as %v", d.ResponseJsonSchema)
	}
	d.Name = "changed"
	if f.Declaration().Name != "plan" {
		t.Error("a declaration is the caller's own")
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	ok := func(tool.Context, stop) (string, error) { return "", nil }
	for _, tt := range []struct {
		name string
		make func() (tool.Tool, error)
		want string
	}{
		{"no handler and no name", func() (tool.Tool, error) {
			return functiontool.New[stop, string](functiontool.Config{}, nil)
		}, `function tool "function": the handler is nil`},
		{"no handler", func() (tool.Tool, error) {
			return functiontool.New[stop, string](functiontool.Config{Name: "x"}, nil)
		}, `function tool "x": the handler is nil`},
		{"arguments that are no object", func() (tool.Tool, error) {
			return functiontool.New(functiontool.Config{Name: "x"}, func(tool.Context, string) (string, error) { return "", nil })
		}, `function tool "x": input must be a struct or a map or a pointer to those types, but received: string: invalid argument`},
		{"arguments without a type", func() (tool.Tool, error) {
			return functiontool.New(functiontool.Config{Name: "x"}, func(tool.Context, any) (string, error) { return "", nil })
		}, `function tool "x": input must be a struct or a map or a pointer to those types, but received: interface {}: invalid argument`},
		{"arguments that JSON does not know", func() (tool.Tool, error) {
			return functiontool.New(functiontool.Config{Name: "x"}, func(tool.Context, struct{ C chan int }) (string, error) { return "", nil })
		}, `function tool "x": infer the schema of the arguments: `},
		{"a schema that is none", func() (tool.Tool, error) {
			return functiontool.New(functiontool.Config{Name: "x", InputSchema: &jsonschema.Schema{Ref: "#/$defs/nowhere"}}, ok)
		}, `function tool "x": schema of the arguments: `},
		{"a provider of another type", func() (tool.Tool, error) {
			return functiontool.New(functiontool.Config{Name: "x", RequireConfirmationProvider: func(trip) bool { return true }}, ok)
		}, `function tool "x": RequireConfirmationProvider is a func(functiontool_test.trip) bool, not a func(functiontool_test.stop) bool`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := tt.make(); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// A model is told all that is wrong at once, by field.
func TestWrongArgumentsAreExplained(t *testing.T) {
	called := false
	f := made(t, functiontool.Config{}, func(tool.Context, trip) (string, error) { called = true; return "", nil })
	for _, tt := range []struct {
		args string
		want []string
	}{
		{`{}`, []string{`title: is missing, expected a string`}},
		{`{"title":5,"budget":"many","fast":"yes"}`, []string{
			`budget: expected an integer of at least 0 and at most 255, got the string "many"`,
			`fast: expected a boolean, got the string "yes"`,
			`title: expected a string, got the number 5`,
		}},
		{`{"title":"x","budget":300}`, []string{`budget: expected an integer of at least 0 and at most 255, got the number 300`}},
		{`{"title":"x","budget":2.5}`, []string{`budget: expected an integer of at least 0 and at most 255, got the number 2.5`}},
		{`{"Title":"x"}`, []string{`title: is missing, expected a string`, `Title: is unknown, expected only budget, fast, notes, stops, title`}},
		{`{"title":"x","stops":[{"city":"Rome"},{"days":"2"},7]}`, []string{
			`stops[1].city: is missing, expected a string`,
			`stops[1].days: expected an integer, got the string "2"`,
			`stops[2]: expected an object, got the number 7`,
		}},
		{`{"title":"x","notes":{"a":1}}`, []string{`notes.a: expected a string, got the number 1`}},

		{`{"title":"x","stops":[{"city":"Rome","at":"soon"}]}`,
			[]string{`stops: parsing time "soon" as "2006-01-02T15:04:05Z07:00": cannot parse "soon" as "2006"`}},
		{`{"title":null}`, []string{`title: expected a string, got null`}},
	} {
		t.Run(tt.args, func(t *testing.T) {
			var args map[string]any
			if err := json.Unmarshal([]byte(tt.args), &args); err != nil {
				t.Fatal(err)
			}
			_, err := f.Run(call(t, nil), args)
			wrong, ok := errors.AsType[*functiontool.ArgumentsError](err)
			if !ok || !errors.Is(err, functiontool.ErrInvalidArgument) {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(tt.want, wrong.Problems); diff != "" {
				t.Error(diff)
			}
			if want := "invalid arguments for plan: " + strings.Join(tt.want, "; "); err.Error() != want {
				t.Errorf("got %v", err)
			}
		})
	}
	if called {
		t.Error("the handler was called with wrong arguments")
	}
}

func TestRightArgumentsReachTheHandler(t *testing.T) {
	var got trip
	f := made(t, functiontool.Config{}, func(_ tool.Context, in *trip) (string, error) { got = *in; return "", nil })
	args := map[string]any{"title": "x", "budget": 7, "fast": nil, "notes": nil, "stops": []stop{{City: "Rome", Days: 2}}}
	if _, err := f.Run(call(t, nil), args); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(trip{Title: "x", Budget: 7, Stops: []stop{{City: "Rome", Days: 2}}}, got); diff != "" {
		t.Error(diff)
	}
	if _, ok := args["fast"]; !ok {
		t.Error("the arguments are the caller's")
	}
	id := made(t, functiontool.Config{}, func(_ tool.Context, in map[string]int64) (int64, error) { return in["id"], nil })
	for _, n := range []int64{7, 9007199254740993} {
		res, err := id.Run(call(t, nil), map[string]any{"id": n})
		if text, _ := json.Marshal(res["result"]); err != nil || string(text) != string(mustJSON(t, n)) {
			t.Errorf("a whole number keeps its digits: got %s, %v", text, err)
		}
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A schema of one's own: enums, patterns and defaults; what the struct does not
// have is refused.
func TestInputSchemaOfOnesOwn(t *testing.T) {
	schema := &jsonschema.Schema{Type: "object", Required: []string{"city"}, Properties: map[string]*jsonschema.Schema{
		"city": {Type: "string", Pattern: "^[A-Z]"},
		"days": {Type: "integer", Enum: []any{1, 2}, Default: json.RawMessage("2")},
	}}
	f := made(t, functiontool.Config{InputSchema: schema}, func(_ tool.Context, in stop) (int, error) { return in.Days, nil })
	for _, tt := range []struct{ args, want, err string }{
		{`{"city":"Rome"}`, `{"result":2}`, ""},
		{`{"city":"Rome","days":1}`, `{"result":1}`, ""},
		{`{"city":"Rome","days":3}`, "", "days: expected one of 1, 2, got the number 3"},
		{`{"city":"rome"}`, "", "pattern"},
		{`{"city":"Rome","dais":1}`, "", "dais: is unknown, expected only city, days"},
	} {
		var args map[string]any
		if err := json.Unmarshal([]byte(tt.args), &args); err != nil {
			t.Fatal(err)
		}
		res, err := f.Run(call(t, nil), args)
		if tt.err != "" {
			if !errors.Is(err, functiontool.ErrInvalidArgument) || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: got %v, %v; want %s", tt.args, res, err, tt.err)
			}
		} else if got := string(mustJSON(t, res)); err != nil || got != tt.want {
			t.Errorf("%s: got %s, %v", tt.args, got, err)
		}
	}
}

type tree struct {
	Name string  `json:"name"`
	Subs []*tree `json:"subs,omitempty"`
}

func TestResultsBecomeObjects(t *testing.T) {
	for _, tt := range []struct {
		out  any
		want string
	}{
		{"sunny", `{"result":"sunny"}`},
		{[]int{1, 2}, `{"result":[1,2]}`},
		{map[string]int{"a": 1}, `{"a":1}`},
		{stop{City: "Rome"}, `{"city":"Rome"}`},
		{(*stop)(nil), `{}`},
		{struct{}{}, `{}`},
		{false, `{"result":false}`},
	} {
		f := made(t, functiontool.Config{}, func(tool.Context, struct{}) (any, error) { return tt.out, nil })
		res, err := f.Run(call(t, nil), nil)
		if got := string(mustJSON(t, res)); err != nil || got != tt.want {
			t.Errorf("got %s, %v; want %s", got, err, tt.want)
		}
	}
	f := made(t, functiontool.Config{}, func(tool.Context, struct{}) (tree, error) {
		return tree{Name: "a", Subs: []*tree{{Name: "b"}}}, nil
	})
	if res, err := f.Run(call(t, nil), nil); err != nil || string(mustJSON(t, res)) != `{"name":"a","subs":[{"name":"b"}]}` {
		t.Errorf("a result that no schema describes is one: got %v, %v", res, err)
	}
	later := made(t, functiontool.Config{IsLongRunning: true}, func(tool.Context, struct{}) (map[string]any, error) { return nil, nil })
	if res, err := later.Run(call(t, nil), nil); err != nil || res != nil {
		t.Errorf("a long-running tool may answer later, got %v, %v", res, err)
	}
	bad := made(t, functiontool.Config{OutputSchema: &jsonschema.Schema{Type: "string", MinLength: new(3)}},
		func(tool.Context, struct{}) (string, error) { return "no", nil })
	if _, err := bad.Run(call(t, nil), nil); err == nil || !strings.HasPrefix(err.Error(), `result of tool "plan": `) {
		t.Errorf("got %v", err)
	}
}

// A tool's panic is an error to the model without a stack trace.
func TestPanicIsAnErrorWithoutAStack(t *testing.T) {
	f := made(t, functiontool.Config{}, func(tool.Context, struct{}) (string, error) { panic("out of coffee") })
	_, err := f.Run(call(t, nil), nil)
	if err == nil || err.Error() != `tool "plan": panic: out of coffee` {
		t.Errorf("got %v", err)
	}
	broken := errors.New("broken")
	f = made(t, functiontool.Config{}, func(tool.Context, struct{}) (string, error) { return "", broken })
	if _, err := f.Run(call(t, nil), nil); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// LOOP 32
func TestConfirmationBeforeACall(t *testing.T) {
	yes, no := &toolconfirmation.ToolConfirmation{Confirmed: true}, &toolconfirmation.ToolConfirmation{}
	long := func(in stop) bool { return in.Days > 7 }
	for _, tt := range []struct {
		name   string
		cfg    functiontool.Config
		days   any
		answer *toolconfirmation.ToolConfirmation
		want   error
	}{
		{"not needed", functiontool.Config{}, 9, nil, nil},
		{"asked", functiontool.Config{RequireConfirmation: true}, 1, nil, tool.ErrConfirmationRequired},
		{"approved", functiontool.Config{RequireConfirmation: true}, 1, yes, nil},
		{"rejected", functiontool.Config{RequireConfirmation: true}, 1, no, tool.ErrConfirmationRejected},
		{"asked because of the arguments", functiontool.Config{RequireConfirmationProvider: long}, 9, nil, tool.ErrConfirmationRequired},
		{"not asked because of the arguments", functiontool.Config{RequireConfirmation: true, RequireConfirmationProvider: long}, 2, nil, nil},
		{"nobody is asked about wrong arguments", functiontool.Config{RequireConfirmation: true}, "two", nil, functiontool.ErrInvalidArgument},
	} {
		t.Run(tt.name, func(t *testing.T) {
			called := false
			f := made(t, tt.cfg, func(tool.Context, stop) (string, error) { called = true; return "", nil })
			ctx := call(t, tt.answer)
			_, err := f.Run(ctx, map[string]any{"city": "Rome", "days": tt.days})
			if !errors.Is(err, tt.want) || called != (tt.want == nil) {
				t.Errorf("got %v, called %v", err, called)
			}
			asked := len(ctx.Actions().RequestedToolConfirmations) == 1 && ctx.Actions().SkipSummarization
			if asked != errors.Is(tt.want, tool.ErrConfirmationRequired) {
				t.Errorf("asked: %v", asked)
			}
		})
	}
}

// The context is a tool's: state, actions and a question to a person.
func TestHandlerActsThroughItsContext(t *testing.T) {
	f := made(t, functiontool.Config{}, func(ctx tool.Context, _ struct{}) (string, error) {
		ctx.Actions().Escalate = true
		if err := ctx.RequestConfirmation("Sure?", 7); err != nil {
			return "", err
		}
		return ctx.FunctionCallID(), ctx.State().Set("k", "v")
	})
	ctx := call(t, nil)
	res, err := f.Run(ctx, nil)
	if err != nil || res["result"] != "call-1" {
		t.Fatal(res, err)
	}
	a := ctx.Actions()
	if !a.Escalate || a.StateDelta["k"] != "v" || a.RequestedToolConfirmations["call-1"].Payload != 7 {
		t.Errorf("got %+v", a)
	}
}

// Whatever a model sends is an answer or an ArgumentsError.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{}`, `{"title":"x","stops":[{"city":"Rome","at":"2026-01-02T15:04:05Z"}]}`, `[]`, `{"title":1e400}`,
		`{"budget":-0.0,"notes":{"":null}}`} {
		f.Add(seed)
	}
	fn := made(f, functiontool.Config{}, func(tool.Context, trip) (string, error) { return "", nil })
	f.Fuzz(func(t *testing.T, text string) {
		_, err := fn.Run(call(t, nil), json.RawMessage(text))
		if err == nil {
			return
		}
		if _, ok := errors.AsType[*functiontool.ArgumentsError](err); !ok {
			t.Errorf("%s: got %v", text, err)
		}
	})
}

func search_for(tool.Context, stop) (string, error) { return "", nil }

func generic[T any](tool.Context, stop) (T, error) { return *new(T), nil }

type client struct{}

func (*client) Search(tool.Context, stop) (string, error) { return "", nil }

// As in ADK a tool needs no name; here its function's stands in.
func TestNamelessToolHasTheNameOfItsFunction(t *testing.T) {
	for want, handler := range map[string]functiontool.Func[stop, string]{
		"search_for": search_for,
		"generic":    generic[string],
		"Search":     new(client).Search,
		"TestNamelessToolHasTheNameOfItsFunction_func1": func(tool.Context, stop) (string, error) { return "", nil },
	} {
		got, err := functiontool.New(functiontool.Config{}, handler)
		if err != nil {
			t.Fatal(err)
		}
		if got.Name() != want || got.(tool.Function).Declaration().Name != want {
			t.Errorf("got %q, want %q", got.Name(), want)
		}
	}
}
