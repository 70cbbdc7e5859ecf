// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/model/internal/wire"
)

// eventsOf are the events of a stream, as NAME=DATA, and its error.
func eventsOf(r io.Reader) ([]string, error) {
	var out []string
	for ev, err := range wire.Events(r) {
		if err != nil {
			return out, err
		}
		out = append(out, fmt.Sprintf("%s=%s", ev.Name, ev.Data))
	}
	return out, nil
}

// D21: server-sent events, as the HTML standard has them.
func TestEvents(t *testing.T) {
	long := strings.Repeat("läng ", 40_000) // more than bufio.Scanner takes
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"LF", "data: a\n\ndata: b\n\n", []string{"=a", "=b"}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"=a", "=b"}},
		{"CR", "data: a\r\rdata: b\r\r", []string{"=a", "=b"}},
		{"every kind of line end", "data: a\r\ndata: b\n\rdata: c\r\r", []string{"=a\nb", "=c"}},
		{"many blank lines", "\n\n\ndata: a\n\n\n\n", []string{"=a"}},
		{"comments", ": keep-alive\n\n:\ndata: a\n: in between\ndata: b\n\n", []string{"=a\nb"}},
		{"lines of data", "data: a\ndata:\ndata: b\n\n", []string{"=a\n\nb"}},
		{"names", "event: ping\ndata: a\n\ndata: b\n\nevent:x\nevent: y\ndata: c\n\n", []string{"ping=a", "=b", "y=c"}},
		{"a name without data", "event: ping\n\ndata: a\n\n", []string{"=a"}},
		{"blanks", "data:a\n\ndata:  b \n\n data: c\n\n", []string{"=a", "= b "}},
		{"fields without a colon", "data\n\ndata\ndata\n\n", []string{"=", "=\n"}},
		{"colons in the data", "data: {\"a\": 1}\n\n", []string{`={"a": 1}`}},
		{"other fields", "id: 7\nretry: 10\nnovel: x\nData: y\ndata: a\n\n", []string{"=a"}},
		{"a mark of byte order", "\uFEFFdata: a\n\n\uFEFFdata: b\n\n", []string{"=a"}},
		{"cut before the blank line", "data: a\n\ndata: b\n", []string{"=a"}},
		{"cut in a line", "data: a\n\ndata: b", []string{"=a"}},
		{"characters of many bytes", "data: 日本\U0001F600\n\n", []string{"=日本\U0001F600"}},
		{"bytes that are no text", "data: \xff\x00\n\n", []string{"=\xff\x00"}},
		{"a long line", "data: " + long + "\n\ndata: b\n\n", []string{"=" + long, "=b"}},
	} {
		for how, r := range map[string]io.Reader{
			"whole": strings.NewReader(tt.in), "by bytes": iotest.OneByteReader(strings.NewReader(tt.in)),
			"by halves": iotest.HalfReader(strings.NewReader(tt.in)), "with the end": iotest.DataErrReader(strings.NewReader(tt.in)),
		} {
			got, err := eventsOf(r)
			if err != nil {
				t.Errorf("%s, %s: %v", tt.name, how, err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s, %s: %s", tt.name, how, diff)
			}
		}
	}
}

// An event is there when its blank line is, whatever that ends in: it does not
// wait for the next byte.
func TestEventsDoNotWait(t *testing.T) {
	for _, end := range []string{"\n", "\r", "\r\n"} {
		r, w := io.Pipe()
		next := make(chan string)
		go func() {
			defer close(next)
			for ev := range wire.Events(r) {
				next <- string(ev.Data)
			}
		}()
		for _, text := range []string{"one", "two", "three"} {
			if _, err := fmt.Fprintf(w, "data: %s%s%s", text, end, end); err != nil {
				t.Fatal(err)
			}
			if got := <-next; got != text {
				t.Errorf("%q: got %q, want %q", end, got, text)
			}
		}
		w.Close()
		if got, ok := <-next; ok {
			t.Errorf("%q: got %q after the end", end, got)
		}
	}
}

// Who stops reading reads no further.
func TestEventsStop(t *testing.T) {
	r := io.MultiReader(strings.NewReader("data: a\n\n"), iotest.ErrReader(errors.New("read too far")))
	for ev, err := range wire.Events(r) {
		if err != nil || string(ev.Data) != "a" {
			t.Errorf("got %q, %v", ev.Data, err)
		}
		break
	}
}

// repeated repeats a text for ever.
type repeated string

func (r repeated) Read(p []byte) (int, error) {
	return copy(p, strings.Repeat(string(r), len(p)/len(r))), nil
}

func TestEventsThatFail(t *testing.T) {
	lost := errors.New("the line is dead")
	got, err := eventsOf(io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(lost)))
	if !errors.Is(err, lost) || cmp.Diff([]string{"=a"}, got) != "" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, text := range []string{"data: one line without an end ", "data: and another line\n"} {
		if got, err := eventsOf(repeated(text)); err == nil || !strings.Contains(err.Error(), "longer than") || got != nil {
			t.Errorf("%q: got %d events, %v", text, len(got), err)
		}
	}
}

// plainEvents is the standard's text, word for word, for streams that are there
// as a whole.
func plainEvents(in string) []string {
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(in), "\n")
	lines = lines[:len(lines)-1] // what follows the last end
	var out, data []string
	name := ""
	for i, line := range lines {
		if i == 0 {
			line = strings.TrimPrefix(line, "\uFEFF")
		}
		if line == "" {
			if data != nil {
				out = append(out, name+"="+strings.Join(data, "\n"))
			}
			name, data = "", nil
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			name = value
		case "data":
			data = append(data, value)
		}
	}
	return out
}

func FuzzEvents(f *testing.F) {
	f.Add("data: a\r\n\r\n: c\nevent: e\rdata\n\n")
	f.Add("\uFEFFdata: \xe6\x97\n\n")
	f.Add("event: a\n\ndata: b\n\ndata: c")
	f.Fuzz(func(t *testing.T, in string) {
		want := plainEvents(in)
		for _, r := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in)), iotest.DataErrReader(strings.NewReader(in))} {
			got, err := eventsOf(r)
			if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		}
	})
}
