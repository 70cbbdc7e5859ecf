// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/runs/access"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/supervisor"
)

// StartArgs say what to run: a definition of the folder, or a text.
type StartArgs struct {
	Definition string         `json:"definition,omitempty" jsonschema:"the name of a definition; list_definitions lists them"`
	Text       string         `json:"text,omitempty" jsonschema:"a definition as YAML, in place of a name"`
	Input      string         `json:"input,omitempty" jsonschema:"the user's message; the default is the definition's query"`
	State      map[string]any `json:"state,omitempty" jsonschema:"values for the definition's inputs, and for keys of its state"`
	Model      string         `json:"model,omitempty" jsonschema:"a model such as openai/gpt-4o for the agents that name none"`
	Limits     Limits         `json:"limits,omitzero" jsonschema:"limits in place of those of the definition"`
}

// FieldFor returns the field for what people give under another name, or "".
func (StartArgs) FieldFor(name string) string {
	if name == "inputs" || name == "parameters" {
		return "state"
	}
	return ""
}

// StartRequest asks for a run.
type StartRequest struct {
	StartArgs
	// ID is the run's ID; if it is empty, one is made. The ID of a run that has ended continues its conversation.
	ID string `json:"id"`
	// New refuses the ID of an existing run with session.ErrExists.
	New bool `json:"-"`

	// Message is the A2A message that starts the run.
	Message *program.Message `json:"-"`
}

// Limits has the limits of package definition, with the time as text such as "90s".
type Limits struct {
	MaxIterations *uint          `json:"max_iterations,omitempty" jsonschema:"of the outermost loop"`
	Timeout       *string        `json:"timeout,omitempty" jsonschema:"a time such as 30m; 0s is no limit"`
	MaxModelCalls int            `json:"max_model_calls,omitempty"`
	Budget        *budget.Limits `json:"budget,omitempty" jsonschema:"cost in US dollars"`
}

// given returns the limits, checked.
func (l *Limits) given() (definition.Limits, error) {
	given := definition.Limits{MaxIterations: l.MaxIterations, MaxModelCalls: l.MaxModelCalls, Budget: l.Budget}
	if l.Timeout != nil {
		d, err := time.ParseDuration(*l.Timeout)
		if err != nil || d < 0 {
			return given, problem.Bad("limits.timeout %q: write a time such as 30m, or 0s for no limit", *l.Timeout)
		}
		given.Timeout = &d
	}
	if l.MaxModelCalls < 0 {
		return given, problem.Bad("limits.max_model_calls is negative")
	}
	if b := l.Budget; b != nil && (b.Calls < 0 || b.Tokens < 0 || b.Cost != nil && !(*b.Cost >= 0)) {
		return given, problem.Bad("limits.budget: a limit is negative")
	}
	return given, nil
}

// KeyedID returns the ID of the run that a request with an idempotency key starts.
func KeyedID(key string) string {
	sum := sha256.Sum256([]byte("run " + key))
	return "r_" + hex.EncodeToString(sum[:8])
}

// maxID is how many characters the ID of a run may have.
const maxID = 64

// CheckID returns an error for a string that cannot be the ID of a run.
func CheckID(id string) error {
	odd := strings.ContainsFunc(id, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.@", r))
	})
	if odd || len(id) > maxID || id == "last" || strings.HasPrefix(id, "-") || strings.Trim(id, ".") == "" {
		return problem.Bad("%q cannot be the ID of a run: use up to %d letters, digits and - _ . @", id, maxID)
	}
	return nil
}

// Start starts the run that a client asks for, and sets the ID of the request. With an idempotency
// key, a further request with the same key and text refers to the same run, even after a restart;
// again reports that the run existed. The run does not end with ctx.
func (r *Runs) Start(ctx context.Context, req *StartRequest, key string, text []byte) (again bool, err error) {
	err = r.Change(ctx, "start", func() (string, error) {
		if again, err = r.start(ctx, req, key, text); again {
			return "", err
		}
		return req.ID, err
	})
	return again, err
}

