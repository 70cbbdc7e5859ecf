// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// Dialect is what differs between the databases: some words of SQL, the migrations, a time limit, and the
// handling of errors and of changes by other processes.
type Dialect struct {
	// Name is the database for people, such as "SQLite database /tmp/x.db".
	Name string
	// Migrations holds the files 0001_words.sql, 0002_words.sql and so on.
	Migrations fs.FS
	// Tables is a query that counts the tables in the database, including those of other programs.
	Tables string
	// Numbered is true if placeholders are $1, $2 and so on, not ?.
	Numbered bool
	// Begin is the statement that begins a transaction that writes. Snapshot begins a transaction that reads the
	// database as it is at one point in time.
	Begin, Snapshot string
	// Lock is the statement that prevents migrations by other processes until the transaction ends. It is
	// empty if Begin does that.
	Lock string
	// Now is the SQL expression for the time of the database, in microseconds since 1970.
	Now string
	// Share is the end of a SELECT from sessions s. It prevents changes of the selected row by other transactions
	// until this one ends. It is empty if the database has only one writer at a time.
	Share string
	// Insert is the beginning of an INSERT that ignores a row with a NULL in a column that is NOT NULL, such as
	// "INSERT OR IGNORE". It is empty if the database has no such form.
	Insert string
	// Timeout is the time limit of one attempt to write. It is 0 if the database always answers, because then no
	// statement has to be interrupted.
	Timeout time.Duration

	// Classify returns whether the failed operation can be tried again.
	Classify func(error) Class
	// Explain returns an error whose text tells the user what to do. It may return the error
	// unchanged.
	Explain func(error) error
	// Listen calls changed with the row ID of each session that another process has changed, until the context
	// ends. If it does not know the session, it calls changed(0). Its first call is changed(0), as soon as it cannot
	// miss a later change.
	Listen func(ctx context.Context, changed func(session int64))
	// Committed is called after each commit, before the callers and the watchers are notified. It can be nil.
	Committed func()
	// Closing is called when the store is closed and no call uses the database any more, before the connections are
	// closed. It can be nil.
	Closing func()
}

// Class says whether an operation that failed with an error of the database can be tried again.
type Class int

const (
	// Final: the operation would fail again.
	Final Class = iota
	// Retryable: the database did nothing, and the operation may succeed later.
	Retryable
	// ConnectionLost: the connection broke. If it broke during a commit, it is unknown whether the database committed the
	// transaction.
	ConnectionLost
)

// sql translates a statement to the dialect. It replaces {now}, {share} and {insert} by the dialect's words, and ? by
// numbered placeholders if the dialect has them.
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
