// SPDX-License-Identifier: Apache-2.0

// Package sqlstore is the session store that the SQL databases share: the
// statements, the queue of writers, leases and watching. A package for one
// database brings its migrations and a [Dialect], and hands out the [Store].
//
//	store, err := sqlstore.New(ctx, sqlstore.Config{
//		Dialect: dialect, Reader: pool, Writer: pool, Writers: 8, Batch: 1, Wait: 30 * time.Second,
//	})
//
// What the tables promise: an event is one row, found by its session and its
// sequence number, and is never changed; state is one row for each key, and is
// what the events sum up to, since both are written in one transaction. So
// appending costs the same in a long session, and opening one reads its state
// and its last events only.
package sqlstore
