// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/artifact/disk"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/supervisor"
)

// stock is where a run is kept: its log and its files.
type stock struct {
	spec     string
	dir      string // the working directory that spec is relative to
	durable  bool   // it outlives the process
	recorded bool   // events go into a file, too
	service  session.Service
	files    artifact.Service
	close    func()
}

// openStock opens the store of a new run, and makes it if it is not there. With a
// record each event of the run is in that file, too.
func openStock(ctx context.Context, e *env, spec, record string) (*stock, error) {
	if err := prepareFolder(e, spec); err != nil {
		return nil, err
	}
	service, closeService, err := openStore(ctx, e, spec)
	if err != nil {
		return nil, err
	}
	s, err := newStock(e, spec, service, closeService)
	if err != nil || record == "" {
		return s, err
	}
	rec, err := newRecorder(service, record)
	if err != nil {
		s.close()
		return nil, &exitError{exitUsage, err}
	}
	s.recorded = true
	s.service = &recorded{rec, service.(session.Leaser), service.(session.Watcher)}
	closeStock := s.close
	s.close = func() {
		if err := rec.Close(); err != nil {
			printError(e.stderr, err)
		}
		closeStock()
	}
	return s, nil
}

// openStockOf opens the store of a run that there is, and finds it.
func openStockOf(ctx context.Context, e *env, spec, word string) (*stock, string, error) {
	service, closeService, err := openRuns(ctx, e, spec)
	if err != nil {
		return nil, "", err
	}
	id, err := findRun(ctx, service, word)
	if err == nil {
		err = begun(ctx, service, id)
	}
	if err != nil {
		_ = closeService()
		return nil, "", err
	}
	s, err := newStock(e, spec, service, closeService)
	return s, id, err
}

// begun fails for a run that has no event.
func begun(ctx context.Context, service session.Service, id string) error {
	got, err := service.Get(ctx, &session.GetRequest{AppName: appName, UserID: userName, SessionID: id, NumRecentEvents: 1})
	if err != nil {
		return &exitError{exitFailed, err}
	}
	if got.Session.Events().Len() == 0 {
		return unbegun(ctx, service, id)
	}
	return nil
}

func newStock(e *env, spec string, service session.Service, closeService func() error) (*stock, error) {
	s := &stock{spec: spec, service: service, files: artifact.InMemoryService()}
	var err error
	if s.dir, err = os.Getwd(); err != nil {
		_ = closeService()
		return nil, &exitError{exitFailed, err}
	}
	closers := []func() error{closeService}
	s.close = func() {
		for _, end := range closers {
			if err := end(); err != nil {
				printError(e.stderr, err)
			}
		}
	}
	if dir := artifactsDir(e, spec); dir != "" {
		files, err := disk.Open(dir)
		if err != nil {
			s.close()
			return nil, &exitError{exitFailed, err}
		}
		s.durable, s.files = true, files
		closers = append(closers, files.Close)
	}
	return s, nil
}

// elsewhere is the store as a process with another working directory names it.
func (s *stock) elsewhere(e *env) (string, error) {
	kind, where, err := storeSpec(e, s.spec)
	if err != nil {
		return "", err
	}
	switch {
	case strings.HasPrefix(where, "postgres"): // a URL
		return where, nil
	case kind == "sqlite" && !filepath.IsAbs(where):
		where = filepath.Join(s.dir, where)
	}
	return kind + ":" + where, nil
}

// prepareFolder makes the folder of the default store: nobody else may look into
// it, and it is no part of what is under version control.
func prepareFolder(e *env, spec string) error {
	kind, where, err := storeSpec(e, spec)
	if err != nil || kind != "sqlite" || filepath.Base(filepath.Dir(where)) != ".refrain" {
		return nil // whoever names a folder knows what it is for
	}
	dir := filepath.Dir(where)
	if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		if what := openToOthers(dir); what != "" {
			fmt.Fprintf(e.stderr, "refrain: %s; shut it: chmod 700 %s\n", what, dir)
		}
		return nil
	} else if err != nil {
		return &exitError{exitFailed, fmt.Errorf("make the folder of the runs: %w; --store names another place, and --store memory keeps nothing", err)}
	}
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*\n"), 0o600); err != nil {
		return &exitError{exitFailed, err}
	}
	return nil
}

// openToOthers says that other users may change what is in the folder of the runs, such
// as the definitions that are resumed; "" if they may not.
func openToOthers(dir string) string {
	info, err := os.Stat(dir)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o022 == 0 {
		return ""
	}
	return fmt.Sprintf("other users may write to the folder of the runs, %s (mode %04o)", dir, info.Mode().Perm())
}

// recorded is a store that writes events into a file, too; see recorder.
type recorded struct {
	*recorder
	session.Leaser
	session.Watcher
}

// AppendEvent leaves the mailboxes of runs out of the file.
func (r *recorded) AppendEvent(ctx context.Context, s session.Session, ev *session.Event) error {
	if s != nil && s.AppName() == mailApp {
		return r.recorder.Service.AppendEvent(ctx, s, ev)
	}
	return r.recorder.AppendEvent(ctx, s, ev)
}

// leaseTTL is how long a run stays that of a process on another machine which has
// died, and how long one goes on that cannot reach its store.
const leaseTTL = 30 * time.Second

// supervise returns a supervisor of the runs in the store. each is given the events
// of those that it drives; nil is nobody.
func (s *stock) supervise(e *env, each func(id string, ev *session.Event)) (*supervisor.Supervisor, error) {
	sup, err := supervisor.New(supervisor.Config{
		Service: s.service, AppName: appName, UserID: userName, Build: builder(e),
		ArtifactService: s.files, MemoryService: memory.InMemoryService(),
		Owner: ownerName(), Dead: ownerIsDead, LeaseTTL: leaseTTL, OnEvent: each,
	})
	if err != nil {
		return nil, &exitError{exitFailed, err}
	}
	return sup, nil
}
