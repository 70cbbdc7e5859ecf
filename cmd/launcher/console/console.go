// SPDX-License-Identifier: Apache-2.0

// Package console talks with the root agent in the terminal: see the verb console of package command.
//
//	l := universal.NewLauncher(console.NewLauncher())
package console

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refrain-dev/refrain/cmd/launcher"
	"github.com/refrain-dev/refrain/cmd/launcher/internal/door"
	"github.com/refrain-dev/refrain/command"
)

type console struct {
	door.Flags
	streaming string
	shutdown  time.Duration
	cloud     bool
	session   string
}

// NewLauncher returns the launcher with the keyword console. Its flags are -streaming_mode (sse or none, default sse),
// -shutdown-timeout (the time that a running step has after a signal other than Ctrl-C, default 2s) and -session (the
// conversation to continue).
func NewLauncher() launcher.SubLauncher {
	c := &console{Flags: door.NewFlags("console", "talk with the root agent in the terminal")}
	c.Set.StringVar(&c.streaming, "streaming_mode", "sse", "show answers as they arrive (`sse`) or whole (none)")
	c.Set.DurationVar(&c.shutdown, "shutdown-timeout", 2*time.Second, "`time` that a running step has to end after a signal")
	c.Set.StringVar(&c.session, "session", "", "`ID` of the conversation to continue")
	c.Set.BoolVar(&c.cloud, "otel_to_cloud", false, "not available; set OTEL_EXPORTER_OTLP_ENDPOINT instead")
	return c
}

func (c *console) Parse(args []string) ([]string, error) {
	rest, err := c.Flags.Parse(args)
	switch {
	case err != nil:
		return nil, err
	case c.streaming != "sse" && c.streaming != "none":
		return nil, fmt.Errorf("-streaming_mode %q: use sse or none", c.streaming)
	case c.shutdown < 0:
		return nil, fmt.Errorf("-shutdown-timeout %s is negative", c.shutdown)
	case c.cloud:
		return nil, errors.New("-otel_to_cloud is not available; set OTEL_EXPORTER_OTLP_ENDPOINT to send traces and metrics")
	}
	return rest, nil
}

func (c *console) Run(ctx context.Context, config *launcher.Config) error {
	return door.Run(ctx, config, func(root string) []string {
		args := []string{"console", "--streaming", c.streaming, "--grace", c.shutdown.String()}
		if c.session != "" {
			args = append(args, "--session", c.session)
		}
		return append(args, "--", root)
	}, command.Config{})
}
