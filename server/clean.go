// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/internal/runs/retention"
)

// cleaning is the goroutine that removes old runs.
type cleaning struct {
	work sync.WaitGroup
	stop context.CancelFunc // nil before start
}

func (c *cleaning) start(cleaner *retention.Cleaner, report func(error)) {
	if c.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.work.Go(func() { cleaner.Run(ctx, report) })
}

func (c *cleaning) end() {
	if c.stop != nil {
		c.stop()
		c.work.Wait()
	}
}

// cleaner returns the cleaner of the store.
func (s *Server) cleaner() *retention.Cleaner {
	return &retention.Cleaner{Remover: s.runs.Remover(), Each: func(x *retention.Expired, err error) {
		if err == nil {
			s.cfg.Log.Info("an old run was removed", "run", x.ID, "status", x.Status, "ended", x.Ended.UTC().Format(time.RFC3339), "kept", x.Keep)
		}
	}, Rules: func() (retention.Rules, error) {
		rules := retention.Rules{Rule: s.cfg.Keep}
		list, problems := s.schedules()
		if len(problems) > 0 {
			return rules, errors.New("no run is removed until the file of schedules, which may say how long runs are kept, can be read and is valid")
		}
		rules.Schedules = list
		return rules, nil
	}}
}
