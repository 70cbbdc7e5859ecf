// SPDX-License-Identifier: Apache-2.0

// Package committest counts the commits of SQLite databases, for tests of the cost of a run.
//
//	committest.Start()
//	svc, err := sqlite.Open(ctx, path, sqlite.Config{})
//	before := committest.Commits()
package committest

import (
	"sync"
	"sync/atomic"

	driver "modernc.org/sqlite"
)

var commits atomic.Int64

// Start begins to count the write transactions of every database that this process opens from now on. Further calls do nothing.
var Start = sync.OnceFunc(func() {
	driver.RegisterConnectionHook(func(conn driver.ExecQuerierContext, _ string) error {
		conn.(driver.HookRegisterer).RegisterCommitHook(func() int32 {
			commits.Add(1)
			return 0
		})
		return nil
	})
})

// Commits returns the number of write transactions since Start.
func Commits() int64 { return commits.Load() }
