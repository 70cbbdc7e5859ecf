// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// connector connects package database/sql with PostgreSQL over pgconn. It supports what the store uses: prepared
// statements with integers, texts, bytes and booleans. The driver of pgx knows all types of PostgreSQL, which are 3 MB of
// the command.
type connector struct{ config *pgconn.Config }

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	pg, err := pgconn.ConnectConfig(ctx, c.config)
	if err != nil {
		return nil, err
	}
	return &conn{pg: pg}, nil
}

// Driver implements driver.Connector.
func (c connector) Driver() driver.Driver { return c }

// Open implements driver.Driver.
func (connector) Open(string) (driver.Conn, error) { return nil, errors.ErrUnsupported }

// conn is a connection. One goroutine uses it at a time.
type conn struct {
	pg       *pgconn.PgConn
	prepared int       // how many statements were prepared, for their names
	used     time.Time // when package sql took it last
}

func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	c.prepared++
	desc, err := c.pg.Prepare(ctx, "s"+strconv.Itoa(c.prepared), query, nil)
	if err != nil {
		return nil, err
	}
	s := &stmt{conn: c, desc: desc}
	for _, f := range desc.Fields {
		format := int16(pgproto3.TextFormat)
		if f.DataTypeOID == oidBytes {
			format = pgproto3.BinaryFormat
		}
		s.formats = append(s.formats, format)
	}
	return s, nil
}

// ExecContext runs statements without arguments, also several at once.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if len(args) > 0 {
		return nil, driver.ErrSkip // package sql prepares the statement
	}
	_, err := c.pg.Exec(ctx, query).ReadAll()
	return driver.ResultNoRows, err
}

// Begin implements driver.Conn. The store begins its transactions with statements.
func (c *conn) Begin() (driver.Tx, error) { return nil, errors.ErrUnsupported }

// IsValid reports whether the connection can be used again.
func (c *conn) IsValid() bool { return !c.pg.IsClosed() && c.pg.TxStatus() == 'I' }

// ResetSession gives up a connection that the server has closed, perhaps because the server was restarted. Whether that is
// so is asked of the server if the connection was not taken for a second.
func (c *conn) ResetSession(ctx context.Context) error {
	idle := time.Since(c.used)
	c.used = time.Now()
	if !c.IsValid() || idle > time.Second && c.pg.Ping(ctx) != nil {
		return driver.ErrBadConn
	}
	return nil
}

func (c *conn) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	return c.pg.Close(ctx)
}

// goodbye bounds how long closing a statement or a connection waits for the server.
const goodbye = 5 * time.Second

// stmt is a prepared statement. Of its results, bytes come as they are, and all others as text.
type stmt struct {
	conn    *conn
	desc    *pgconn.StatementDescription
	formats []int16
}

func (s *stmt) NumInput() int { return len(s.desc.ParamOIDs) }

func (s *stmt) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	return s.conn.pg.Deallocate(ctx, s.desc.Name)
}

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	result, err := s.run(ctx, args)
	if err != nil {
		return nil, err
	}
	tag, err := result.Close()
	return driver.RowsAffected(tag.RowsAffected()), err
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	result, err := s.run(ctx, args)
	if err != nil {
		return nil, err
	}
	return &rows{s.desc.Fields, result}, nil
}

// Exec and Query implement driver.Stmt. Package sql calls them only where a statement has no methods with a context.
func (s *stmt) Exec([]driver.Value) (driver.Result, error) { return nil, errors.ErrUnsupported }
func (s *stmt) Query([]driver.Value) (driver.Rows, error)  { return nil, errors.ErrUnsupported }

func (s *stmt) run(ctx context.Context, args []driver.NamedValue) (*pgconn.ResultReader, error) {
	values, formats := make([][]byte, len(args)), make([]int16, len(args))
	for i, arg := range args {
		switch v := arg.Value.(type) {
		case nil:
		case int64:
			values[i] = strconv.AppendInt(nil, v, 10)
		case string:
			values[i] = []byte(v)
		case bool:
			values[i] = strconv.AppendBool(nil, v)
		case []byte: // nil is NULL
			values[i], formats[i] = v, pgproto3.BinaryFormat
		default:
			return nil, fmt.Errorf("argument %d has type %T, which the store has no use for", i+1, v)
		}
	}
	return s.conn.pg.ExecStatement(ctx, s.desc, values, formats, s.formats), nil
}

// The types of results that do not become a string, as the table pg_type of a server numbers them.
const (
	oidBool  = 16
	oidBytes = 17
	oidInt8  = 20
	oidInt2  = 21
	oidInt4  = 23
)

// rows are the result of a query.
type rows struct {
	fields []pgconn.FieldDescription
	result *pgconn.ResultReader
}

func (r *rows) Columns() (names []string) {
	for _, f := range r.fields {
		names = append(names, f.Name)
	}
	return names
}

func (r *rows) Close() error {
	_, err := r.result.Close()
	return err
}

func (r *rows) Next(row []driver.Value) (err error) {
	if !r.result.NextRow() {
		if err := r.Close(); err != nil {
			return err
		}
		return io.EOF
	}
	for i, v := range r.result.Values() {
		switch {
		case v == nil:
			row[i] = nil
		case r.fields[i].DataTypeOID == oidBytes:
			row[i] = bytes.Clone(v) // the next row overwrites it
		case r.fields[i].DataTypeOID == oidBool:
			row[i] = string(v) == "t"
		case r.fields[i].DataTypeOID == oidInt8, r.fields[i].DataTypeOID == oidInt4, r.fields[i].DataTypeOID == oidInt2:
			if row[i], err = strconv.ParseInt(string(v), 10, 64); err != nil {
				return err
			}
		default:
			row[i] = string(v)
		}
	}
	return nil
}
