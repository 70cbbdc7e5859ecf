// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/program"
	"github.com/refrain-dev/refrain/supervisor"
)

// startRequest asks for a run: of a definition of the folder, or of a text.
type startRequest struct {
	Definition string `json:"definition"`
	Text       string `json:"text"`
	// Input is the user's message; the default is the definition's query.
	Input string `json:"input"`
	// State has values for the definition's inputs and for keys of its state.
	State map[string]any `json:"state"`
	// ID is the run's; if it is empty, one is made. That of a run that has ended continues its
	// conversation.
	ID     string `json:"id"`
	Model  string `json:"model"`
	Limits limits `json:"limits"`

	message *program.Message // over A2A
}

// limits are those of package definition, with the time as text.
type limits struct {
	MaxIterations *uint          `json:"max_iterations,omitempty" jsonschema:"of the outermost loop"`
	Timeout       *string        `json:"timeout,omitempty" jsonschema:"a time such as 30m; 0s is no limit"`
	MaxModelCalls int            `json:"max_model_calls,omitempty"`
	Budget        *budget.Limits `json:"budget,omitempty" jsonschema:"cost in US dollars"`
}

// put gives a program the limits. It returns whether there are any.
func (l *limits) put(p *program.Program) (bool, error) {
	given := definition.Limits{MaxIterations: l.MaxIterations, MaxModelCalls: l.MaxModelCalls, Budget: l.Budget}
	if l.Timeout != nil {
		d, err := time.ParseDuration(*l.Timeout)
		if err != nil || d < 0 {
			return false, bad("limits.timeout %q: write a time such as 30m, or 0s for no limit", *l.Timeout)
		}
		given.Timeout = &d
	}
	if l.MaxModelCalls < 0 {
		return false, bad("limits.max_model_calls is negative")
	}
	if b := l.Budget; b != nil && (b.Calls < 0 || b.Tokens < 0 || b.Cost != nil && !(*b.Cost >= 0)) {
		return false, bad("limits.budget: a limit is negative")
	}
	p.Limits = p.Limits.With(given)
	return given != definition.Limits{}, nil
}

// newID makes up an ID.
func newID() string { return "r_" + strings.ToLower(rand.Text()[:8]) }

// keyedID is the ID of the run that a request with a key starts.
func keyedID(key string) string {
	sum := sha256.Sum256([]byte("run " + key))
	return "r_" + hex.EncodeToString(sum[:8])
}

// maxID is how many characters the ID of a run may have.
const maxID = 64

func checkID(id string) error {
	odd := strings.ContainsFunc(id, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.@", r))
	})
	if odd || len(id) > maxID || id == "last" || strings.HasPrefix(id, "-") || strings.Trim(id, ".") == "" {
		return bad("%q cannot be the ID of a run: use up to %d letters, digits and - _ . @", id, maxID)
	}
	return nil
}

func (s *Server) startRun(w http.ResponseWriter, r *http.Request) error {
	body, err := s.body(w, r, "application/json")
	if err != nil {
		return err
	}
	var req startRequest
	if err := decode(body, &req); err != nil {
		return err
	}
	return s.doOnce(w, r, body, func() (int, any, error) {
		again, err := s.start(r.Context(), &req, r.Header.Get("Idempotency-Key"), body)
		if err != nil {
			return 0, nil, err
		}
		status := http.StatusCreated
		if again {
			w.Header().Set("Idempotent-Replayed", "true")
			status = http.StatusOK
		}
		row, err := s.row(r.Context(), req.ID)
		w.Header().Set("Location", "/api/v1/runs/"+url.PathEscape(req.ID))
		return status, row, err
	})
}

// start starts the run that a client asks for, and sets the ID of the request. With a key the same
// request, by its text, is the same run, also after a restart: again says that there was this run. The
// run does not end with ctx.
func (s *Server) start(ctx context.Context, req *startRequest, key string, text []byte) (again bool, err error) {
	if req.ID != "" {
		if err := checkID(req.ID); err != nil {
			return false, err
		}
	}
	p, def, err := s.program(req.Definition, req.Text)
	if err != nil {
		return false, err
	}
	if key != "" {
		sum := sha256.Sum256(text)
		p.Request = hex.EncodeToString(sum[:])
		if req.ID == "" {
			req.ID = keyedID(key)
		}
		switch was, known := s.startedBy(ctx, req.ID); {
		case known && was == p.Request:
			return true, nil
		case known && was != "":
			return false, errKeyUsed
		}
	}
	return false, s.launch(ctx, p, def, req)
}

