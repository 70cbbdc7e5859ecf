// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

const (
	putOpen = `INSERT INTO open_runs (session) VALUES (?) ON CONFLICT (session) DO NOTHING`
	cutOpen = `DELETE FROM open_runs WHERE session = ?`

	// Each column is a query of its own, because the database may execute a join by reading all sessions. The second
	// parameter is true if the caller wants the runs of all users.
	selectOpen = `SELECT
	(SELECT s.user_id FROM sessions s WHERE s.id = o.session AND s.app = ? AND (? OR s.user_id = ?)),
	(SELECT s.name FROM sessions s WHERE s.id = o.session),
	(SELECT e.seq FROM events e WHERE e.session = o.session ORDER BY e.seq DESC LIMIT 1),
	(SELECT e.time FROM events e WHERE e.session = o.session ORDER BY e.seq DESC LIMIT 1),
	(SELECT t.value FROM state t WHERE t.session = o.session AND t.key = '` + mark.KeyRun + `')
FROM open_runs o`
)

// setOpen adds a session to the table of open runs, or removes it if its run is over. run is the JSON of the key [mark.KeyRun].
func (t *tx) setOpen(id int64, run []byte) error {
	var text string
	var r mark.Run
	put := cutOpen
	if json.Unmarshal(run, &text) == nil && json.Unmarshal([]byte(text), &r) == nil && !r.Status.IsFinal() {
		put = putOpen
	}
	_, err := t.exec(put, id)
	return err
}

// ListOpen returns the sessions whose last run is not over. See store.OpenLister.
func (s *Store) ListOpen(ctx context.Context, req *session.ListRequest) (*session.ListResponse, error) {
	return s.lists(ctx, "list open runs", req, func(q *snapshot) ([]session.Session, error, error) { return q.listOpen(req) })
}

// listOpen reads the sessions whose last run is not over. It omits sessions whose run cannot be read, and names them in damaged.
func (q *snapshot) listOpen(req *session.ListRequest) (list []session.Session, damaged, err error) {
	rows, err := q.query(selectOpen, req.AppName, req.UserID == "", req.UserID)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var user, name sql.NullString
		var seq, updated sql.NullInt64
		var run []byte
		if err := rows.Scan(&user, &name, &seq, &updated, &run); err != nil {
			return nil, nil, err
		}
		if !user.Valid || !seq.Valid { // a session of another user or application, or without events
			continue
		}
		val, bad := decodeValue(mark.KeyRun, run)
		one := session.NewView(session.ViewConfig{AppName: req.AppName, UserID: user.String,
			SessionID: name.String, LastSeq: seq.Int64, Updated: time.UnixMicro(updated.Int64),
			State: map[string]any{mark.KeyRun: val}})
		if bad == nil && session.RunOf(one) == nil {
			bad = fmt.Errorf("the stored value of state key %q is damaged: it describes no run", mark.KeyRun)
		}
		if bad != nil {
			damaged = errors.Join(damaged, fmt.Errorf("session %q of user %q is left out (restore the database from a backup): %w",
				name.String, user.String, bad))
			continue
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b session.Session) int {
		return cmp.Or(strings.Compare(a.UserID(), b.UserID()), strings.Compare(a.ID(), b.ID()))
	})
	return list, damaged, rows.Err()
}
