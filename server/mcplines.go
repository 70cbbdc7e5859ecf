// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// mcpLines is the connection of ServeMCP below the SDK, which ends at the first line that it cannot
// decode. Read passes on the lines that are messages. It answers any other line with an error and
// goes on. It skips empty lines.
type mcpLines struct {
	in   *bufio.Reader
	most int    // bytes of a line
	rest []byte // of what the SDK has not read yet

	mu  sync.Mutex // guards out
	out io.Writer
}

func newMCPLines(in io.Reader, out io.Writer, most int) *mcpLines {
	return &mcpLines{in: bufio.NewReader(in), most: most, out: out}
}

// Read passes on messages, one a line.
func (l *mcpLines) Read(b []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err := l.line()
		if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
			if err := l.refuse(refused); err != nil {
				return 0, err
			}
			continue
		}
		if err != nil {
			return 0, err
		}
		l.rest = line
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// line reads one line and returns its messages; nothing if the line is empty. A *jsonrpc.Error
// refuses the line.
func (l *mcpLines) line() ([]byte, error) {
	var line []byte
	large := false
	for {
		part, err := l.in.ReadSlice('\n')
		if large = large || len(line)+len(part) > l.most; large {
			line = nil
		} else {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && !large && len(line) == 0 {
			return nil, err
		}
		break // an error comes again with the next line
	}
	if large {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: fmt.Sprintf("the line is too long: the limit is %d bytes", l.most)}
	}
	line = bytes.Trim(line, " \t\r\n")
	if len(line) == 0 {
		return nil, nil
	}
	if !json.Valid(line) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "the line is not JSON: send one whole message a line"}
	}
	return messages(line)
}

// messages returns the messages of a line, one a line. It takes a batch, which older versions of the
// protocol have, as its messages, each of which is answered by itself.
func messages(line []byte) ([]byte, error) {
	batch := []json.RawMessage{line}
	if line[0] == '[' {
		if err := json.Unmarshal(line, &batch); err != nil || len(batch) == 0 {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the batch has no message"}
		}
	}
	var all []byte
	for _, one := range batch {
		if _, err := jsonrpc.DecodeMessage(one); err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("the line is no JSON-RPC message: %v", err)}
		}
		all = append(append(all, one...), '\n')
	}
	return all, nil
}

// refuse answers a line whose ID is not known.
func (l *mcpLines) refuse(why *jsonrpc.Error) error {
	answer, err := json.Marshal(struct {
		Version string         `json:"jsonrpc"`
		ID      any            `json:"id"`
		Error   *jsonrpc.Error `json:"error"`
	}{"2.0", nil, why})
	if err != nil {
		return err
	}
	_, err = l.Write(append(answer, '\n'))
	return err
}

// Write writes an answer of the SDK, which is a line.
func (l *mcpLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(b)
}

// Close leaves the reader and the writer open, because the caller of ServeMCP owns them.
func (*mcpLines) Close() error { return nil }
