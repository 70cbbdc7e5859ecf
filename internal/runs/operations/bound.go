// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"strconv"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/definition"
)

// Bound is a limit of what the clients of a server can make it do and keep. doc/security.md has a table of [Bounds].
type Bound struct {
	// Flag is the flag of refrain serve that sets the limit.
	Flag string
	// Of says what is limited, and Full what happens at the limit.
	Of, Full string
	// Default is the limit of a server that sets none, in the unit; 0 means no limit.
	Default int64
	Unit    Unit
}

// Unit is the unit of a [Bound].
type Unit int

// The units.
const (
	Count Unit = iota
	Bytes
	Nanoseconds
)

// The bounds.
var (
	BoundOfBody  = Bound{"max-body", "size of the body of a request, or of the arguments of a tool", "413 `too_large`", 4 << 20, Bytes}
	BoundOfConns = Bound{"max-connections", "connections; one client, by its address, has at most half of them",
		"the oldest connection without a request is closed, or else the new one", 4096, Count}
	BoundOfStreams = Bound{"max-streams", "streams of events, and calls that wait for a run; one client, by its address, has at most half of them",
		"503 `busy`", 2000, Count}
	BoundOfReading = Bound{"read-timeout", "time that a client has to send the body of a request", "the connection is closed",
		int64(30 * time.Second), Nanoseconds}
	BoundOfWriting = Bound{"write-timeout", "time that a client has to read a part of a response", "the connection is closed",
		int64(10 * time.Second), Nanoseconds}
	BoundOfIdling = Bound{"idle-timeout", "time that a connection stays open without a request", "the connection is closed",
		int64(time.Minute), Nanoseconds}
	BoundOfState = Bound{"state-limit", "size of the state of a run or session, whatever its definition says",
		"the step fails; 413 `too_large` for a client that gives the state", definition.DefaultStateLimit, Bytes}
	BoundOfLog = Bound{"log-limit", "size of the log of a run of a client's definition, and of the changes of a session's state by clients",
		"the run fails, and can be retried with a higher limit; 413 `too_large` for a change of a state", 256 << 20, Bytes}
	BoundOfRuns       = Bound{"max-runs", "runs driven at once", "the others wait, in their order", 0, Count}
	BoundOfClientRuns = Bound{"max-client-runs", "runs of clients' definitions driven at once", "the others wait, and keep no state in memory", 8, Count}
	BoundOfQueue      = Bound{"max-queued", "runs of clients' definitions that wait for their turn", "429 `queue_full`", 200, Count}
	BoundOfSessions   = Bound{"max-sessions", "sessions of ADK's clients in which nothing has run", "429 `too_many_sessions`", 1000, Count}
)

// Bounds lists the bounds.
var Bounds = []*Bound{
	&BoundOfBody, &BoundOfConns, &BoundOfStreams, &BoundOfReading, &BoundOfWriting, &BoundOfIdling,
	&BoundOfState, &BoundOfLog, &BoundOfRuns, &BoundOfClientRuns, &BoundOfQueue, &BoundOfSessions,
}

// Or returns the limit that a config sets: the default for 0, and 0, which means no limit, for a negative number.
func (b *Bound) Or(limit int64) int64 {
	if limit == 0 {
		return b.Default
	}
	return max(0, limit)
}

// String returns the default as the flag accepts it.
func (b *Bound) String() string {
	switch {
	case b.Unit == Bytes:
		return strconv.FormatInt(b.Default>>20, 10) + "MiB"
	case b.Unit == Nanoseconds:
		return strings.Replace(time.Duration(b.Default).String(), "m0s", "m", 1)
	case b.Default == 0:
		return "no limit"
	}
	return strconv.FormatInt(b.Default, 10)
}
