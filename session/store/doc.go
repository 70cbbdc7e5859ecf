// SPDX-License-Identifier: Apache-2.0

// Package store says what a session.Service can do besides: append many events at once
// ([BulkAppender]), begin a session with its first events ([Starter]), tell what
// others append ([Watcher]), and list runs that are not over ([OpenLister]) or page by page
// ([RunLister]). Package lease says who drives a session.
//
// Whoever writes a store implements session.Service first; package sessiontest says
// what is asked of it. What it hands out is best a session.View.
//
//	if w, ok := service.(store.Watcher); ok {
//		for ev, err := range w.Watch(ctx, key, seen) { ... }
//	}
package store
