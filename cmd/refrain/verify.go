// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/progress"
)

func newVerify(e *env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check that the record of a run is as it was written",
		Long: `Check the record of a run, which refrain run --record FILE has written. Each loop
in it ends with a stop record, which holds a digest of all its events and of
itself; they are made again and compared. One line for each loop; exit code 0 if
all agree, 1 if not.

Who can write the file can also make digests that agree with what he has changed:
keep those of the outermost loops elsewhere to notice that.`,
		Example: `  refrain run loop.yaml --record run.jsonl
  refrain verify run.jsonl`,
		Args: between(1, 1),
		RunE: func(_ *cobra.Command, args []string) error { return verify(e, args[0], asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

// verified is one loop as verify tells of it.
type verified struct {
	progress.Seal
	Reason string `json:"stop_reason,omitempty"`
	Digest string `json:"digest,omitempty"`
}

func verify(e *env, name string, asJSON bool) error {
	events, err := openRecord(e, name)
	if err != nil {
		return err
	}
	seals, bad := progress.Verify(events), 0
	all := make([]verified, len(seals))
	stops := stopsBySeq(events)
	for i, s := range seals {
		all[i] = verified{Seal: s}
		if rec := stops[s.Seq]; rec != nil {
			all[i].Reason, all[i].Digest = string(rec.Reason), rec.Digest
		}
		if s.Problem != "" {
			bad++
		}
	}
	if err := printVerified(e, all, asJSON); err != nil {
		return &exitError{exitFailed, fmt.Errorf("write the result: %w", err)}
	}
	switch {
	case len(seals) == 0:
		return &exitError{exitFailed, fmt.Errorf("%s: no loop has stopped in it, so there is nothing to compare", name)}
	case bad > 0:
		return &exitError{exitFailed, fmt.Errorf("%s: %d of %d loops are not as they were recorded", name, bad, len(seals))}
	}
	return nil
}

func printVerified(e *env, all []verified, asJSON bool) error {
	if asJSON {
		text, err := json.MarshalIndent(all, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(e.stdout, "%s\n", text)
		return err
	}
	for _, v := range all {
		line := fmt.Sprintf("ok       %s: %s", v.Loop, v.Digest)
		if v.Problem != "" {
			line = fmt.Sprintf("CHANGED  %s: %s", v.Loop, v.Problem)
		}
		if _, err := fmt.Fprintln(e.stdout, plainText(line)); err != nil {
			return err
		}
	}
	return nil
}
