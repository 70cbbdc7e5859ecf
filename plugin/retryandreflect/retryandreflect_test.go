// SPDX-License-Identifier: Apache-2.0

package retryandreflect_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/plugin"
	"github.com/refrain-dev/refrain/plugin/retryandreflect"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// answers runs an agent whose scripted model calls a tool for each letter of a word, in one run or in a run for
// each letter: f fails and s succeeds. It returns the answers that the model got.
func answers(t testing.TB, p *plugin.Plugin, word string, runs bool) (got []map[string]any) {
	t.Helper()
	script := scripted.Script{}
	for range word {
		if script.Answers = append(script.Answers, scripted.Answer{Calls: []scripted.Call{{Name: "look", Args: map[string]any{"n": 1}}}}); runs {
			script.Answers = append(script.Answers, scripted.Answer{Text: "done"})
		}
	}
	if script.Answers = append(script.Answers, scripted.Answer{Text: "done"}); runs {
		script.Answers = script.Answers[:2*len(word)]
	}
	m, err := scripted.New(script)
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	look, err := functiontool.New(functiontool.Config{Name: "look"}, func(agent.Context, map[string]any) (map[string]any, error) {
		if calls++; word[calls-1] == 'f' {
			return nil, errors.New("dark")
		}
		return map[string]any{"light": "bright"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := llmagent.New(llmagent.Config{Name: "a", Model: m, Tools: []tool.Tool{look}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: "app", Agent: a, SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{p}}})
	if err != nil {
		t.Fatal(err)
	}
	for calls < len(word) {
		for ev, err := range r.Run(t.Context(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range ev.Content.Parts {
				if part.FunctionResponse != nil {
					got = append(got, part.FunctionResponse.Response)
				}
			}
		}
	}
	return got
}

// told is an answer in a word: the number of the retry, or what the tool has said itself.
func told(a map[string]any) string {
	text, _ := a["reflection_guidance"].(string)
	switch {
	case a["response_type"] == nil:
		return fmt.Sprint(a)
	case strings.Contains(text, "no retry is left"):
		return "give up"
	}
	return fmt.Sprintf("retry %v", a["retry_count"])
}

func TestCounts(t *testing.T) {
	type opts = []retryandreflect.PluginOption
	for _, tt := range []struct {
		name string
		opts opts
		word string
		runs bool // one for each call
		want string
	}{
		{"default", nil, "fffff", false, "retry 1, retry 2, retry 3, give up, give up"},
		{"a success begins anew", opts{retryandreflect.WithMaxRetries(1)}, "fsff", false, "retry 1, map[light:bright], retry 1, give up"},
		{"none", opts{retryandreflect.WithMaxRetries(0)}, "f", false, "give up"},
		{"error", opts{retryandreflect.WithMaxRetries(1), retryandreflect.WithErrorIfRetryExceeded(true)}, "ff", false, "retry 1, map[error:dark]"},
		{"each invocation", opts{retryandreflect.WithMaxRetries(1)}, "ff", true, "retry 1, retry 1"},
		{"all invocations", opts{retryandreflect.WithMaxRetries(1), retryandreflect.WithTrackingScope(retryandreflect.Global)}, "ff", true,
			"retry 1, give up"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, a := range answers(t, retryandreflect.MustNew(tt.opts...), tt.word, tt.runs) {
				got = append(got, told(a))
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The model learns what failed, with what, and what to do.
func TestGuidance(t *testing.T) {
	got := answers(t, retryandreflect.MustNew(retryandreflect.WithMaxRetries(1)), "f", false)[0]
	text, _ := got["reflection_guidance"].(string)
	for _, want := range []string{`The tool "look" failed: dark`, `{"n":1}`, "retry 1 of 1", "Do not send the same call once more"} {
		if !strings.Contains(text, want) {
			t.Errorf("the guidance lacks %q:\n%s", want, text)
		}
	}
	delete(got, "reflection_guidance")
	delete(got, "error_type")
	if diff := cmp.Diff(map[string]any{"response_type": retryandreflect.ResponseType, "error_details": "dark", "retry_count": 1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNewRefuses(t *testing.T) {
	for want, opt := range map[string]retryandreflect.PluginOption{
		"retry and reflect: -1 retries; the number must not be negative":                   retryandreflect.WithMaxRetries(-1),
		`retry and reflect: unknown tracking scope "planet"; use "invocation" or "global"`: retryandreflect.WithTrackingScope("planet"),
	} {
		if _, err := retryandreflect.New(opt); err == nil || err.Error() != want {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("MustNew does not panic")
		}
	}()
	retryandreflect.MustNew(retryandreflect.WithMaxRetries(-1))
}

func Example() {
	p, err := retryandreflect.New(retryandreflect.WithMaxRetries(2))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Name())
	// Output: RetryAndReflectPlugin
}
