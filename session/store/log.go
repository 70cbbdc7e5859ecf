// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"iter"

	"github.com/refrain-dev/refrain/session"
)

// LogStarter is a [Starter] that makes a session of a log that need not fit into the memory, as when a run is imported.
// The services of this project that keep sessions in a database are LogStarters.
type LogStarter interface {
	// StartLog does what [Starter.Start] does without an owner. It takes the events one by one, and does not change them. An
	// error among them is its error, and then nothing is stored.
	StartLog(ctx context.Context, req *session.CreateRequest, evs iter.Seq2[*session.Event, error]) error
}

// StartLog makes a session that begins with a log. With a service that is not a [LogStarter], it keeps all events in memory, and
// does what [Start] does. The errors are those of [Starter.Start], and those among the events.
func StartLog(ctx context.Context, svc session.Service, req *session.CreateRequest, evs iter.Seq2[*session.Event, error]) error {
	if s, ok := svc.(LogStarter); ok {
		return s.StartLog(ctx, req, evs)
	}
	start := &session.StartRequest{CreateRequest: *req}
	for ev, err := range evs {
		if err != nil {
			return err
		}
		start.Events = append(start.Events, ev)
	}
	_, err := Start(ctx, svc, start)
	return err
}
