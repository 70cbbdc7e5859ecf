// SPDX-License-Identifier: Apache-2.0

// Package runstore finds runs where they are kept.
package runstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/artifact/disk"
	"github.com/refrain-dev/refrain/command/internal/deffile"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/command/internal/trust"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/runs/notify"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/runs/retention"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
	"github.com/refrain-dev/refrain/supervisor"
)

// Stock is the store of a run, with its log and its files.
type Stock struct {
	spec     string
	Dir      string // the working directory that spec is relative to
	Durable  bool   // the store outlives the process
	Recorded bool   // events are also written to a file
	Service  session.Service
	Files    artifact.Service
	Memory   memory.Service

	closers []func() error
	tell    func(error) // prints an error
}

// Close closes the store and what belongs to it, the last opened first. It prints errors.
func (s *Stock) Close() {
	for _, end := range slices.Backward(s.closers) {
		if err := end(); err != nil {
			s.tell(err)
		}
	}
}

// MakeStock opens the store of a new run, and creates the store if it does not exist. With a record, each event of the run is
// also written to that file.
func MakeStock(ctx context.Context, e *term.Env, spec, record string) (*Stock, error) {
	if err := PrepareFolder(e, spec); err != nil {
		return nil, err
	}
	service, closeService, err := MakeService(ctx, e, spec)
	if err != nil {
		return nil, err
	}
	s, err := newStock(e, spec, service, closeService)
	if err != nil || record == "" {
		return s, err
	}
	rec, err := newRecorder(service, record)
	if err != nil {
		s.Close()
		return nil, term.UsageError(err)
	}
	s.Recorded, s.Service, s.closers = true, rec, append(s.closers, rec.Close)
	return s, nil
}

// MakeWorkerStock is MakeStock for a process that drives many runs at once.
func MakeWorkerStock(ctx context.Context, e *term.Env, spec string) (*Stock, error) {
	service, closeService, err := makeService(ctx, e, spec, workerConns)
	if err != nil {
		return nil, err
	}
	return newStock(e, spec, service, closeService)
}

// OpenStock opens the store of an existing run, and finds the run. It refuses a store that is not trusted.
func OpenStock(ctx context.Context, e *term.Env, spec, word string) (*Stock, string, error) {
	return openStock(ctx, e, spec, word, OpenWritable)
}

// OpenNamed is OpenStock for a command that continues the run that a person names: it takes any store. Stranger tells whether the
// store is not trusted.
func OpenNamed(ctx context.Context, e *term.Env, spec, word string) (s *Stock, id string, stranger bool, err error) {
	s, id, err = OpenStock(ctx, e, spec, word)
	if _, stranger = errors.AsType[*trust.StrangerError](err); stranger && word != "last" && word != "" {
		s, id, err = openStock(ctx, e, spec, word, openAnyway)
	}
	return s, id, stranger, err
}

func openStock(ctx context.Context, e *term.Env, spec, word string,
	open func(context.Context, *term.Env, string) (session.Service, func() error, error)) (*Stock, string, error) {
	service, closeService, err := open(ctx, e, spec)
	if err != nil {
		return nil, "", err
	}
	id, err := Find(ctx, service, word)
	if err == nil {
		err = checkBegun(ctx, service, id)
	}
	if err != nil {
		_ = closeService()
		return nil, "", err
	}
	s, err := newStock(e, spec, service, closeService)
	return s, id, err
}

// checkBegun returns an error for a run without events.
func checkBegun(ctx context.Context, service session.Service, id string) error {
	one, err := get(ctx, service, id, 1)
	if err != nil {
		return term.Failure(err)
	}
	if one.Events().Len() == 0 {
		return unbegun(ctx, service, id)
	}
	return nil
}

func newStock(e *term.Env, spec string, service session.Service, closeService func() error) (*Stock, error) {
	s := &Stock{
		spec: spec, Service: service, Files: e.Keeps.Files, Memory: e.Keeps.Memory,
		closers: []func() error{closeService}, tell: func(err error) { term.PrintError(e.Stderr, err) },
	}
	if s.Memory == nil {
		s.Memory = memory.InMemoryService()
	}
	var err error
	if s.Dir, err = os.Getwd(); err != nil {
		s.Close()
		return nil, term.Failure(err)
	}
	dir := ArtifactsDir(e, spec)
	s.Durable = dir != ""
	switch {
	case s.Files != nil:
	case dir == "":
		s.Files = artifact.InMemoryService()
	default:
		files, err := disk.OpenFor(dir, Owner(e, spec))
		if err != nil {
			s.Close()
			return nil, term.Failure(err)
		}
		s.Files = files
		s.closers = append(s.closers, files.Close)
	}
	return s, nil
}