func (r *Runs) start(ctx context.Context, req *StartRequest, key string, text []byte) (again bool, err error) {
	if req.ID != "" {
		if err := CheckID(req.ID); err != nil {
			return false, err
		}
	}
	p, def, err := r.program(ctx, req.Definition, req.Text)
	if err != nil {
		return false, err
	}
	if key != "" {
		sum := sha256.Sum256(text)
		p.Request = hex.EncodeToString(sum[:])
		if req.ID == "" {
			req.ID = KeyedID(key)
		}
		switch was, known := r.startedBy(ctx, req.ID); {
		case known && was == p.Request:
			return true, nil
		case known && was != "":
			return false, ErrKeyUsed
		}
	}
	return false, r.launch(ctx, p, def, req)
}

// ErrKeyUsed refuses a key that another request has used.
var ErrKeyUsed = problem.New(http.StatusUnprocessableEntity, "key_used", "The Idempotency-Key was used already",
	"the other request had another body")

// Program reads a definition of the folder for a new run.
func (r *Runs) Program(ctx context.Context, name string) (*program.Program, *definition.Definition, error) {
	return r.program(ctx, name, "")
}

// program reads the definition of a new run.
func (r *Runs) program(ctx context.Context, name, text string) (*program.Program, *definition.Definition, error) {
	p := &program.Program{Program: r.Code.Name, DefaultModel: r.Getenv("REFRAIN_MODEL"), Served: true, Dir: r.Dir, Root: r.Dir}
	var def *definition.Definition
	switch {
	case (name == "") == (text == ""):
		return nil, nil, problem.Bad("give either the name of a definition, or its text")
	case text != "":
		if err := Permit(ctx, access.Author); err != nil {
			return nil, nil, err
		}
		file := path.Join(filepath.ToSlash(r.Dir), "definition.yaml")
		var err error
		if def, err = p.ReadIn(r.Folder.Parts(), file, "definition.yaml", []byte(text)); err != nil {
			return nil, nil, r.Here(err)
		}
		p.Untrusted = true
	default:
		file, data, err := r.Folder.Read(name)
		if err != nil {
			return nil, nil, err
		}
		if src, own := r.Folder.ownIn(file); own {
			def, err = p.ReadOwn(name, src)
		} else {
			def, err = p.ReadIn(r.Folder.FS(), path.Join(filepath.ToSlash(r.Dir), file), file, data)
		}
		if err == nil {
			err = r.accepted(ctx, p, def, nil)
		}
		if err != nil {
			return nil, nil, r.Here(err)
		}
	}
	if p.Untrusted {
		if err := r.Trusts(p, def, []byte(text)); err != nil {
			return nil, nil, err
		}
	}
	return p, def, nil
}

// launch starts a run of a program, and sets the ID of the request. The run does not end with ctx.
func (r *Runs) launch(ctx context.Context, p *program.Program, def *definition.Definition, req *StartRequest) error {
	if r.closing.Load() {
		return problem.New(http.StatusServiceUnavailable, "closing", "The server is stopping", "it starts no more runs")
	}
	given, err := req.Limits.given()
	if err != nil {
		return err
	}
	p.Limits = p.Limits.With(given)
	input := cmp.Or(req.Input, def.Query)
	if why := def.NeedsRequest(); why != "" && strings.TrimSpace(input) == "" {
		return problem.Bad("a run needs a request of its user: %s; give it as input", why)
	}
	p.Message = req.Message
	if p.Model = req.Model; p.Model != "" {
		if err := r.scriptIsHere(p.Model, "."); err != nil {
			return err
		}
		if script, ok := strings.CutPrefix(p.Model, "scripted/"); ok && !filepath.IsAbs(script) {
			p.Model = "scripted/" + filepath.Join(r.Dir, filepath.FromSlash(script))
		}
	}
	values, err := AsTexts(req.State)
	if err != nil {
		return err
	}
	state, err := def.InitialState(values)
	if err != nil {
		return err
	}
	req.ID, err = r.begin(ctx, p, def, supervisor.Request{
		SessionID: req.ID, New: req.New, Message: genai.NewContentFromText(input, genai.RoleUser), State: state,
	})
	return err
}

