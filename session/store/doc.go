// SPDX-License-Identifier: Apache-2.0

// Package store defines what a session.Service may do in addition: append many events at once
// ([BulkAppender]), begin a session with its first events ([Starter]) or with a whole log ([LogStarter]), report what others append
// ([Watcher]), and list runs that are not over ([OpenLister]). Package lease decides which process drives
// a session.
//
// A new store implements session.Service first; package sessiontest tests it. It is best if the store
// returns each session as a session.View.
//
//	if w, ok := service.(store.Watcher); ok {
//		for ev, err := range w.Watch(ctx, key, seen) { ... }
//	}
package store
