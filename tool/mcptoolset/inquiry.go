// SPDX-License-Identifier: Apache-2.0

package mcptoolset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/tool"
)

// inquiry has the questions that a server asks during one call (elicitation). A question ends the call; after the answer of
// the person the call is made again, with the answer.
//
// From the protocol 2026-07-28 on, the server says how the call continues. A server of an older protocol asks in the middle of
// the call and keeps no state, so the call is canceled, and made again from its beginning: the server asks again, and gets the
// answers in the log. A tool with the effect [agent.AtMostOnce] cannot be called twice, so its server is told that nobody
// answered.
type inquiry struct {
	tool  string
	set   *Toolset
	state callState

	// Guarded by Toolset.mu while the call is under way. These are of a call to a server of an older protocol.
	repeatable bool
	cancel     context.CancelFunc
	over       chan struct{}  // closed when the call has returned
	seen       map[string]int // questions of the call so far
	crowded    bool           // the server has asked, and it was unknown which of several calls it meant
	lost       string         // why a question was not asked
}

// callState is the part of an inquiry that is in the log until the person has answered.
type callState struct {
	// RequestState is the server's, for the call that has the answers.
	RequestState string `json:"request_state,omitempty"`
	// Open are the questions without an answer. The person is asked the first.
	Open []openQuestion `json:"open,omitempty"`
	// Answers are the answers so far, by [openQuestion.Key].
	Answers map[string]*mcp.ElicitResult `json:"answers,omitempty"`
	// Requests reports that the keys are those of the server's input requests.
	Requests bool `json:"requests,omitempty"`
}

type openQuestion struct {
	Key     string          `json:"key"`
	Message string          `json:"message"`
	Form    json.RawMessage `json:"form"`
}

// newInquiry returns the inquiry of a call, with the answer of the person if ctx has one.
func newInquiry(ctx tool.Context, t *remote) (*inquiry, error) {
	q := &inquiry{tool: t.Name(), set: t.set, repeatable: t.Effect() != agent.AtMostOnce, seen: make(map[string]int)}
	answer := tool.FormAnswer(ctx)
	if answer == nil {
		return q, nil
	}
	if err := json.Unmarshal(answer.Form.State, &q.state); err != nil {
		return nil, fmt.Errorf("tool %q: read the question that was answered: %w", t.Name(), err)
	}
	if q.next() == nil {
		return nil, fmt.Errorf("tool %q: the log has an answer, but no question of the server", t.Name())
	}
	result := &mcp.ElicitResult{Action: mark.FormDecline}
	switch {
	case answer.Confirmed:
		result.Action = mark.FormAccept
		result.Content, _ = answer.Payload.(map[string]any)
		if result.Content == nil {
			result.Content = map[string]any{}
		}
	case answer.Canceled:
		result.Action = mark.FormCancel
	}
	if q.state.Answers == nil {
		q.state.Answers = make(map[string]*mcp.ElicitResult)
	}
	q.state.Answers[q.state.Open[0].Key] = result
	q.state.Open = q.state.Open[1:]
	if !q.state.Requests {
		t.set.asks.Store(true)
	}
	return q, nil
}

// next returns the question to ask; nil if there is none.
func (q *inquiry) next() *openQuestion {
	if len(q.state.Open) == 0 {
		return nil
	}
	return &q.state.Open[0]
}

// request asks the person the next question.
func (q *inquiry) request(ctx tool.Context) error {
	state, err := json.Marshal(&q.state)
	if err != nil {
		return err
	}
	open := q.next()
	text := fmt.Sprintf("%s asks, to answer the call of %s: %s", q.set.dial, q.tool, open.Message)
	return tool.RequestForm(ctx, q.tool, text, open.Form, state)
}

// responses are the answers to the server's input requests.
func (q *inquiry) responses() mcp.InputResponseMap {
	if !q.state.Requests {
		return nil
	}
	all := make(mcp.InputResponseMap)
	for key, answer := range q.state.Answers {
		all[key] = answer
	}
	return all
}

// take notes the questions of a result that needs input.
func (q *inquiry) take(got *mcp.CallToolResult) error {
	if q.set.secrets.StrikeWhole(got.RequestState) != got.RequestState {
		return errors.New("the state that the server wants back has a secret, which the log must not have")
	}
	q.state = callState{RequestState: got.RequestState, Requests: true}
	if len(got.InputRequests) == 0 {
		return errors.New("the server asks for input and does not say for which; it may be busy")
	}
	for _, key := range slices.Sorted(maps.Keys(got.InputRequests)) {
		p, ok := got.InputRequests[key].(*mcp.ElicitParams)
		if !ok {
			q.state.Open = nil
			return fmt.Errorf("the server asks for more than a person can give: %T", got.InputRequests[key])
		}
		open, err := q.open(key, p)
		if err != nil {
			q.state.Open = nil
			return err
		}
		q.state.Open = append(q.state.Open, open)
	}
	return nil
}

