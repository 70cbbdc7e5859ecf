// SPDX-License-Identifier: Apache-2.0

// Package sqlstore is the session store that the SQL databases share: the
// statements, the queue of writers, leases and watching. A package for one
// database adds its migrations and a [Dialect], and returns the [Store].
//
//	store, err := sqlstore.New(ctx, sqlstore.Config{
//		Dialect: dialect, Reader: pool, Writer: pool, Writers: 8, Batch: 1, Wait: 30 * time.Second,
//	})
//
// An event is one row, with the session and the sequence number as its key, and
// the row never changes. State is one row for each key. It is always the sum of
// the events' deltas, because one transaction writes both. So appending costs
// the same in a long session as in a short one, and opening a session reads only
// its state and its last events.
package sqlstore
