// SPDX-License-Identifier: Apache-2.0

package mark

// State keys that the log uses for itself. Events have them in their deltas and stores
// keep them like other keys; a view's State does not show them.
const (
	// KeySuperseded holds the [Spans], as text, of the events that no longer count:
	// those of attempts that were cut off and repeated. The log keeps them, and a view's
	// Events leave them out.
	KeySuperseded = KeyPrefix + "superseded"
	// KeyNoted is in an event whose delta has the whole state of the session at that time,
	// except app: and user: keys. From there on the state can be read from the log alone.
	KeyNoted = KeyPrefix + "noted"
	// KeyRun holds the last [Run] of a session as JSON, so that a list of many sessions does not read their
	// logs. The events with marks of a run as a whole set it. The runner's own [KindRunResumed] does not,
	// because the supervisor has set it before.
	KeyRun = KeyPrefix + "run"

	// KeyPrefix is the prefix of the log's own state keys.
	KeyPrefix = "refrain:"
)