// open returns the question of a server's form. It fails for a form that a person cannot fill in.
func (q *inquiry) open(key string, p *mcp.ElicitParams) (openQuestion, error) {
	open := openQuestion{Key: key, Message: q.set.secrets.StrikeWhole(p.Message), Form: json.RawMessage(`{"type":"object"}`)}
	if p.Mode != "" && p.Mode != "form" {
		return open, fmt.Errorf("the server asks a person in the mode %q, which Refrain does not offer", p.Mode)
	}
	if p.RequestedSchema != nil {
		form, err := json.Marshal(p.RequestedSchema)
		if err != nil {
			return open, err
		}
		open.Form = json.RawMessage(q.set.secrets.StrikeWhole(string(form)))
	}
	_, err := (&mark.Question{ID: key, Form: open.Form}).Fields()
	return open, err
}

// elicit answers a question of a server with an older protocol.
func (s *Toolset) elicit(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	s.asks.Store(true)
	s.mu.Lock()
	var under []*inquiry
	for q, of := range s.calls {
		if of == req.Session {
			under = append(under, q)
		}
	}
	switch {
	case len(under) == 0: // of no call, or of one that has been canceled
		s.mu.Unlock()
		return nil, errNoCall
	case slices.ContainsFunc(under, func(q *inquiry) bool { return !q.repeatable }):
		for _, q := range under {
			q.lost = "the server asked the person: " + s.secrets.StrikeWhole(req.Params.Message) + " (nobody was asked, because " +
				"the server has a protocol in which the call must be made again with the answer, and its effect is at_most_once; " +
				"declare effect: idempotent if that does no harm)"
		}
		s.mu.Unlock()
		return &mcp.ElicitResult{Action: mark.FormCancel}, nil
	case len(under) > 1:
		for _, q := range under {
			q.crowded = true
			q.cancel()
		}
		s.mu.Unlock()
		return nil, checkReturned(ctx, under)
	}
	q := under[0]
	key, err := q.key(req.Params)
	if answer := q.state.Answers[key]; answer != nil || err != nil {
		s.mu.Unlock()
		return answer, err
	}
	open, err := q.open(key, req.Params)
	if err == nil && q.next() == nil { // else the server asks again after the answer to the other question
		q.state.Open = []openQuestion{open}
		q.cancel()
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return nil, checkReturned(ctx, under)
}

var errNoCall = errors.New("the call that this question belongs to has been canceled")

// checkReturned waits for the end of calls that were canceled, so that the server gets the error after the cancellation. It always
// returns an error, because the person has not decided anything.
func checkReturned(ctx context.Context, calls []*inquiry) error {
	for _, q := range calls {
		select {
		case <-q.over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return errNoCall
}

// key identifies a question by its words and its place among the same questions of the call.
func (q *inquiry) key(p *mcp.ElicitParams) (string, error) {
	text, err := json.Marshal([]any{p.Message, p.RequestedSchema})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	words := hex.EncodeToString(sum[:8])
	q.seen[words]++
	return words + "-" + strconv.Itoa(q.seen[words]), nil
}

// listen notes that a call is under way in a session, until done is called. The context ends when the server asks.
func (s *Toolset) listen(ctx context.Context, session *mcp.ClientSession, q *inquiry) (asked context.Context, done func()) {
	asked, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	q.cancel, q.crowded, q.over = cancel, false, make(chan struct{})
	clear(q.seen)
	s.calls[q] = session
	return asked, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.calls, q)
		cancel()
		close(q.over)
	}
}

// mostCalls is how many calls of a server can be under way at the same time.
const mostCalls = 64

// enter waits for a place for a call; alone means for all places.
func (s *Toolset) enter(ctx context.Context, alone bool) (leave func(), err error) {
	want := 1
	if alone {
		want = mostCalls
		select {
		case s.alone <- struct{}{}:
			defer func() { <-s.alone }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	taken := 0
	leave = func() {
		for ; taken > 0; taken-- {
			<-s.places
		}
	}
	for ; taken < want; taken++ {
		select {
		case s.places <- struct{}{}:
		case <-ctx.Done():
			leave()
			return nil, context.Cause(ctx)
		}
	}
	return leave, nil
}