// StartIn starts a run of a definition of the folder in an existing session. A nil message means the definition's
// query. With streams, models answer in pieces. state returns the keys that the run sets in the session's state.
func (r *Runs) StartIn(ctx context.Context, id, name string, message *genai.Content, streams bool,
	state func(*definition.Definition) (map[string]any, error)) error {
	return r.change(ctx, "start", id, func() error { return r.startIn(ctx, id, name, message, streams, state) })
}

func (r *Runs) startIn(ctx context.Context, id, name string, message *genai.Content, streams bool,
	state func(*definition.Definition) (map[string]any, error)) error {
	if r.closing.Load() {
		return supervisor.ErrClosed
	}
	p, def, err := r.program(ctx, name, "")
	if err != nil {
		return err
	}
	p.Streams = streams
	req := supervisor.Request{SessionID: id, Message: message}
	if req.State, err = state(def); err != nil {
		return err
	}
	if err := r.fits(session.StateSize(req.State)); err != nil {
		return err
	}
	if message == nil {
		req.Message = genai.NewContentFromText(def.Query, genai.RoleUser)
	}
	req.Message.Role = cmp.Or(req.Message.Role, genai.RoleUser)
	_, err = r.begin(ctx, p, def, req)
	return err
}

// begin starts a run, here or in the cluster, and returns its ID.
func (r *Runs) begin(ctx context.Context, p *program.Program, def *definition.Definition, req supervisor.Request) (id string, err error) {
	if req.Started, err = p.Started(def); err != nil {
		return "", err
	}
	if r.byWorkers(p, def) {
		return r.give(ctx, req)
	}
	if req.Program, err = p.Build(ctx, r.env(), def); err != nil {
		return "", CannotBuild(r.Here(err))
	}
	run, err := r.Supervisor.Start(ctx, req)
	if err != nil {
		return "", err
	}
	return run.ID(), nil
}

// AsTexts converts values into the texts that the inputs of a definition accept.
func AsTexts(state map[string]any) (map[string]string, error) {
	values := make(map[string]string, len(state))
	for key, v := range state {
		text, ok := v.(string)
		if !ok {
			data, err := json.Marshal(v)
			if err != nil {
				return nil, problem.Bad("state.%s: %v", key, err)
			}
			text = string(data)
		}
		values[key] = text
	}
	return values, nil
}

// CannotBuild returns the error of a definition that cannot be run here.
func CannotBuild(err error) error {
	if _, ok := errors.AsType[*problem.Problem](err); ok {
		return err
	}
	if _, ok := errors.AsType[definition.Problems](err); ok {
		return err
	}
	return problem.New(http.StatusUnprocessableEntity, "cannot_run", "The definition cannot run here", "%v", err)
}

// startedBy returns the hash of the request that started a run; known is false if there is no such
// run.
func (r *Runs) startedBy(ctx context.Context, id string) (request string, known bool) {
	if id == "" {
		return "", false
	}
	one, err := r.Brief(ctx, id, 0)
	if err != nil {
		return "", false
	}
	p, err := program.Of(one)
	if err != nil {
		return "", !errors.Is(err, supervisor.ErrNotFound)
	}
	return p.Request, true
}

// Here returns err with file names relative to the folder, as clients know them.
func (r *Runs) Here(err error) error {
	if other, ok := errors.AsType[problem.Foreign](err); ok {
		err = other.Problems()
	}
	if all, ok := errors.AsType[definition.Problems](err); ok {
		here := filepath.ToSlash(r.Dir) + "/"
		for _, one := range all {
			one.File = strings.TrimPrefix(filepath.ToSlash(one.File), here)
			one.Message, one.Hint = strings.ReplaceAll(one.Message, here, ""), strings.ReplaceAll(one.Hint, here, "")
		}
	}
	return err
}
