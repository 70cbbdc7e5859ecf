// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// blocked is a model whose first answer is refused by its provider.
type blocked struct{ asked int }

func (*blocked) Name() string { return "blocked" }

func (b *blocked) GenerateContent(context.Context, *model.LLMRequest, bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		if b.asked++; b.asked == 1 {
			yield(&model.LLMResponse{ErrorCode: "SAFETY", ErrorMessage: "not that"}, nil)
			return
		}
		yield(&model.LLMResponse{Content: genai.NewContentFromText("fine", genai.RoleModel)}, nil)
	}
}

// LOOP 31: an answer of a model that was no good does not stand in the way of a retry:
// the model is asked again.
func TestRetryAsksTheModelAgain(t *testing.T) {
	llm := new(blocked)
	a, err := llmagent.New(llmagent.Config{Name: "asks", Model: llm})
	if err != nil {
		t.Fatal(err)
	}
	svc := session.InMemoryService()
	p := &process{TB: t, world: new(world), store: svc, Runner: newRunner(t, durable(sequence(t, "root", a, speaker(t, "then", "good")), svc))}
	if err := p.first(); err == nil {
		t.Fatal("the first answer is taken")
	}
	if _, err := p.more(p.id, 0); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(stored(t, svc), ", "); llm.asked != 2 || !strings.Contains(got, "asks: fine") || !strings.Contains(got, "then: good") {
		t.Errorf("asked %d times; the session says %s", llm.asked, got)
	}
	p.checkFold(nil)
}

// refusing is a service that is out of order at first.
type refusing struct{ posts int }

func (r *refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: req, Body: io.NopCloser(strings.NewReader("paid"))}
	if r.posts++; r.posts == 1 {
		resp.StatusCode = http.StatusInternalServerError
	}
	return resp, nil
}

// E5: a step that must not be done twice and has failed is not done again by a retry
// before somebody has said what became of it, each time anew.
func TestRetryOfAFailedPaymentAsks(t *testing.T) {
	bank := new(refusing)
	pay, err := taskagent.NewHTTP(taskagent.HTTPConfig{
		Config: taskagent.Config{Name: "pay", Effect: agent.AtMostOnce, OutputKey: "out", ResultKey: "result"},
		Method: http.MethodPost, URL: "http://bank/", Client: &http.Client{Transport: bank},
	})
	if err != nil {
		t.Fatal(err)
	}
	svc := session.InMemoryService()
	p := &process{TB: t, world: new(world), store: svc, Runner: newRunner(t, durable(sequence(t, "root", pay), svc))}
	if err := p.first(); err == nil {
		t.Fatal("it did not fail")
	}
	_, err = p.retried(p.id)
	waiting, ok := errors.AsType[*agent.WaitingError](err)
	if !ok || bank.posts != 1 {
		t.Fatalf("got %v after %d posts, want a question", err, bank.posts)
	}
	answer(t, svc, p.id, mark.Answer{ID: waiting.Question.ID, Value: json.RawMessage(`{"action": "retry"}`)})
	if _, err := p.retried(p.id); err != nil {
		t.Fatal(err)
	}
	if out, _ := get(t, svc).State().Get("out"); out != "paid" || bank.posts != 2 {
		t.Errorf("got %v after %d posts", out, bank.posts)
	}
}
