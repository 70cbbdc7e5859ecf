// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// ledger is a service that agents pay: it knows payments by the ID of their call, and
// complains about one that is made twice.
type ledger struct {
	mu     sync.Mutex
	tb     testing.TB
	paid   map[string]string          // by call ID
	calls  map[session.Address]string // where which calls are made
	looked int                        // how often it was asked what became of one
	retry  bool                       // loops may have one made again
}

// RoundTrip answers POST with what the payment came to, and GET with what it had come
// to, or 404.
func (l *ledger) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: req}
	answer := ""
	if req.Method == http.MethodPost {
		key := req.Header.Get("Idempotency-Key")
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		if _, twice := l.paid[key]; twice && !l.retry || key == "" {
			l.tb.Errorf("paid twice: %s", key)
		}
		h := fnv.New64a()
		_, _ = h.Write(body)
		answer = fmt.Sprintf("paid %05d", h.Sum64()%100000)
		if l.paid == nil {
			l.paid = make(map[string]string)
		}
		l.paid[key] = answer
	} else {
		l.looked++
		var ok bool
		if answer, ok = l.paid[strings.TrimPrefix(req.URL.Path, "/payments/")]; !ok {
			resp.StatusCode = http.StatusNotFound
		}
	}
	resp.Body = io.NopCloser(strings.NewReader(answer))
	return resp, nil
}

// pays is an agent whose work must not be done twice, and that can find out whether it
// was done.
func (f *forest) pays(p place) agent.Agent {
	f.tb = f.TB
	name, client := f.name("pay"), &http.Client{Transport: &f.ledger}
	look, err := taskagent.NewHTTPReconcile(taskagent.HTTPConfig{URL: "http://bank/payments/{{call_id}}", Client: client})
	if err != nil {
		f.Fatal(err)
	}
	knows := func(ctx agent.Context) (*genai.Content, error) {
		f.ledger.mu.Lock()
		defer f.ledger.mu.Unlock()
		if f.calls == nil {
			f.calls = make(map[session.Address]string)
		}
		f.calls[drive.At(ctx).Address()] = drive.At(ctx).CallID()
		return nil, nil
	}
	return f.must(taskagent.NewHTTP(taskagent.HTTPConfig{
		Config: taskagent.Config{
			Name: name, OutputKey: p.keys + "k1", Effect: agent.AtMostOnce, Reconcile: look,
			BeforeAgentCallbacks: []agent.BeforeAgentCallback{knows},
		},
		Method: http.MethodPost, URL: "http://bank/payments", Client: client,
		Body: "{{" + p.keys + "k0}} {{" + p.keys + "text}} {{" + p.keys + "score}}",
	}))
}

// atCrash makes l what the ledger of before was when a process died and left that log:
// of payments that were under way nobody knows.
func (l *ledger) atCrash(before *ledger, log []*session.Event, dice *rand.Rand) {
	made := maps.Clone(before.paid)
	last := make(map[string]*session.Event) // by call ID
	for _, ev := range log {
		if !strings.HasPrefix(ev.Address.Agent(), "pay") {
			continue
		}
		ends := ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished
		if id := before.calls[ev.Address]; !ends || last[id] == nil {
			last[id] = ev
		}
	}
	for _, id := range slices.Sorted(maps.Keys(made)) {
		ev := last[id]
		if ev == nil { // not yet
			delete(made, id)
			continue
		}
		var found mark.Reconciled
		known := ev.Mark != nil && ev.Mark.Kind == mark.KindReconciled && ev.Mark.Decode(&found) == nil
		switch {
		case ev.Mark == nil || known && found.Outcome == mark.ReconciledHappened:
		case known || dice.IntN(2) == 0:
			delete(made, id)
		}
	}
	l.paid, l.calls = made, maps.Clone(before.calls)
}
