// SPDX-License-Identifier: Apache-2.0

package running

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/clusters"
	"github.com/refrain-dev/refrain/command/internal/doctor"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
)

func NewDoctor(e *term.Env) *cobra.Command {
	var asJSON, ask bool
	var f clusters.Flags
	var store, server string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "doctor [FILE]",
		Short: "Check the machine: store, keys, models, tool servers",
		Long: `Check that this machine has what a run needs: the program and the terminal, the store
of runs, and the keys of model providers. With FILE, doctor also opens each model of the
definition, starts its tool servers, and looks for the programs of its commands and for
the git repository of its workspace; no agent runs. Without FILE it opens the model in
REFRAIN_MODEL. --ask sends each model one short question, which its provider charges for.

With --temporal, doctor also connects to a Temporal server. With --server it checks
only that a server answers, as health checks of containers do.

doctor never shows a key, and creates nothing.

Exit code 0 if nothing that is needed is broken, 1 otherwise.`,
		Example: `  refrain doctor
  refrain doctor loop.yaml
  refrain doctor loop.yaml --ask --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout < 0 {
				return fmt.Errorf("--timeout %s: give a time such as 5s", timeout)
			}
			if server != "" {
				return answers(cmd.Context(), server)
			}
			d := doctor.New(e, ask, timeout)
			d.Examine(cmd.Context(), store, args)
			if f.On {
				d.Temporal(f.Address, store, func() (string, error) { return f.Where(cmd.Context(), e) })
			}
			if err := d.Write(asJSON); err != nil {
				return err
			}
			if d.Broken() > 0 {
				return &term.Exit{Code: term.ExitFailed} // the report has already said what is broken
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&asJSON, "json", false, "write the report as JSON")
	fl.BoolVar(&ask, "ask", false, "send each model one short question")
	term.DurationFlag(fl, &timeout, "timeout", 0, "time limit for the store and for each model (default: 10s for the "+
		"store; init_timeout, or 30s, for a model)")
	runstore.Flag(fl, &store)
	fl.StringVar(&server, "server", "", "check only that this `URL` answers with status 200, such as http://127.0.0.1:8080/readyz")
	f.AddTo(cmd, e, "`host:port` of a Temporal server to connect to; the variables TEMPORAL_* set the rest")
	return cmd
}

// answers returns nil if a server answers with status 200 within 5 s. It keeps away from proxies.
func answers(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("--server: %w", err)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return term.Failure(fmt.Errorf("--server %s: %w", address, err))
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return term.Failure(fmt.Errorf("--server %s: the server answers %s", address, resp.Status))
	}
	return nil
}
