// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/internal/values/caserun"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
)

const (
	putState = `INSERT INTO state (session, key, value) VALUES (?, ?, ?)
ON CONFLICT (session, key) DO UPDATE SET value = excluded.value`
	cutState = `DELETE FROM state WHERE session = ? AND key = ?`

	putUserState = `INSERT INTO user_state (app, user_id, key, value) VALUES (?, ?, ?, ?)
ON CONFLICT (app, user_id, key) DO UPDATE SET value = excluded.value`
	cutUserState = `DELETE FROM user_state WHERE app = ? AND user_id = ? AND key = ?`

	putAppState = `INSERT INTO app_state (app, key, value) VALUES (?, ?, ?)
ON CONFLICT (app, key) DO UPDATE SET value = excluded.value`
	cutAppState = `DELETE FROM app_state WHERE app = ? AND key = ?`

	selectState = `SELECT key, value FROM app_state WHERE app = ?
UNION ALL SELECT key, value FROM user_state WHERE app = ? AND user_id = ?
UNION ALL ` + selectPrivateState
	selectPrivateState = `SELECT key, value FROM state WHERE session = ?`
)

// stateQuery returns the query for the state of a session with the ID of its row, and its arguments. A case-run shares no state.
func stateQuery(key lease.Key, id int64) (text string, args []any) {
	if caserun.Is(key.SessionID) {
		return selectPrivateState, []any{id}
	}
	return selectState, []any{key.AppName, key.AppName, key.UserID, id}
}

// setState writes the changed keys of a state, each to the table of its prefix, and those of a case-run to the table of sessions. For the
// key of the run it also calls setOpen.
func (t *tx) setState(key lease.Key, id int64, state []value) error {
	private := caserun.Is(key.SessionID)
	for _, v := range state {
		put, cut := putState, cutState
		args := []any{id, v.key, v.json}
		switch {
		case private:
		case strings.HasPrefix(v.key, session.KeyPrefixApp):
			put, cut, args = putAppState, cutAppState, []any{key.AppName, v.key, v.json}
		case strings.HasPrefix(v.key, session.KeyPrefixUser):
			put, cut, args = putUserState, cutUserState, []any{key.AppName, key.UserID, v.key, v.json}
		}
		if v.json == nil {
			put, args = cut, args[:len(args)-1]
		}
		if _, err := t.exec(put, args...); err != nil {
			return err
		}
		if v.key == mark.KeyRun {
			if err := t.setOpen(id, v.json); err != nil {
				return err
			}
		}
	}
	return nil
}

// state runs a query for the keys of a state and returns the state.
func (c *conn) state(text string, args ...any) (map[string]any, error) {
	state := make(map[string]any)
	rows, err := c.query(text, args...)
	if err == nil {
		err = eachValue(rows, nil, func(key string, val any) { state[key] = val })
	}
	return state, err
}

// decodeValue decodes the stored value of a state key. A damaged value is a refusal.
func decodeValue(key string, data []byte) (any, error) {
	val, err := session.PlainJSON(data)
	if err != nil {
		return nil, refuse(fmt.Errorf("the stored value of state key %q is damaged; restore the database from a backup: %w", key, err))
	}
	return val, nil
}