// program reads the definition of a new run.
func (s *Server) program(name, text string) (*program.Program, *definition.Definition, error) {
	p := &program.Program{Program: s.cfg.Code.Name, DefaultModel: s.cfg.Getenv("REFRAIN_MODEL")}
	var def *definition.Definition
	switch {
	case (name == "") == (text == ""):
		return nil, nil, bad("give either the name of a definition, or its text")
	case text != "":
		file := path.Join(filepath.ToSlash(s.cfg.Dir), "definition.yaml")
		var err error
		if def, err = p.ReadIn(parts{s.folder.root.FS()}, file, "definition.yaml", []byte(text)); err != nil {
			return nil, nil, s.errHere(err)
		}
		p.Untrusted = true
	default:
		file, data, err := s.folder.read(name)
		if err != nil {
			return nil, nil, err
		}
		if src, own := s.folder.ownIn(file); own {
			def, err = p.ReadOwn(name, src)
		} else {
			def, err = p.ReadIn(s.folder.root.FS(), path.Join(filepath.ToSlash(s.cfg.Dir), file), file, data)
		}
		if err != nil {
			return nil, nil, s.errHere(err)
		}
	}
	p.Served, p.Dir, p.Root = true, s.cfg.Dir, s.cfg.Dir
	if p.Untrusted {
		if err := s.trusts(p, def, []byte(text)); err != nil {
			return nil, nil, err
		}
	}
	return p, def, nil
}

// launch starts a run of a program, and sets the ID of the request. The run does not end with ctx.
func (s *Server) launch(ctx context.Context, p *program.Program, def *definition.Definition, req *startRequest) error {
	if s.draining.Load() {
		return fault(http.StatusServiceUnavailable, "closing", "The server is stopping", "it starts no more runs")
	}
	if _, err := req.Limits.put(p); err != nil {
		return err
	}
	input := cmp.Or(req.Input, def.Query)
	if why := def.NeedsRequest(); why != "" && strings.TrimSpace(input) == "" {
		return bad("a run needs a request of its user: %s; give it as input", why)
	}
	p.Message = req.message
	if p.Model = req.Model; p.Model != "" {
		if err := s.scriptIsHere(p.Model, "."); err != nil {
			return err
		}
		if script, ok := strings.CutPrefix(p.Model, "scripted/"); ok && !filepath.IsAbs(script) {
			p.Model = "scripted/" + filepath.Join(s.cfg.Dir, filepath.FromSlash(script))
		}
	}
	values, err := asTexts(req.State)
	if err != nil {
		return err
	}
	state, err := def.InitialState(values)
	if err != nil {
		return err
	}
	made, err := p.Build(ctx, s.env(), def)
	if err != nil {
		return cannotBuild(s.errHere(err))
	}
	started, err := p.Started(def)
	if err != nil {
		made.Close()
		return err
	}
	run, err := s.sup.Start(ctx, supervisor.Request{
		SessionID: req.ID, Message: genai.NewContentFromText(input, genai.RoleUser), State: state, Started: started,
		Program: made,
	})
	if err != nil {
		return err
	}
	req.ID = run.ID()
	return nil
}

// asTexts are values as an input of a definition takes them.
func asTexts(state map[string]any) (map[string]string, error) {
	values := make(map[string]string, len(state))
	for key, v := range state {
		text, ok := v.(string)
		if !ok {
			data, err := json.Marshal(v)
			if err != nil {
				return nil, bad("state.%s: %v", key, err)
			}
			text = string(data)
		}
		values[key] = text
	}
	return values, nil
}

// cannotBuild is the error of a definition that cannot be run here.
func cannotBuild(err error) error {
	if _, ok := errors.AsType[*problem](err); ok {
		return err
	}
	if _, ok := errors.AsType[definition.Problems](err); ok {
		return err
	}
	return fault(http.StatusUnprocessableEntity, "cannot_run", "The definition cannot run here", "%v", err)
}

// startedBy returns the hash of the request that started a run; known is false if there is no such
// run.
func (s *Server) startedBy(ctx context.Context, id string) (request string, known bool) {
	if id == "" {
		return "", false
	}
	one, err := s.brief(ctx, id, 0)
	if err != nil {
		return "", false
	}
	started, err := supervisor.StartedWith(one)
	if err != nil {
		return "", false
	}
	p, err := program.Decode(started)
	if err != nil {
		return "", true
	}
	return p.Request, true
}

// errHere makes the files in problems those of the folder, as clients know them.
func (s *Server) errHere(err error) error {
	if other, ok := errors.AsType[foreign](err); ok {
		err = other.Problems()
	}
	if all, ok := errors.AsType[definition.Problems](err); ok {
		here := filepath.ToSlash(s.cfg.Dir) + "/"
		for _, one := range all {
			one.File = strings.TrimPrefix(filepath.ToSlash(one.File), here)
			one.Message, one.Hint = strings.ReplaceAll(one.Message, here, ""), strings.ReplaceAll(one.Hint, here, "")
		}
	}
	return err
}
