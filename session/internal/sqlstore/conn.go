// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
)

// conn is a connection that the store keeps, with its prepared statements. Most statements take less time than to get a
// connection from the pool and to let package sql watch a context, so the store does neither for each call. One
// goroutine at a time uses a conn.
type conn struct {
	store *Store
	pool  *sql.DB
	ctx   context.Context // of the present call or transaction

	sql   *sql.Conn // nil: not connected
	stmts map[string]*sql.Stmt
}

func (c *conn) connect() error {
	if c.sql != nil {
		return nil
	}
	conn, err := c.pool.Conn(c.ctx)
	if err != nil {
		return err
	}
	c.sql, c.stmts = conn, make(map[string]*sql.Stmt)
	return nil
}

// rollback rolls the transaction back. If ROLLBACK fails, it closes the connection, because that ends the
// transaction too.
func (c *conn) rollback() {
	if _, err := c.exec("ROLLBACK"); err != nil {
		c.disconnect()
	}
}

// disconnect closes the connection and its statements. The next use connects again.
func (c *conn) disconnect() {
	if c.sql == nil {
		return
	}
	for _, stmt := range c.stmts {
		stmt.Close()
	}
	_ = c.sql.Raw(func(any) error { return driver.ErrBadConn }) // makes the pool close the connection instead of reusing it
	_ = c.sql.Close()
	c.sql, c.stmts = nil, nil
}

// exec runs a statement, and returns the number of rows that it changed.
func (c *conn) exec(text string, args ...any) (int64, error) {
	stmt, err := c.stmt(text)
	if err != nil {
		return 0, err
	}
	res, err := stmt.ExecContext(c.ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// query runs a statement that yields rows.
func (c *conn) query(text string, args ...any) (*sql.Rows, error) {
	stmt, err := c.stmt(text)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(c.ctx, args...)
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

// stmt returns the prepared statement for a text, and prepares it at its first use.
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
