// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"iter"
	"log/slog"
	"net/http"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
)

// analysis is an agent: it reads the data of a message, and answers with data. An
// error is for whoever has sent what it cannot read.
type analysis func(in map[string]any) (map[string]any, error)

// newHandler serves both agents below base, each with its card.
func newHandler(base string) http.Handler {
	mux := http.NewServeMux()
	for path, a := range map[string]struct {
		analysis
		about string
	}{
		"/performance": {performance, "Compares a result with the one before, and names the best in reach."},
		"/code":        {code, "Gives a Go file a mark from 0 to 10, and says what is wrong with it."},
	} {
		quiet := a2asrv.WithLogger(slog.New(slog.DiscardHandler))
		mux.Handle(path+"/invoke", a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(a.analysis, quiet)))
		mux.Handle(path+a2asrv.WellKnownAgentCardPath, a2asrv.NewStaticAgentCardHandler(&a2a.AgentCard{
			Name:               "analyst" + path,
			Description:        a.about + " It stands in for an agent elsewhere, and is no model.",
			Version:            "1",
			DefaultInputModes:  []string{"application/json"},
			DefaultOutputModes: []string{"application/json"},
			Skills: []a2a.AgentSkill{{ID: path[1:], Name: path[1:], Description: a.about,
				Tags: []string{"stand-in"}}},
			SupportedInterfaces: []*a2a.AgentInterface{a2a.NewAgentInterface(base+path+"/invoke",
				a2a.TransportProtocolJSONRPC)},
		}))
	}
	return mux
}

// Execute answers a message. It implements a2asrv.AgentExecutor.
func (a analysis) Execute(_ context.Context, x *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		in := make(map[string]any)
		for _, p := range x.Message.Parts {
			if data, ok := p.Data().(map[string]any); ok {
				in = data
			}
		}
		if !yield(a2a.NewSubmittedTask(x, x.Message), nil) {
			return
		}
		out, err := a(in)
		if err != nil {
			yield(a2a.NewStatusUpdateEvent(x, a2a.TaskStateRejected,
				a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewTextPart(err.Error()))), nil)
			return
		}
		_ = yield(a2a.NewArtifactEvent(x, a2a.NewDataPart(out)), nil) &&
			yield(a2a.NewStatusUpdateEvent(x, a2a.TaskStateCompleted, nil), nil)
	}
}

// Cancel has nothing to end: an answer is there at once.
func (analysis) Cancel(_ context.Context, x *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		yield(a2a.NewStatusUpdateEvent(x, a2a.TaskStateCanceled, nil), nil)
	}
}
