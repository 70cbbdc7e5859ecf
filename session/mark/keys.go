// SPDX-License-Identifier: Apache-2.0

package mark

// State keys of the log's own. Events carry them, and stores keep them as they
// keep others; a view's State does not show them.
const (
	// KeySuperseded holds the [Spans], as text, of events that no longer count:
	// of attempts that were cut off and made again. They stay in the log, and a
	// view's Events leave them out.
	KeySuperseded = KeyPrefix + "superseded"
	// KeyNoted says that the event's delta has the whole state of the session
	// as it was then, app: and user: keys apart: from there on the log alone
	// tells the state.
	KeyNoted = KeyPrefix + "noted"
	// KeyRun holds what a session says of its last run, a [Run] as JSON, so that a
	// list of many sessions need not read their logs. The marks of a run as a whole carry it. The
	// runner's own [KindRunResumed] does not: only whoever owns runs knows how one
	// stands, and a supervisor has said that it is running before it resumes it.
	KeyRun = KeyPrefix + "run"

	// KeyPrefix is the prefix of these keys.
	KeyPrefix = "refrain:"
)