// Beside returns what is kept about the runs of the store outside of it. Call it in the working directory in which the store was opened.
func (s *Stock) Beside(e *term.Env) (retention.Beside, error) { return Beside(e, s.spec, s.Files) }

// Name returns the name of the store for program.Env.
func (s *Stock) Name(e *term.Env) string { return Name(e, s.spec) }

// Elsewhere returns the spec of the store for a process with another working directory.
func (s *Stock) Elsewhere(e *term.Env) (string, error) {
	if programs(e, s.spec) {
		return "", nil // the program names the store itself
	}
	kind, where, err := Spec(e, s.spec)
	if err != nil {
		return "", err
	}
	switch {
	case strings.HasPrefix(where, "postgres"): // a URL
		return where, nil
	case kind == "sqlite" && !filepath.IsAbs(where):
		where = filepath.Join(s.Dir, where)
	}
	return kind + ":" + where, nil
}

// PrepareFolder creates the folder of the default store. Other users cannot read the folder, and version control ignores it.
func PrepareFolder(e *term.Env, spec string) error {
	if programs(e, spec) {
		return nil
	}
	kind, where, err := Spec(e, spec)
	if err != nil || kind != "sqlite" || filepath.Base(filepath.Dir(where)) != ".refrain" {
		return nil // the user who names a folder decides about its permissions
	}
	dir := filepath.Dir(where)
	if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		what := OpenToOthers(dir)
		_, absent := os.Lstat(where)
		if info, err := os.Lstat(dir); err == nil && info.IsDir() && (what == "" || absent != nil) {
			_ = os.Chmod(dir, 0o700) // another user's folder keeps its mode, and is refused
		} else if _, found := Found(e, spec); what != "" && !found { // one that was found is refused
			fmt.Fprintf(e.Stderr, "refrain: %s; close it with: chmod 700 %s\n", what, dir)
		}
		if absent == nil {
			return nil
		} // otherwise the files of a workspace existed before the first run
	} else if err != nil {
		return term.Failure(fmt.Errorf("make the folder of the runs: %w; --store names another place, and --store "+
			"memory keeps nothing", err))
	}
	ignore, err := os.OpenFile(filepath.Join(dir, ".gitignore"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		_, err = ignore.WriteString("*\n")
		err = errors.Join(err, ignore.Close())
	}
	return term.Failure(err)
}

// OpenToOthers returns a warning if other users may change the contents of the folder of runs, such as the definitions of runs
// to resume; otherwise "".
func OpenToOthers(dir string) string {
	info, err := os.Stat(dir)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o022 == 0 {
		return ""
	}
	return fmt.Sprintf("other users may write to the folder of the runs, %s (mode %04o)", dir, info.Mode().Perm())
}

// LeaseTTL is the time after which another process may take over a run whose process on another machine has died, and for which
// a run continues that cannot reach its store.
const LeaseTTL = 30 * time.Second

// Supervise returns a supervisor of the runs in the store. each receives the events of the runs that the supervisor drives;
// each may be nil. The observers change the supervisor's config.
func (s *Stock) Supervise(e *term.Env, each func(id string, ev *session.Event), observers ...func(*supervisor.Config)) (*supervisor.Supervisor, error) {
	cfg := s.Supervising(e)
	cfg.OnEvent = each
	for _, observe := range observers {
		observe(&cfg)
	}
	sup, err := supervisor.New(cfg)
	return sup, term.Failure(err)
}

// OpenSupervised opens the store of an existing run with a supervisor of the runs. Closing the store closes the supervisor.
func OpenSupervised(ctx context.Context, e *term.Env, spec, word string) (*Stock, *supervisor.Supervisor, string, error) {
	s, id, err := OpenStock(ctx, e, spec, word)
	if err != nil {
		return nil, nil, "", err
	}
	sup, err := s.Supervise(e, nil)
	if err != nil {
		s.Close()
		return nil, nil, "", err
	}
	s.closers = append(s.closers, func() error {
		_ = sup.Close(ctx) // this supervisor drives no run
		return nil
	})
	return s, sup, id, nil
}

