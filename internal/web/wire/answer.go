// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/refrain-dev/refrain/internal/authoring/form"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// Answering makes a handler of an operation: its error becomes a problem.
func (x *Exchange) Answering(do func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler {
				panic(v)
			}
			x.Log.ErrorContext(r.Context(), "a request panicked", "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
			x.Refuse(w, r, problem.New(http.StatusInternalServerError, "internal", "The server could not do that", "a panic"))
		}()
		if err := do(w, r); err != nil {
			x.Refuse(w, r, err)
		}
	})
}

// Refuse answers with a problem. Nobody waits for the answer to a request that was canceled.
func (x *Exchange) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		return
	}
	p := problem.Of(err)
	p = new(*p) // it may be shared
	p.Detail = credential.Masked(p.Detail)
	if LanguageOf(r) == prose.Portuguese {
		p.Problems = slices.Clone(p.Problems)
		for i, one := range p.Problems {
			p.Problems[i] = form.ProblemInPortuguese(one)
		}
	}
	switch p.Status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusUnauthorized,
		http.StatusMisdirectedRequest, http.StatusTooManyRequests:
		x.Refusals.Add(r.Context(), strings.TrimPrefix(p.Type, "urn:refrain:"), "a request was refused", p.Title, r.RemoteAddr,
			"method", r.Method, "path", credential.Masked(r.URL.Path))
	}
	if p.Status >= 500 && p.Err != nil {
		x.Log.ErrorContext(r.Context(), "a request failed", "method", r.Method, "path", credential.Masked(r.URL.Path), "error", p.Detail)
	}
	for name, value := range p.Header {
		w.Header().Set(name, value)
	}
	body, err := progress.MarshalJSON(p)
	if err != nil {
		body = []byte(`{"type":"urn:refrain:internal","title":"The server could not do that","status":500}`)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n'))
}

// Send answers with JSON.
func (x *Exchange) Send(w http.ResponseWriter, status int, v any) error {
	body, err := progress.MarshalJSON(v)
	if err != nil {
		return err
	}
	SendText(w, status, body)
	return nil
}

// SendText answers with a JSON text.
func SendText(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
	_, _ = io.WriteString(w, "\n")
}

// Read reads the body of a request, which is JSON, into v. An unknown field is a mistake. An empty
// Body leaves v as it is.
func (x *Exchange) Read(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := x.Body(w, r, "application/json")
	if err != nil || len(body) == 0 {
		return err
	}
	return Decode(body, v)
}

func Decode(body []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return badBody(body, v, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return problem.Bad("the body has more than one JSON value: something follows the first")
	}
	return nil
}

// badBody says what is wrong with a body that cannot be read into v.
func badBody(body []byte, v any, err error) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return problem.Bad("the body is empty: send JSON")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return problem.Bad("the body is no whole JSON: it ends too early")
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return problem.Bad("the body is no JSON: byte %d: %v", syntax.Offset, syntax)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := cmp.Or(embedded().ReplaceAllString(wrong.Field, ""), "the body")
		return problem.Bad("%s must be %s and not %s", field, cmp.Or(kinds[wrong.Type.Kind()], "an object"), wrong.Value)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		if v, ok := v.(interface{ FieldFor(string) string }); ok && v.FieldFor(strings.Trim(name, `"`)) != "" {
			return problem.Bad("there is no field %s: its values belong in %s", name, v.FieldFor(strings.Trim(name, `"`)))
		}
		if near := suggest.Nearest(strings.Trim(name, `"`), namesOf(v)); near != "" {
			return problem.Bad("there is no field %s (did you mean %s?)", name, near)
		}
		return problem.Bad("there is no field %s", name)
	}
	return problem.Bad("read the body: %v", err)
}

// namesOf lists the fields in JSON of what v, a pointer to a struct, points to.
func namesOf(v any) (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v).Elem()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// embedded matches the names of embedded structs in a path, which package json writes but JSON does not have.
var embedded = lazyregexp.New(`\b[A-Z]\w*\.`)

// kinds names the kinds of Go types as JSON does; any other kind is an object.
var kinds = map[reflect.Kind]string{
	reflect.String: "text", reflect.Bool: "true or false", reflect.Int: "a whole number", reflect.Int64: "a whole number",
	reflect.Uint: "a whole number of at least 0", reflect.Float64: "a number", reflect.Slice: "a list",
}

// SendMasked answers with JSON without keys and passwords.
func (x *Exchange) SendMasked(w http.ResponseWriter, status int, v any) error {
	body, err := progress.MarshalJSON(v)
	if err != nil {
		return err
	}
	SendText(w, status, []byte(credential.Masked(string(body))))
	return nil
}

// Body reads a body of one of some types. A request that says no type may only be empty.
func (x *Exchange) Body(w http.ResponseWriter, r *http.Request, types ...string) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, x.MaxBody))
	if err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			Unread(w)
			return nil, err
		}
		return nil, problem.Bad("read the body: %v", err)
	}
	if len(body) == 0 {
		return nil, nil
	}
	given, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(types, given) {
		return nil, problem.New(http.StatusUnsupportedMediaType, "wrong_type", "The body has the wrong type",
			"send one of %s", strings.Join(types, ", "))
	}
	return body, nil
}

