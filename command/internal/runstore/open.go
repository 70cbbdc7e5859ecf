// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/command/internal/trust"
	"github.com/refrain-dev/refrain/internal/process/shellword"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/postgres"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// The application and the user of the sessions of runs. The session with the same user and ID in MailApp is the run's mailbox,
// through which other processes talk to the process that drives the run.
const (
	AppName  = "refrain"
	MailApp  = "refrain.mail"
	UserName = "user"
)

// KeyOf returns the key of a run's session.
func KeyOf(id string) lease.Key {
	return lease.Key{AppName: AppName, UserID: UserName, SessionID: id}
}

// defaultStore is the store without --store and REFRAIN_STORE.
const defaultStore = "sqlite:" + ".refrain/refrain.db"

// Flag adds --store.
func Flag(fl *pflag.FlagSet, spec *string) {
	fl.StringVar(spec, "store", "", "store of runs: `sqlite:PATH`, postgres:DSN or memory (env REFRAIN_STORE; default "+
		defaultStore+")")
}

// InHint returns the flag that names a store, for a command in a hint. It is empty for the default store, for one that ends
// with the process, and for one whose name has a password.
func InHint(spec string) string {
	if spec == "" || spec == "memory" || withoutPassword(spec) != spec {
		return ""
	}
	return " --store " + shellword.Of(spec)
}

