// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// Dialect is what tells one database from another: some words of SQL, and three
// functions.
type Dialect struct {
	// Name is the database for people, such as "SQLite database /tmp/x.db".
	Name string
	// Migrations holds the files 0001_words.sql, 0002_words.sql and so on.
	Migrations fs.FS
	// Tables counts the tables that are there already, whosever they are.
	Tables string
	// Numbered says that placeholders are $1, $2 and so on, not ?.
	Numbered bool
	// Begin starts a transaction that writes, and Snapshot one that reads the database as it
	// is at one point in time.
	Begin, Snapshot string
	// Lock keeps other processes from migrating until the transaction ends;
	// empty if Begin does.
	Lock string
	// Now is the database's clock, in microseconds since 1970.
	Now string
	// Share ends a SELECT from sessions s, and keeps its row from being changed
	// by others until the transaction ends; empty if there is one writer.
	Share string
	// Insert begins an INSERT that leaves out a row with a NULL where there may be none, as "INSERT OR
	// IGNORE" does; empty if the database has no such words.
	Insert string
	// Timeout bounds the tries to write; 0 where the database always answers, so that no
	// statement has to be interrupted.
	Timeout time.Duration

	// Classify says what can be done about an error.
	Classify func(error) Class
	// Explain puts an error into words that say what to do. It may return it as
	// it is.
	Explain func(error) error
	// Listen calls changed for each session that another process changed, or
	// with 0 where it does not know which, until the context ends. It starts
	// with changed(0) as soon as nothing can escape it any more.
	Listen func(ctx context.Context, changed func(session int64))
	// Committed is called after each commit, before anybody hears of it; nil: nothing is.
	Committed func()
	// Closing is called once nothing uses the database any more, before its connections are closed; nil:
	// nothing is.
	Closing func()
}

// Class is what can be done about an error of the database.
type Class int

const (
	// Final: it would fail again.
	Final Class = iota
	// Again: it was not done, and may be later.
	Again
	// Lost: the connection broke. If that was told to commit, nobody knows
	// whether it did.
	Lost
)

// sql puts a statement into the dialect: ? becomes a numbered placeholder,
// {now}, {share} and {insert} the dialect's words.
func (d *Dialect) sql(text string) string {
	text = strings.NewReplacer("{now}", d.Now, "{share}", d.Share, "{insert}", d.Insert).Replace(text)
	if !d.Numbered {
		return text
	}
	var b strings.Builder
	n := 0
	for part := range strings.SplitSeq(text, "?") {
		if n > 0 {
			b.WriteByte('$')
			b.WriteString(strconv.Itoa(n))
		}
		b.WriteString(part)
		n++
	}
	return b.String()
}
