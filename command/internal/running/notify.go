// SPDX-License-Identifier: Apache-2.0

package running

import (
	"context"
	"net/url"
	"time"

	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/internal/runs/notify"
	"github.com/refrain-dev/refrain/supervisor"
)

// notifyFlag adds --notify. what is the subject of the notifications.
func notifyFlag(fl *pflag.FlagSet, to *[]string, what string) {
	fl.StringArrayVar(to, "notify", nil, "notify the service whose address is in this environment `variable` of "+what+
		", such as OPS_SLACK or OPS_SLACK=failed,asks; repeat the flag for more")
}

// pagesBelow returns a function for the addresses of the pages of runs in a server.
func pagesBelow(where string) func(context.Context, string) string {
	return func(_ context.Context, id string) string { return where + "/runs/" + url.PathEscape(id) }
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