// Spec returns the kind and the location of the store that the flag names, or else REFRAIN_STORE, or else the default store.
func Spec(e *term.Env, spec string) (kind, where string, err error) {
	spec = cmp.Or(spec, e.Getenv("REFRAIN_STORE"), defaultStore)
	kind, where, _ = strings.Cut(spec, ":")
	switch {
	case spec == "memory":
		return "memory", "", nil
	case strings.HasPrefix(where, "//") && (kind == "postgres" || kind == "postgresql"):
		return "postgres", spec, nil // a URL names its kind itself
	case (kind == "sqlite" || kind == "postgres") && where != "":
		return kind, where, nil
	}
	hint, shown := "", withoutPassword(spec)
	switch {
	case strings.Contains(spec, "://"):
		hint = ", where DSN may be an address as postgres://user@host/database"
	case shown == spec && (strings.HasSuffix(spec, ".db") || strings.ContainsAny(spec, `/\`)):
		hint = fmt.Sprintf(" (did you mean sqlite:%s?)", spec)
	}
	return "", "", fmt.Errorf("store %q: write sqlite:PATH, postgres:DSN or memory%s", shown, hint)
}

// userInfo matches the user and the password in a URL, and passwordIn the password in a DSN of key=value pairs. Both also match
// in text that is neither.
var (
	userInfo   = lazyregexp.New(`//[^/]*@|//[^@]*@`)
	passwordIn = lazyregexp.New(`(?i)((?:password|sslpassword)\s*=\s*)('(?:[^'\\]|\\.)*'?|[^\s&]+)`)
)

// withoutPassword returns the address of a store, or another address, without user and password.
func withoutPassword(s string) string {
	s = userInfo().ReplaceAllString(s, "//[secret]@")
	return passwordIn().ReplaceAllString(s, "${1}[secret]")
}

// postgresConns is the largest number of connections to PostgreSQL per process. A server allows 97 by default, and thirty
// processes use 90.
const postgresConns = 3

// workerConns is the largest number of connections per worker, which drives many runs at once; ten workers use 90.
const workerConns = 9

// programs reports whether the runs are kept in the program's own store: the program has a store, and the flag names no other.
func programs(e *term.Env, spec string) bool { return spec == "" && e.Keeps.Sessions != nil }

// MakeService opens a store of runs, and creates the store if it does not exist. spec is the value of --store; if it is empty,
// the environment or the default decides. Every store implements lease.Leaser and store.Watcher.
func MakeService(ctx context.Context, e *term.Env, spec string) (session.Service, func() error, error) {
	return makeService(ctx, e, spec, postgresConns)
}

func makeService(ctx context.Context, e *term.Env, spec string, conns int) (session.Service, func() error, error) {
	if programs(e, spec) {
		return e.Keeps.Sessions, func() error { return nil }, nil
	}
	kind, where, err := Spec(e, spec)
	if err != nil {
		return nil, nil, term.UsageError(err)
	}
	switch kind {
	case "sqlite":
		return makeDatabase(ctx, e, spec, where)
	case "postgres":
		s, err := postgres.Open(ctx, where, postgres.Config{Conns: conns})
		if err != nil {
			return nil, nil, term.Failure(err)
		}
		return s, s.Close, nil
	}
	return session.InMemoryService(), func() error { return nil }, nil
}

// OpenService opens a store for a command that only reads runs: it does not create a store, and opens a store without write
// access, or one that was found and is not trusted, for reading.
func OpenService(ctx context.Context, e *term.Env, spec string) (session.Service, func() error, error) {
	return openService(ctx, e, spec, false)
}

func openService(ctx context.Context, e *term.Env, spec string, writes bool) (session.Service, func() error, error) {
	if programs(e, spec) && !e.Keeps.Lasts() {
		return nil, nil, term.UsageError(errors.New("this program keeps its runs in memory, so it has no runs of other " +
			"processes; give the program a store such as sqlite.Open, or name a store with --store"))
	}
	if programs(e, spec) {
		return MakeService(ctx, e, spec)
	}
	kind, where, err := Spec(e, spec)
	switch {
	case err != nil:
		return nil, nil, term.UsageError(err)
	case kind == "memory":
		return nil, nil, term.UsageError(errors.New("a store in memory ends with its run, so it holds no runs; name " +
			"another store with --store"))
	case kind == "sqlite":
		if _, err := os.Stat(where); errors.Is(err, fs.ErrNotExist) {
			return nil, nil, term.UsageError(noStore(where))
		}
		service, closeService, err := MakeService(ctx, e, spec)
		if stranger, ok := errors.AsType[*trust.StrangerError](err); ok && !writes {
			fmt.Fprintln(e.Stderr, "refrain:", stranger)
		} else if err == nil || canWrite(where) {
			return service, closeService, err
		}
		s, err := sqlite.Open(ctx, where, sqlite.Config{ReadOnly: true})
		if err != nil {
			return nil, nil, term.Failure(err)
		}
		return s, s.Close, nil
	}
	return MakeService(ctx, e, spec)
}

// canWrite reports whether a database, and files beside it, can be written.
func canWrite(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	_ = f.Close()
	probe, err := os.CreateTemp(filepath.Dir(path), ".refrain-probe-")
	if err != nil {
		return false
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name())) == nil
}

// noStore is the error of a command that looks for runs in a store that does not exist.
type noStore string

func (s noStore) Error() string {
	return fmt.Sprintf("there are no runs here: %s does not exist; start a run with refrain run, or name another "+
		"store with --store", string(s))
}

// Name returns a name of a store for program.Env, without the password. It is empty for a store in memory, and for one of the
// program's own.
func Name(e *term.Env, spec string) string {
	if programs(e, spec) {
		return ""
	}
	kind, where, err := Spec(e, spec)
	switch {
	case err != nil:
		return ""
	case kind == "postgres":
		sum := sha256.Sum256([]byte(withoutPassword(where)))
		return "postgres:" + hex.EncodeToString(sum[:8])
	case kind == "sqlite":
		if path, err := filepath.Abs(where); err == nil {
			return "sqlite:" + path
		}
	}
	return ""
}

// Owner returns the name under which a store owns saved files in a folder that other stores use, too; see [disk.OpenFor]. It is
// empty for an SQLite database, which [Beside] finds beside the folder, and for a store in memory.
func Owner(e *term.Env, spec string) string {
	if programs(e, spec) {
		return "the store of " + cmp.Or(e.Code.Name, "a program")
	}
	if name := Name(e, spec); strings.HasPrefix(name, "postgres:") {
		return name
	}
	return ""
}

// ArtifactsDir returns the folder of the files that runs of a store have saved, beside an SQLite database; empty for a store
// without such a folder.
func ArtifactsDir(e *term.Env, spec string) string {
	if programs(e, spec) {
		if !e.Keeps.Lasts() {
			return ""
		}
		return filepath.Join(".refrain", "artifacts")
	}
	switch kind, where, err := Spec(e, spec); {
	case err != nil || kind == "memory":
		return ""
	case kind == "sqlite":
		return filepath.Join(filepath.Dir(where), "artifacts")
	}
	return filepath.Join(".refrain", "artifacts")
}
