// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/command/internal/trust"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// Found returns the path of the database that a command uses because it is in the current folder. ok is false if the operator or the
// program has named the store: then it is trusted by that.
func Found(e *term.Env, spec string) (path string, ok bool) {
	if spec != "" || programs(e, spec) || e.Getenv("REFRAIN_STORE") != "" {
		return "", false
	}
	_, path, err := Spec(e, "")
	return path, err == nil
}

// makeDatabase opens an SQLite database for reading and writing, and creates it if it does not exist. It fails with a
// [*trust.StrangerError] for a database that was found and is not trusted.
func makeDatabase(ctx context.Context, e *term.Env, spec, path string) (session.Service, func() error, error) {
	_, found := Found(e, spec)
	unjudged := false
	if found {
		err := trust.Found(ctx, e.Getenv, path)
		if unjudged = errors.Is(err, fs.ErrNotExist); err != nil && !unjudged {
			return nil, nil, term.Failure(err)
		}
	}
	s, err := sqlite.Open(ctx, path, sqlite.Config{})
	if err != nil {
		return nil, nil, term.Failure(err)
	}
	if unjudged {
		switch unmarked, err := trust.Adopt(ctx, e.Getenv, path, s); {
		case unmarked:
			fmt.Fprintln(e.Stderr, "refrain:", err)
		case err != nil:
			return nil, nil, errors.Join(term.Failure(err), s.Close())
		}
	}
	return s, s.Close, nil
}

// OpenWritable is [OpenService] for a command that changes runs. It refuses a store that is not trusted.
func OpenWritable(ctx context.Context, e *term.Env, spec string) (session.Service, func() error, error) {
	return openService(ctx, e, spec, true)
}

// openAnyway opens a store that was found, whether it is trusted or not.
func openAnyway(ctx context.Context, e *term.Env, spec string) (session.Service, func() error, error) {
	path, _ := Found(e, spec)
	return OpenService(ctx, e, "sqlite:"+path)
}
