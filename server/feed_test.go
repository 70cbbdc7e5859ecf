// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/runlog"
)

// However many watch a run, what they are told is made once for a change, and once for all changes of
// a moment.
func TestAChangeIsComputedOnce(t *testing.T) {
	f := &feed{changed: make(chan struct{}), folds: folds{whole: new(runlog.Wholes)}}
	made := 0
	all := func(old time.Duration) {
		var wait sync.WaitGroup
		for range 200 {
			wait.Go(func() {
				got, err := f.made(shownKey{"view", "en"}, old, func() any { made++; return made })
				if err != nil || len(got.text) == 0 {
					t.Error(err)
				}
			})
		}
		wait.Wait()
	}
	change := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.tell()
	}
	for i, step := range []struct {
		old  time.Duration
		want int
	}{{0, 1}, {0, 2}, {time.Hour, 2}, {time.Hour, 2}, {0, 3}} {
		if i > 0 {
			change()
		}
		if all(step.old); made != step.want {
			t.Errorf("after %d changes it was made %d times, want %d", i, made, step.want)
		}
	}
}
