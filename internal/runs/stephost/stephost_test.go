// SPDX-License-Identifier: Apache-2.0

package stephost_test

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/agenttest"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/elsewhere"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/internal/runs/stephost"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
)

// failing is a model that is too busy.
type failing struct{ calls *int }

func (failing) Name() string { return "failing" }

func (f failing) GenerateContent(context.Context, *model.LLMRequest, bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		*f.calls++
		yield(nil, &model.APIError{Provider: "acme", Status: 529, Message: "busy", Retryable: true,
			RetryAfter: time.Millisecond})
	}
}

// run runs one step, and returns its error.
func run(t *testing.T, a agent.Agent, err error) error {
	t.Helper()
	return runWith(t, a, err, nil)
}

func runWith(t *testing.T, a agent.Agent, err error, state map[string]any) error {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	made, err := session.InMemoryService().Create(t.Context(), &session.CreateRequest{AppName: "a", UserID: "u", State: state})
	if err != nil {
		t.Fatal(err)
	}
	ctx := drive.NewInvocation(t.Context(), drive.Invocation{ID: "i", Session: made.Session})
	for _, err = range drive.Run(ctx, a) {
	}
	return err
}

// D4: a value of the type file is a path inside the root of the machine on which the command runs.
func TestFilesAreInsideTheRootOfTheMachine(t *testing.T) {
	there := t.TempDir()
	if err := os.Symlink("/etc", filepath.Join(there, "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(there, "there"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	host := stephost.New(stephost.Config{Root: there})
	far := elsewhere.Queue{Name: "q", Dispatcher: &farm{host: host, tasks: make(map[string]*task)}}
	for name, want := range map[string]string{
		"out/hostname": "must exist inside the root", "../x": "must be a path inside the root",
		"new": `file "./new" must exist inside the root`, "there": "exit status 1",
	} {
		a, err := taskagent.NewCommand(taskagent.CommandConfig{
			Config: taskagent.Config{Name: "s", Elsewhere: far}, Args: []string{"test", "-s", "{{file}}"}, Root: t.TempDir(),
			Shapes: map[string]taskagent.Shape{"file": {Type: taskagent.ShapeFile}},
		})
		if err := runWith(t, a, err, map[string]any{"file": name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A step fails elsewhere as it fails here.
func TestFailures(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/late" {
			<-req.Context().Done()
			return
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(srv.Close)
	calls := 0
	host := stephost.New(stephost.Config{Root: t.TempDir(), Model: func(_ context.Context, name string) (model.LLM, error) {
		return failing{&calls}, nil
	}})
	f := &farm{host: host, tasks: make(map[string]*task)}
	far := elsewhere.Queue{Name: "q", Dispatcher: f}
	command := func(c taskagent.CommandConfig) func(elsewhere.Queue) error {
		return func(q elsewhere.Queue) error {
			clear(f.tasks)
			c.Config = taskagent.Config{Name: "s", Elsewhere: q}
			a, err := taskagent.NewCommand(c)
			return run(t, a, err)
		}
	}
	request := func(c taskagent.HTTPConfig) func(elsewhere.Queue) error {
		return func(q elsewhere.Queue) error {
			clear(f.tasks)
			c.Config = taskagent.Config{Name: "s", Elsewhere: q}
			a, err := taskagent.NewHTTP(c)
			return run(t, a, err)
		}
	}
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	for name, tt := range map[string]struct {
		do   func(elsewhere.Queue) error
		want func(error) bool
	}{
		"exit code": {command(taskagent.CommandConfig{Args: []string{"sh", "-c", "echo oh >&2; exit 4"}}), func(err error) bool {
			e, ok := errors.AsType[*taskagent.ExitError](err)
			return ok && e.Code == 4 && e.Stderr == "oh"
		}},
		"no program": {command(taskagent.CommandConfig{Args: []string{"refrain-has-no-such-program"}}), is(exec.ErrNotFound)},
		"too slow": {command(taskagent.CommandConfig{Args: []string{"sleep", "60"}, Timeout: time.Millisecond}),
			is(context.DeadlineExceeded)},
		"too long": {command(taskagent.CommandConfig{Args: []string{"echo", "hello"}, OutputLimit: 3}), func(err error) bool {
			e, ok := errors.AsType[*taskagent.LimitError](err)
			return ok && e.Stream == "stdout" && e.Limit == 3
		}},
		"outside": {command(taskagent.CommandConfig{Args: []string{"true"}, Dir: "missing"}), func(err error) bool {
			return strings.Contains(err.Error(), "missing")
		}},
		"status": {request(taskagent.HTTPConfig{URL: srv.URL}), func(err error) bool {
			e, ok := errors.AsType[*taskagent.StatusError](err)
			return ok && e.Status == http.StatusTeapot
		}},
		"late": {request(taskagent.HTTPConfig{URL: srv.URL + "/late", Timeout: time.Millisecond}),
			is(context.DeadlineExceeded)},
		"nobody": {request(taskagent.HTTPConfig{URL: "http://127.0.0.1:1/x?token=abcdefgh",
			Headers: map[string]string{"Authorization": "Bearer hunter222"}}), func(err error) bool {
			return !strings.Contains(err.Error(), "hunter222") && !strings.Contains(err.Error(), "abcdefgh")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := tt.do(elsewhere.Queue{}), tt.do(far)
			if there == nil || !tt.want(there) {
				t.Errorf("elsewhere it fails with %v", there)
			}
			if here == nil || !tt.want(here) {
				t.Errorf("here it fails with %v", here)
			}
			if here == nil || there == nil || name == "outside" {
				return
			}
			// What depends on the machine says on which it was.
			same := strings.Replace(there.Error(), `task queue "q": `, "", 1)
			if asked := name == "exit code" || name == "status"; here.Error() != same || asked != (same == there.Error()) {
				t.Errorf("here:      %v\nelsewhere: %v", here, there)
			}
		})
	}
	t.Run("model", func(t *testing.T) {
		a, err := llmagent.New(llmagent.Config{Name: "s", Model: elsewhere.NewModel(far, "acme/one", "one"),
			RequestRetry: llmagent.RequestRetry{Attempts: 3, Backoff: time.Millisecond}})
		err = run(t, a, err)
		api, ok := errors.AsType[*model.APIError](err)
		if !ok || api.Status != 529 || !api.Retryable || api.RetryAfter != time.Millisecond || calls != 3 {
			t.Errorf("%d calls, and it fails with %v", calls, err)
		}
	})
	t.Run("no dispatcher", func(t *testing.T) {
		if err := command(taskagent.CommandConfig{Args: []string{"true"}})(elsewhere.Queue{Name: "q"}); !errors.Is(err,
			elsewhere.ErrNoDispatcher) {
			t.Errorf("it fails with %v", err)
		}
	})
}

// A host does not take a task that it does not know for one that it knows.
func TestForeignTask(t *testing.T) {
	host := stephost.New(stephost.Config{})
	for _, task := range []elsewhere.Task{{Kind: "dance"}, {Kind: taskagent.KindCommand, Spec: []byte(`{}`)},
		{Kind: taskagent.KindHTTP, Spec: []byte(`[]`)}, {Kind: elsewhere.KindModel, Spec: []byte(`{}`)}} {
		if got, err := host.Do(t.Context(), &task); err == nil {
			t.Errorf("%s: %s", task.Kind, got)
		}
	}
}

// A command elsewhere keeps the rules of agents: it ends with its context, and yields nothing after.
func TestCommandIsAnAgent(t *testing.T) {
	root := t.TempDir()
	agenttest.TestAgent(t, func(t *testing.T) agent.Agent {
		a, err := taskagent.NewCommand(taskagent.CommandConfig{Config: taskagent.Config{Name: "s", OutputKey: "k",
			Elsewhere: elsewhere.Queue{Name: "q", Dispatcher: newFarm(stephost.Config{Root: root})}},
			Args: []string{"echo", filepath.Base(root)}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	})
}

// A task that cannot be read says which one, and why.
func TestUnreadableTasks(t *testing.T) {
	host := stephost.New(stephost.Config{Root: t.TempDir()})
	for kind, why := range map[string]string{
		taskagent.KindCommand: "there is no program", elsewhere.KindModel: "there is no request",
		taskagent.KindHTTP: "URL", "dance": `"dance"`,
	} {
		got, err := host.Do(t.Context(), &elsewhere.Task{ID: "r/s/1", Kind: kind, Spec: []byte("{}")})
		if err == nil { // it travels as the failure of the step
			err = errors.New(string(got))
		}
		if !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "%!") {
			t.Errorf("%s: %v, wanted something about %q", kind, err, why)
		}
	}
}

// hinted is a model that notes what its requests ask of the provider's cache.
type hinted struct{ got *model.CacheHint }

func (*hinted) Name() string { return "m" }

func (m *hinted) GenerateContent(ctx context.Context, _ *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	m.got = model.CacheHintOf(ctx)
	return func(yield func(*model.LLMResponse, error) bool) {
		yield(&model.LLMResponse{Content: genai.NewContentFromText("done", genai.RoleModel)}, nil)
	}
}

// A model that is asked on another machine keeps the prompts there as one that is asked here.
func TestCacheHintTravels(t *testing.T) {
	m := new(hinted)
	f := newFarm(stephost.Config{Model: func(context.Context, string) (model.LLM, error) { return m, nil }})
	far := elsewhere.NewModel(elsewhere.Queue{Name: "q", Dispatcher: f}, "openai/m", "m")
	a, err := llmagent.New(llmagent.Config{Name: "a", Model: far, PromptCache: "24h"})
	if err := run(t, a, err); err != nil {
		t.Fatal(err)
	}
	if m.got == nil || m.got.Key == "" || m.got.Retention != "24h" {
		t.Errorf("the hint there is %+v", m.got)
	}
}
