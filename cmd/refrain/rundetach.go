// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/supervisor"
)

// soon is how long a process in the background may take to take its run up.
const soon = 30 * time.Second

// detach puts a run into the log and has another process, which does not end with
// this one, drive it.
func detach(ctx context.Context, e *env, s *stock, req supervisor.Request) error {
	if !s.durable {
		req.Program.Close()
		return &exitError{exitUsage, errors.New("--detach: a store in memory ends with this process; name another one with --store")}
	}
	sup, err := s.supervise(e, nil)
	if err != nil {
		return err
	}
	defer sup.Close(ctx)
	id, err := sup.Submit(ctx, req)
	if err != nil {
		return &exitError{exitFailed, err}
	}
	if err := inBackground(ctx, e, s, sup, id); err != nil {
		return &exitError{exitFailed, fmt.Errorf("run %s is kept, but does not go on: %w; refrain resume %s takes it up", id, err, id)}
	}
	fmt.Fprintf(e.stderr, "run %s goes on in the background: refrain watch %s shows it, refrain pause %s and refrain cancel %s end it\n", id, id, id, id)
	if _, err := fmt.Fprintln(e.stdout, id); err != nil {
		return &exitError{exitFailed, err}
	}
	return nil
}

// inBackground starts this program again, to resume a run, and waits until it does.
func inBackground(ctx context.Context, e *env, s *stock, sup *supervisor.Supervisor, id string) error {
	log, err := openMessages(e, s.spec, id)
	if err != nil {
		return err
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{"resume", "--progress", "plain"}
	if s.spec != "" {
		args = append(args, "--store", s.spec)
	}
	cmd := exec.Command(self, append(args, "--", id)...)
	cmd.Stdout, cmd.Stderr = log, log
	apart(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	late, cancel := context.WithTimeoutCause(ctx, soon, errors.New("nobody has taken it up"))
	defer cancel()
	taken := make(chan error, 1)
	go func() {
		for ev, err := range sup.Watch(late, id, 0) {
			if err != nil || ev.Mark != nil && ev.Mark.Kind == supervisor.MarkRunTaken {
				taken <- err
				return
			}
		}
	}()
	select {
	case err := <-taken:
		return err
	case err := <-ended:
		if err == nil { // it was quick
			return nil
		}
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(text)))
	}
}

// openMessages opens the file for what a process in the background has to say, in
// the folder of the store.
func openMessages(e *env, spec, id string) (*os.File, error) {
	dir := filepath.Join(filepath.Dir(artifactsDir(e, spec)), "messages")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	name := url.PathEscape(id) + ".txt" // in one folder, whatever the ID is
	return root.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}