// Supervising returns the config of a supervisor of the runs in the store.
func (s *Stock) Supervising(e *term.Env) supervisor.Config {
	cfg := supervisor.Config{
		Service: s.Service, AppName: AppName, UserID: UserName, Build: program.Rebuild(deffile.EnvOf(e, s.Name(e))),
		ArtifactService: s.Files, MemoryService: s.Memory, PluginConfig: e.Keeps.Plugins,
		Leases: supervisor.Leases{Owner: lease.Process(), LeaseTTL: LeaseTTL},
	}
	e.Telemetry.Observe(&cfg)
	return cfg
}

// Notifier returns a notifier of the runs in the store, for those of to and, with definitions, those that definitions name. It prints what was not
// delivered. page returns the address of a run's page.
func (s *Stock) Notifier(e *term.Env, to definition.Notify, definitions bool, command string, page func(ctx context.Context, run string) string) *notify.Notifier {
	return notify.New(notify.Config{Service: s.Service, AppName: AppName, UserID: UserName, Owner: lease.Process(), To: to, Definitions: definitions, Command: command,
		Getenv: e.Getenv, Page: page, Report: func(err error) { fmt.Fprintln(e.Stderr, err) }})
}

// Taken waits until a process has taken over a run.
func (s *Stock) Taken(ctx context.Context, id string, seen int64) error {
	for ev, err := range s.Service.(store.Watcher).Watch(ctx, KeyOf(id), seen) {
		if err != nil || ev.Mark != nil && ev.Mark.Kind == mark.KindRunTaken {
			return err
		}
	}
	return context.Cause(ctx)
}

// LastSeq returns the number of a run's last event.
func (s *Stock) LastSeq(ctx context.Context, id string) (int64, error) {
	view, err := get(ctx, s.Service, id, 1)
	if err != nil {
		return 0, err
	}
	return view.LastSeq(), nil
}

// View returns a run's log, and the run's status from the log; nil if the log has none.
func (s *Stock) View(ctx context.Context, id string) (*session.View, *mark.Run, error) {
	view, err := get(ctx, s.Service, id, 0)
	if err != nil {
		return nil, nil, err
	}
	return view, session.RunOf(view), nil
}

// OpenMessages opens the file for the output of a background process, in the folder of the store.
func OpenMessages(e *term.Env, s *Stock, id string) (*os.File, error) {
	return s.openBeside(MessagesDir(e, s.spec), MessagesName(e, s.spec, id))
}

// OpenDiary opens the file with what a run does, for people to follow, in the folder of the store.
func OpenDiary(e *term.Env, s *Stock, id string) (*os.File, error) {
	return s.openBeside(DiaryPlace(e, s.spec, id))
}

// AddToDiary adds a line to the file of [OpenDiary]; it does nothing for a run without such a file, and if the file cannot be written.
func AddToDiary(e *term.Env, s *Stock, id, line string) {
	dir, name := DiaryPlace(e, s.spec, id)
	root, err := os.OpenRoot(s.folderBeside(dir))
	if err != nil {
		return
	}
	defer root.Close()
	file, err := root.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return
	}
	_, _ = fmt.Fprintln(file, time.Now().Format(time.DateTime), line)
	_ = file.Close()
}

// folderBeside returns a folder beside the store.
func (s *Stock) folderBeside(dir string) string {
	if filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(s.Dir, dir)
}

// DiaryPlace returns the folder and the name of the file of [OpenDiary].
func DiaryPlace(e *term.Env, spec, id string) (dir, name string) {
	return filepath.Join(filepath.Dir(ArtifactsDir(e, spec)), "runs"), strings.TrimSuffix(MessagesName(e, spec, id), ".txt") + ".log"
}

// openBeside opens a file to append to, in a folder beside the store.
func (s *Stock) openBeside(dir, name string) (*os.File, error) {
	dir = s.folderBeside(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
}

// MessagesDir returns the folder of the output of background processes.
func MessagesDir(e *term.Env, spec string) string {
	return filepath.Join(filepath.Dir(ArtifactsDir(e, spec)), "messages")
}

// MessagesName returns the name of a run's file in that folder; every ID gives a valid name.
func MessagesName(e *term.Env, spec, id string) string {
	name := url.PathEscape(id)
	if owner := Owner(e, spec); owner != "" {
		name += "," + url.PathEscape(owner) // no ID has a comma
	}
	return name + ".txt"
}
