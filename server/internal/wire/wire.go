// SPDX-License-Identifier: Apache-2.0

// Package wire reads requests and writes answers over HTTP, for all protocols of the server.
//
//	var req struct{ Text string }
//	if err := x.Read(w, r, &req); err != nil {
//		return err
//	}
//	return x.Send(w, http.StatusOK, map[string]any{"text": req.Text})
package wire

import "log/slog"

// Exchange reads requests and answers them.
type Exchange struct {
	// Log is told of internal errors, and MaxBody is the largest body of a request in bytes.
	Log     *slog.Logger
	MaxBody int64
	// Refusals counts the requests that were refused, and Replies has the answers to those with a key.
	Refusals *Refusals
	Replies  *Replies
}
