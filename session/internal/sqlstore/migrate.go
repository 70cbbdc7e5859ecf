// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// migrate updates the tables to the newest version. Several processes may call it at the same time: the first one runs
// the migrations, and the others wait for it.
func (s *Store) migrate(ctx context.Context) error {
	files, err := fs.Glob(s.dialect.Migrations, "*.sql")
	if err != nil {
		return err
	}
	for wait := s.patience(); ; wait.pause(ctx) {
		err := s.tryMigrate(ctx, files)
		if err == nil {
			return nil
		}
		if end := wait.over(ctx, err); end != nil {
			return end
		}
	}
}

// tryMigrate runs the missing migrations once, in one transaction.
func (s *Store) tryMigrate(ctx context.Context, files []string) (err error) {
	conn, err := s.writer.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	run := func(text string) error {
		_, err := conn.ExecContext(ctx, text)
		return err
	}
	if err := run(s.dialect.Begin); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		}
	}()
	if s.dialect.Lock != "" {
		if err := run(s.dialect.Lock); err != nil {
			return err
		}
	}
	version, err := s.version(ctx, conn)
	if err != nil {
		return err
	}
	if version > len(files) {
		return newer(version, len(files))
	}
	for i, name := range files {
		if n, _, _ := strings.Cut(name, "_"); n != fmt.Sprintf("%04d", i+1) {
			return refuse(fmt.Errorf("migration %s is number %d", name, i+1))
		}
		if i < version {
			continue
		}
		text, err := fs.ReadFile(s.dialect.Migrations, name)
		if err != nil {
			return refuse(err)
		}
		if err := run(string(text)); err != nil {
			return fmt.Errorf("migration %s: %w", name, err)
		}
		if err := run("INSERT INTO refrain_schema (version) VALUES (" + strconv.Itoa(i+1) + ")"); err != nil {
			return err
		}
	}
	return run("COMMIT")
}

// current returns an error if the tables do not have the newest version. It changes nothing.
func (s *Store) current(ctx context.Context) error {
	files, err := fs.Glob(s.dialect.Migrations, "*.sql")
	if err != nil {
		return err
	}
	var version int
	err = s.reader.QueryRowContext(ctx, "SELECT COALESCE(max(version), 0) FROM refrain_schema").Scan(&version)
	switch {
	case err != nil:
		return s.explain(err)
	case version < len(files):
		return refuse(fmt.Errorf("its tables have the older version %d and it cannot be written: open it once as a "+
			"user with write permission, such as with refrain runs; "+
			"that brings them to version %d", version, len(files)))
	case version > len(files):
		return newer(version, len(files))
	}
	return nil
}

func newer(version, known int) error {
	return refuse(fmt.Errorf("its tables have version %d, and this program supports versions up to %d: use a newer refrain, "+
		"or another database", version, known))
}

// version returns the version of the tables. In an empty database, it creates the table refrain_schema, which holds
// the version, and returns 0.
func (s *Store) version(ctx context.Context, conn *sql.Conn) (int, error) {
	var tables, version int
	if err := conn.QueryRowContext(ctx, s.dialect.Tables).Scan(&tables); err != nil {
		return 0, err
	}
	if tables == 0 {
		_, err := conn.ExecContext(ctx, "CREATE TABLE refrain_schema (version INTEGER NOT NULL PRIMARY KEY)")
		return 0, err
	}
	err := conn.QueryRowContext(ctx, "SELECT COALESCE(max(version), 0) FROM refrain_schema").Scan(&version)
	if err != nil && s.dialect.Classify(err) == Final {
		return 0, refuse(fmt.Errorf("it holds tables of another program: use another database (%w)",
			s.dialect.Explain(err)))
	}
	return version, err
}
