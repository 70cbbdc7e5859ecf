// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
)

// conn is a connection that the store keeps, with its statements: to take one from the pool for
// each call, and to have package sql watch a context, costs more than most statements do. One
// goroutine uses it at a time.
type conn struct {
	store *Store
	pool  *sql.DB
	ctx   context.Context // of what is under way

	sql      *sql.Conn // nil: not connected
	stmts    map[string]*sql.Stmt
	prepared map[string]driver.Stmt // of raw
	args     []driver.NamedValue
}

func (c *conn) connect() error {
	if c.sql != nil {
		return nil
	}
	conn, err := c.pool.Conn(c.ctx)
	if err != nil {
		return err
	}
	c.sql, c.stmts, c.prepared = conn, make(map[string]*sql.Stmt), make(map[string]driver.Stmt)
	return nil
}

// rollback ends the transaction. Where that does not work, the connection is
// given up, which ends it too.
func (c *conn) rollback() {
	if _, err := c.exec("ROLLBACK"); err != nil {
		c.disconnect()
	}
}

func (c *conn) disconnect() {
	if c.sql == nil {
		return
	}
	for _, stmt := range c.stmts {
		stmt.Close()
	}
	_ = c.sql.Raw(func(any) error {
		for _, stmt := range c.prepared {
			stmt.Close()
		}
		return driver.ErrBadConn // so that it is not used again
	})
	_ = c.sql.Close()
	c.sql, c.stmts, c.prepared = nil, nil, nil
}

// exec runs a statement, and says how many rows it changed. Arguments are of types that drivers have.
func (c *conn) exec(text string, args ...any) (n int64, err error) {
	err = c.raw(text, func(stmt driver.Stmt) error {
		res, err := stmt.(driver.StmtExecContext).ExecContext(c.ctx, c.numbered(args...))
		if err == nil {
			n, err = res.RowsAffected()
		}
		return err
	})
	return n, err
}

// raw uses a statement without what package sql does for each.
func (c *conn) raw(text string, use func(stmt driver.Stmt) error) error {
	return c.sql.Raw(func(raw any) error {
		stmt := c.prepared[text]
		if stmt == nil {
			var err error
			stmt, err = raw.(driver.ConnPrepareContext).PrepareContext(c.ctx, c.store.dialect.sql(text))
			if err != nil {
				return err
			}
			c.prepared[text] = stmt
		}
		return use(stmt)
	})
}

// numbered are the arguments of a statement. They are valid until the next one's.
func (c *conn) numbered(args ...any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, arg := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: arg})
	}
	return c.args
}

// query runs a statement that yields rows.
func (c *conn) query(text string, args ...any) (*sql.Rows, error) {
	stmt, err := c.stmt(text)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(c.ctx, args...)
}

// each runs a statement that yields many rows, of so many columns, and has them read one by one. The
// row is valid until the next one.
func (c *conn) each(text string, columns int, read func(row []driver.Value) error, args ...any) error {
	return c.raw(text, func(stmt driver.Stmt) error {
		rows, err := stmt.(driver.StmtQueryContext).QueryContext(c.ctx, c.numbered(args...))
		if err != nil {
			return err
		}
		defer rows.Close()
		for row := make([]driver.Value, columns); ; {
			switch err := rows.Next(row); {
			case err == io.EOF:
				return nil
			case err != nil:
				return err
			}
			if err := read(row); err != nil {
				return err
			}
		}
	})
}

// row reads one row, and reports whether there is one.
func (c *conn) row(text string, args []any, dest ...any) (bool, error) {
	stmt, err := c.stmt(text)
	if err != nil {
		return false, err
	}
	err = stmt.QueryRowContext(c.ctx, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

func (c *conn) stmt(text string) (*sql.Stmt, error) {
	if stmt := c.stmts[text]; stmt != nil {
		return stmt, nil
	}
	stmt, err := c.sql.PrepareContext(c.ctx, c.store.dialect.sql(text))
	if err != nil {
		return nil, err
	}
	c.stmts[text] = stmt
	return stmt, nil
}
