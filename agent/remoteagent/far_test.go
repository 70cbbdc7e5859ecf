// SPDX-License-Identifier: Apache-2.0

package remoteagent_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/refrain-dev/refrain/agent/elsewhere"
	"github.com/refrain-dev/refrain/agent/remoteagent"
)

// far has agents ask the remote one from another machine.
var far bool

// An agent that asks from another machine keeps the same rules, but for the pieces of an answer and the
// note of a task that is under way.
func TestElsewhere(t *testing.T) {
	far = true
	t.Cleanup(func() { far = false })
	for name, test := range map[string]func(*testing.T){
		"card": TestCardIsFound, "size": TestSizeLimit, "payload": TestPayload, "message": TestUserMessageIsSent,
		"headers": TestHeaders, "conversation": TestConversation, "IDs": TestMessageIDAfterAFailureIsAnother,
		"callback": TestBeforeRequestCallbackAnswers, "agent": TestAgent, "artifact": TestArtifactIsTheAnswer,
		"answer": TestMessageIsTheAnswer, "failure": TestFailureSaysWhatTheAgentSaid, "parts": TestPartsOfAnAnswer,
		"data": TestDataIsAValue, "secrets": TestErrorsHaveNoSecrets, "query": TestQueryOfTheCardIsNotInTheLog,
		"question": TestQuestionToAPerson, "sign in": TestSignedIn, "nobody signs in": TestNobodySignsIn,
		"waits": TestLoopWaitsForAPerson, "waits for a sign in": TestLoopWaitsForSomebodyToSignIn,
		"answer once": TestAnswerIsSentOnce,
	} {
		t.Run(name, test)
	}
}

// desk does tasks here, each once.
type desk struct {
	here remoteagent.Here

	mu    sync.Mutex
	tasks map[string]*done
}

type done struct {
	over   chan struct{}
	cancel context.CancelFunc
	result json.RawMessage
	err    error
}

func (d *desk) Do(ctx context.Context, t *elsewhere.Task) (json.RawMessage, error) {
	d.mu.Lock()
	got := d.tasks[t.ID]
	if got == nil {
		work, cancel := context.WithCancel(context.Background())
		got = &done{over: make(chan struct{}), cancel: cancel}
		if d.tasks == nil {
			d.tasks = make(map[string]*done)
		}
		d.tasks[t.ID] = got
		go func() {
			defer close(got.over)
			got.result, got.err = d.here.Do(work, t)
		}()
	}
	d.mu.Unlock()
	select {
	case <-got.over:
		return got.result, got.err
	case <-ctx.Done():
		if !elsewhere.Leaves(context.Cause(ctx)) {
			got.cancel()
			<-got.over
		}
		return nil, context.Cause(ctx)
	}
}

func (d *desk) Known(context.Context, *elsewhere.Task) (bool, error) { return false, nil }