// unreadTime is how long a body may take that no handler reads. The answer does not wait for it.
const unreadTime = time.Second

// Unread says that nobody reads the rest of a body: the connection is closed behind the answer.
func Unread(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(unreadTime))
}

// LanguageOf is the language in which somebody wants to read: lang in the query, or what the browser
// says.
func LanguageOf(r *http.Request) prose.Language {
	return prose.LanguageOf(cmp.Or(r.URL.Query().Get("lang"), r.Header.Get("Accept-Language")))
}

// Chunk is how many bytes are written at once.
const Chunk = 32 << 10

// Stream answers with one JSON object or list, value by value and without keys and passwords, so that of a large
// one only a value at a time is in memory as JSON.
type Stream struct {
	out *jsontext.Encoder
	err error // the first one; nothing is written behind it
}

// Streamed answers with an object, which fill writes. If that fails, the client sees that the end is
// missing.
func (x *Exchange) Streamed(w http.ResponseWriter, r *http.Request, fill func(*Stream)) {
	x.streamed(w, r, func(t *Stream) { t.Object(fill) })
}

// StreamedList answers like [Exchange.Streamed], with a list.
func (x *Exchange) StreamedList(w http.ResponseWriter, r *http.Request, fill func(*Stream)) {
	x.streamed(w, r, func(t *Stream) { t.inside(jsontext.BeginArray, fill, jsontext.EndArray) })
}

func (x *Exchange) streamed(w http.ResponseWriter, r *http.Request, fill func(*Stream)) {
	w.Header().Set("Content-Type", "application/json")
	t := &Stream{out: jsontext.NewEncoder(w, jsontext.PreserveRawStrings(true), jsontext.AllowDuplicateNames(true))}
	fill(t)
	if t.err != nil {
		x.Log.Warn("an answer was cut off", "path", credential.Masked(r.URL.Path), "error", credential.Masked(t.err.Error()))
		panic(http.ErrAbortHandler)
	}
}

// State writes a state as a member, key by key.
func (t *Stream) State(state map[string]any) {
	t.Item("state")
	t.Object(func(t *Stream) {
		for _, key := range slices.Sorted(maps.Keys(state)) {
			t.Member(key, state[key])
		}
	})
}

// Member writes a member of an object.
func (t *Stream) Member(name string, value any) {
	t.Item(name)
	t.Item(value)
}

// List writes a member that is a list, whose items fill writes.
func (t *Stream) List(name string, fill func(*Stream)) {
	t.Item(name)
	t.inside(jsontext.BeginArray, fill, jsontext.EndArray)
}

// Object writes an element of a list that is an object, whose members fill writes.
func (t *Stream) Object(fill func(*Stream)) { t.inside(jsontext.BeginObject, fill, jsontext.EndObject) }

// Item writes an element of a list.
func (t *Stream) Item(value any) {
	text, err := progress.MarshalJSON(value)
	plain := string(text)
	if masked := credential.Masked(plain); masked != plain {
		text = []byte(masked)
	}
	if t.Fail(err); t.err == nil {
		t.err = t.out.WriteValue(text)
	}
}

func (t *Stream) inside(opening jsontext.Token, fill func(*Stream), closing jsontext.Token) {
	t.token(opening)
	fill(t)
	t.token(closing)
}

func (t *Stream) token(one jsontext.Token) {
	if t.err == nil {
		t.err = t.out.WriteToken(one)
	}
}

// Fail ends the answer, whose end is then missing.
func (t *Stream) Fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

// Refusals says which requests were refused, and counts them: the first of a kind is logged at once, and
// of those that follow within a minute only how many they were.
type Refusals struct {
	Log  *slog.Logger
	Told func(kind string) // of each; may be nil

	mu    sync.Mutex
	kinds map[string]*refusals // of this minute
	end   *time.Timer          // of the minute; nil if there is none
}

// refusals are requests that were refused for one reason.
type refusals struct {
	why     string
	further int    // besides the one that was logged
	from    string // of the last
}

const refusedEvery = time.Minute

// Add takes one of a kind. why says it for people, and attrs what else is known of it.
func (r *Refusals) Add(ctx context.Context, kind, message, why, from string, attrs ...any) {
	if r.Told != nil {
		r.Told(kind)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.kinds[kind]; one != nil {
		one.further++
		one.from = from
		return
	}
	if r.end == nil {
		r.end = time.AfterFunc(refusedEvery, r.Flush)
		r.kinds = make(map[string]*refusals)
	}
	r.kinds[kind] = &refusals{why: why}
	r.Log.WarnContext(ctx, message, append([]any{"why", why, "from", from}, attrs...)...)
}

// Flush ends the minute: it logs how many more there were.
func (r *Refusals) Flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end != nil {
		r.end.Stop()
		r.end = nil
	}
	for _, kind := range slices.Sorted(maps.Keys(r.kinds)) {
		if one := r.kinds[kind]; one.further > 0 {
			r.Log.Warn("more requests were refused", "why", one.why, "count", one.further, "within", refusedEvery, "last_from", one.from)
		}
	}
	r.kinds = nil
}
