// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/internal/canonical"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
)

const (
	// The name and the status of a run are looked for in the stored value, so that no other is decoded.
	fromRuns = ` FROM sessions s JOIN state r ON r.session = s.id AND r.key = '` + mark.KeyRun + `'
LEFT JOIN events e ON e.session = s.id AND e.seq = (SELECT max(x.seq) FROM events x WHERE x.session = s.id)
WHERE s.app = ? AND s.user_id = ? AND (? OR {holds}) AND (? OR {holds})
AND (? OR s.name = ? OR substr(s.name, 1, ?) = ?) AND COALESCE(e.time, s.created) > ?`
	countRuns  = `SELECT count(*)` + fromRuns
	selectRuns = `SELECT s.name, COALESCE(e.seq, 0), COALESCE(e.time, s.created), r.value` + fromRuns + `
AND (COALESCE(e.time, s.created) < ? OR COALESCE(e.time, s.created) = ? AND s.name > ?)
ORDER BY COALESCE(e.time, s.created) DESC, s.name LIMIT ?`
)

// ListRuns lists runs page by page. See store.RunLister.
func (s *Store) ListRuns(ctx context.Context, req *store.RunsRequest) (*store.RunsResponse, error) {
	if req == nil || req.AppName == "" || req.UserID == "" {
		return nil, fmt.Errorf("list runs: %w: app name and user ID are required", session.ErrInvalid)
	}
	if err := valid(req.AppName, req.UserID, req.SessionID, req.Prefix, req.After.SessionID); err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	resp := &store.RunsResponse{}
	err := s.read(ctx, func(q *snapshot) (err error) {
		resp.Sessions, resp.Total, err = q.listRuns(req)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return resp, nil
}

func (q *snapshot) listRuns(req *store.RunsRequest) (list []session.Session, total int, err error) {
	since, before, limit := int64(math.MinInt64), int64(math.MaxInt64), int64(math.MaxInt64)
	if !req.Since.IsZero() {
		since = req.Since.UnixMicro()
	}
	if req.After != (store.RunPlace{}) {
		before = req.After.Updated.UnixMicro()
	}
	if req.Limit > 0 {
		limit = int64(req.Limit)
	}
	prefix := int64(utf8.RuneCountInString(req.Prefix))
	if prefix == 0 {
		prefix = 1 // no name of a session has an empty beginning
	}
	args := []any{req.AppName, req.UserID, req.Name == "", runHas("name", req.Name), req.Status == "", runHas("status", string(req.Status)),
		req.SessionID == "" && req.Prefix == "", req.SessionID, prefix, req.Prefix, since}
	if _, err := q.row(countRuns, args, &total); err != nil {
		return nil, 0, err
	}
	rows, err := q.query(selectRuns, append(args, before, before, req.After.SessionID, limit)...)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		cfg := session.ViewConfig{AppName: req.AppName, UserID: req.UserID}
		var updated int64
		var run []byte
		if err := rows.Scan(&cfg.SessionID, &cfg.LastSeq, &updated, &run); err != nil {
			return nil, 0, err
		}
		val, err := decodeValue(mark.KeyRun, run)
		if err != nil {
			return nil, 0, err
		}
		cfg.Updated, cfg.State = time.UnixMicro(updated), map[string]any{mark.KeyRun: val}
		list = append(list, session.NewView(cfg))
	}
	return list, total, rows.Err()
}

// runHas returns what the stored value of a run holds if a field of the run has that value. The value is JSON
// in a JSON string; a quotation mark within a text of the run is escaped twice, and no such text can look so.
func runHas(field, value string) []byte {
	text, _ := json.Marshal(value) // a string has JSON
	quoted := canonical.AppendString(nil, `"`+field+`":`+string(text))
	return quoted[1 : len(quoted)-1]
}
