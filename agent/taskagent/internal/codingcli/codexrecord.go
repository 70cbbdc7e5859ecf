// SPDX-License-Identifier: Apache-2.0

package codingcli

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// codexReason is the line that recordCodex adds to the output of Codex. Codex prints the reason for a failure as a sentence
// only; its own record of the conversation has the reason in fields.
type codexReason struct {
	Type string `json:"type"` // codexRecord
	// Info is a word, such as usage_limit_exceeded, or an object whose one field holds an http_status_code.
	Info   json.RawMessage `json:"codex_error_info"`
	Limits struct {
		Primary   codexLimit `json:"primary"`
		Secondary codexLimit `json:"secondary"`
	} `json:"rate_limits"`
}

type codexLimit struct {
	Used   float64 `json:"used_percent"`
	Resets float64 `json:"resets_at"` // in seconds since 1970
}

const codexRecord = "refrain.record"

// recordLength is the number of bytes that are read from the end of a record.
const recordLength = 1 << 20

// recordCodex returns a line with the reason for which a conversation has failed, from Codex's record of it. It returns nil
// if the conversation has not failed or the reason is not found. The record is below the folder of Codex, in
// sessions/YEAR/MONTH/DAY/rollout-TIME-ID.jsonl.
func recordCodex(env []string, stdout []byte) []byte {
	id, failed := "", false
	each(stdout, func(line []byte) {
		var l codexLine
		if json.Unmarshal(line, &l) == nil && l.Type == "thread.started" {
			id = l.Thread
		}
		failed = failed || l.Type == "turn.failed"
	})
	home := variable(env, "CODEX_HOME")
	if user := variable(env, "HOME"); home == "" && user != "" {
		home = filepath.Join(user, ".codex")
	}
	if !failed || home == "" || id == "" || strings.Trim(id, "0123456789abcdef-") != "" {
		return nil
	}
	files, _ := fs.Glob(os.DirFS(home), "sessions/*/*/*/rollout-*-"+id+".jsonl")
	if len(files) != 1 {
		return nil
	}
	reason := codexReason{Type: codexRecord}
	each(endOf(filepath.Join(home, filepath.FromSlash(files[0]))), func(line []byte) {
		var l struct {
			Payload struct {
				Type   string          `json:"type"`
				Limits json.RawMessage `json:"rate_limits"`
				Error  struct {
					Info json.RawMessage `json:"codex_error_info"`
				} `json:"error"`
			} `json:"payload"`
		}
		if json.Unmarshal(line, &l) != nil {
			return
		}
		switch l.Payload.Type {
		case "task_complete":
			reason.Info = l.Payload.Error.Info
		case "token_count":
			_ = json.Unmarshal(l.Payload.Limits, &reason.Limits)
		}
	})
	if len(reason.Info) == 0 || len(reason.Info) > 1000 {
		return nil
	}
	line, err := json.Marshal(reason)
	if err != nil {
		return nil
	}
	return append(line, '\n')
}

// variable returns the value of a variable in an environment; "" if the variable is not in it. The last value counts.
func variable(env []string, name string) (value string) {
	for _, v := range env {
		if n, text, _ := strings.Cut(v, "="); n == name {
			value = text
		}
	}
	return value
}

// endOf returns the end of a file, from the beginning of a line on. It returns nil if path is not a regular file or cannot be
// read.
func endOf(path string) []byte {
	was, err := os.Lstat(path)
	if err != nil || !was.Mode().IsRegular() {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe in its place would block
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !os.SameFile(was, info) {
		return nil
	}
	from := max(0, info.Size()-recordLength)
	data, err := io.ReadAll(io.NewSectionReader(f, from, recordLength))
	if err != nil {
		return nil
	}
	if from > 0 {
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	return data
}

// outcome returns the outcome of a conversation that has failed.
func (r *codexReason) outcome() Outcome {
	var word string
	var status map[string]struct {
		Code int `json:"http_status_code"`
	}
	if json.Unmarshal(r.Info, &word) == nil {
		switch word {
		case "usage_limit_exceeded":
			return Limited
		case "unauthorized":
			return NotConfigured
		}
		return Failed
	}
	_ = json.Unmarshal(r.Info, &status)
	for _, s := range status {
		switch {
		case isLimit(s.Code):
			return Limited
		case slices.Contains(noAccess, s.Code):
			return NotConfigured
		}
	}
	return Failed
}

// until returns the time at which the last of the exceeded limits ends; zero if none is exceeded.
func (r *codexReason) until() (until time.Time) {
	for _, l := range []codexLimit{r.Limits.Primary, r.Limits.Secondary} {
		if l.Used >= 100 && epoch(l.Resets).After(until) {
			until = epoch(l.Resets)
		}
	}
	return until
}
