// SPDX-License-Identifier: Apache-2.0

package running

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/runs/notify"
	"github.com/refrain-dev/refrain/supervisor"
)

// notifyFlag adds --notify. what is the subject of the notifications.
func notifyFlag(fl *pflag.FlagSet, to *[]string, what string) {
	fl.StringArrayVar(to, "notify", nil, "notify the service whose address is in this environment `variable` of "+what+
		", such as OPS_SLACK or OPS_SLACK=failed,asks; repeat the flag for more")
}

// notifyOf reads the values of --notify, and warns of variables without an address.
func notifyOf(e *term.Env, texts []string) (definition.Notify, error) {
	to, err := definition.ParseNotify(texts)
	if err != nil {
		return nil, term.UsageError(fmt.Errorf("--notify: %w", err))
	}
	for _, name := range slices.Sorted(maps.Keys(to)) {
		if err := notify.CheckAddress(e.Getenv, name); err != nil {
			term.PrintError(e.Stderr, fmt.Errorf("--notify %s reaches nobody from here: %w", name, err))
		}
	}
	return to, nil
}

// NewNotify returns the command that tries services of notifications.
func NewNotify(e *term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "notify",
		Short: "Try the services that get notifications",
		Long:  "Try the services that get notifications of runs: those of notify in a definition, and of --notify.",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "test VARIABLE...",
		Short: "Send a test message to services",
		Long: `Send a test message to the services whose addresses are in these environment variables, with
one attempt each. Exit code 1 if a service does not take the message, 2 if a variable has
no address. No address is printed, because it is a secret.`,
		Example: "  refrain notify test OPS_SLACK MY_PHONE",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			if _, err := definition.ParseNotify(names); err != nil {
				return term.UsageError(err)
			}
			var failed []error
			for _, name := range names {
				service, err := notify.Test(cmd.Context(), e.Getenv, name)
				if err != nil {
					failed = append(failed, fmt.Errorf("%s: %w", name, err))
					continue
				}
				if _, err := fmt.Fprintf(e.Stdout, "%s: %s has taken the test message\n", name, service); err != nil {
					return term.Failure(err)
				}
			}
			err := errors.Join(failed...)
			if _, answered := errors.AsType[*notify.AddressError](err); answered {
				return term.UsageError(err)
			}
			return term.Failure(err)
		},
	})
	return cmd
}

// pagesBelow returns a function for the addresses of the pages of runs in a server.
func pagesBelow(where string) func(context.Context, string) string {
	return func(_ context.Context, id string) string {
		return strings.TrimSuffix(where, "/") + "/runs/" + url.PathEscape(id)
	}
}

// observed adds an observer to one that may be nil.
func observed(first, second func(*supervisor.Config)) func(*supervisor.Config) {
	return func(cfg *supervisor.Config) {
		if first != nil {
			first(cfg)
		}
		second(cfg)
	}
}

// closeNotifier ends a notifier of a server that has stopped.
func closeNotifier(ctx context.Context, n *notify.Notifier) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	n.Close(ctx)
}
