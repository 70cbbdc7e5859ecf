// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/plugin"
)

// PluginConfig has the plugins of a runner, in the order in which they are called.
type PluginConfig struct {
	Plugins []*plugin.Plugin
	// CloseTimeout is how long [Runner.Close] waits for the plugins; 0 means five seconds.
	CloseTimeout time.Duration
}

// closeTimeout is the default of PluginConfig.CloseTimeout.
const closeTimeout = 5 * time.Second

func (c PluginConfig) check() error {
	for i, p := range c.Plugins {
		if p == nil {
			return fmt.Errorf("plugin %d is nil", i+1)
		}
		if slices.ContainsFunc(c.Plugins[:i], func(o *plugin.Plugin) bool { return o.Name() == p.Name() }) {
			return fmt.Errorf("two plugins have the name %q; give each one a name of its own", p.Name())
		}
	}
	return nil
}

// Close closes the runner's plugins, the last one first. Call it when no run is under way and none will follow,
// once for runners that share plugins. It returns the errors of the plugins, and an error if they have not closed
// after PluginConfig.CloseTimeout; then it does not wait for them any longer.
func (r *Runner) Close() error {
	c := r.cfg.PluginConfig
	if len(c.Plugins) == 0 {
		return nil
	}
	done := make(chan error, 1)
	go func() {
		var errs []error
		for _, p := range slices.Backward(c.Plugins) {
			if err := closePlugin(p); err != nil {
				errs = append(errs, fmt.Errorf("close plugin %q: %w", p.Name(), err))
			}
		}
		done <- errors.Join(errs...)
	}()
	limit := cmp.Or(c.CloseTimeout, closeTimeout)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return fmt.Errorf("the plugins have not closed after %s", limit)
	}
}

// closePlugin closes a plugin. A panic is an error.
func closePlugin(p *plugin.Plugin) (err error) {
	defer agent.Recover(&err)
	return p.Close()
}
