// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/internal/runs/access"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
)

// Callers without a name: one with Config.Token, and one of a server that accepts everybody.
var (
	tokenHolder = access.Person{Name: "token", Role: access.Author}
	localUser   = access.Person{Name: "local", Role: access.Author}
)

// isAnonymous reports whether the server does not know who a caller is.
func isAnonymous(who access.Person) bool {
	return who == tokenHolder || who == localUser || who == access.Person{}
}

// recognize returns who sends a request, or the problem for a client that the server does not accept.
func (s *Server) recognize(r *http.Request) (access.Person, *problem.Problem) {
	who, err := s.identify(r)
	if err == nil {
		return who, nil
	}
	if errors.Is(err, access.ErrUnknown) {
		return who, s.tokenProblem(r)
	}
	if p, ok := errors.AsType[*problem.Problem](err); ok {
		return who, p
	}
	s.Refusals.Add(r.Context(), "no_people", "a request was refused", "the file of people cannot be read", r.RemoteAddr, "error", err)
	return who, problem.New(http.StatusServiceUnavailable, "no_people", "The server cannot read who may use it", "its log has the cause")
}

// identify returns the person whom a trusted proxy names, or else the one whose token the request has. It fails with
// [access.ErrUnknown] if the request has neither. If the file of people cannot be read, nobody in it is identified.
func (s *Server) identify(r *http.Request) (access.Person, error) {
	if s.cfg.Token == "" && s.cfg.People == nil && s.cfg.Proxy.Header == "" {
		return localUser, nil
	}
	if name, ok := r.Context().Value(proxyNameKey{}).(string); ok {
		return s.proxyPerson(name)
	}
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return access.Person{}, access.ErrUnknown
	}
	given, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.cfg.Token))
	if s.cfg.Token != "" && subtle.ConstantTimeCompare(given[:], want[:]) == 1 {
		return tokenHolder, nil
	}
	if s.cfg.People == nil {
		return access.Person{}, access.ErrUnknown
	}
	return s.cfg.People.WithToken(token)
}

// proxyPerson returns the person with a name that a trusted proxy gives. A name that is not in the file has the role Proxy.Role.
func (s *Server) proxyPerson(name string) (access.Person, error) {
	if err := access.CheckName(name); err != nil {
		return access.Person{}, problem.New(http.StatusForbidden, "bad_name", "The proxy's name for you cannot be used", "%v", err)
	}
	if s.cfg.People != nil {
		if who, err := s.cfg.People.Named(name); !errors.Is(err, access.ErrUnknown) {
			return who, err
		}
	}
	if s.cfg.Proxy.Role == access.None {
		return access.Person{}, problem.New(http.StatusForbidden, "no_role", "You have no role here", "%s is not in the server's file "+
			"of people; its operator adds a name with: refrain token add NAME --role reader --no-token", name)
	}
	return access.Person{Name: name, Role: s.cfg.Proxy.Role}, nil
}

// callerInfo returns the caller, as the page shows it.
func callerInfo(ctx context.Context) map[string]any {
	c := operations.CallerOf(ctx)
	if c == nil {
		return nil
	}
	return map[string]any{"name": c.Name, "role": c.Role, "anonymous": c.Anonymous}
}

// removalCheck is how long a request in progress, such as a stream of events, may outlast a removal of its person.
const removalCheck = 500 * time.Millisecond

// attendance ends the requests in progress of people who were removed from the file or whose role has changed. While there are such
// requests, one goroutine looks for these changes.
type attendance struct {
	mu       sync.Mutex
	in       map[*visit]bool
	running  bool // the goroutine runs
	closed   bool
	finished sync.WaitGroup
}

// visit is a request in progress.
type visit struct {
	r      *http.Request
	person access.Person
	end    context.CancelCauseFunc
}

// errRemoved is the cause of the end of a request whose person was removed.
var errRemoved = errors.New("the person was removed, or has another role now")

// enter returns the request with a context that ends when its person is removed. The caller must defer leave, which cuts off the
// answer to such a request, so that the client does not take it for a complete one.
func (s *Server) enter(r *http.Request, who access.Person) (visiting *http.Request, leave func()) {
	if isAnonymous(who) { // no removal concerns it
		return r, func() {}
	}
	ctx, end := context.WithCancelCause(r.Context())
	a, v := &s.clients.present, &visit{r, who, end}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.in == nil {
		a.in = make(map[*visit]bool)
	}
	a.in[v] = true
	if !a.running && !a.closed {
		a.running = true
		a.finished.Go(s.lookForRemovals)
	}
	return r.WithContext(ctx), func() {
		a.mu.Lock()
		delete(a.in, v)
		a.mu.Unlock()
		removed := errors.Is(context.Cause(ctx), errRemoved)
		if end(nil); removed {
			panic(http.ErrAbortHandler)
		}
	}
}

// lookForRemovals ends the requests of people who were removed, until there is no request in progress or the server is closing.
func (s *Server) lookForRemovals() {
	a := &s.clients.present
	tick := time.NewTicker(removalCheck)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.closing:
			return
		}
		a.mu.Lock()
		if a.running = len(a.in) > 0; !a.running {
			a.mu.Unlock()
			return
		}
		all := slices.Collect(maps.Keys(a.in))
		a.mu.Unlock()
		for _, v := range all {
			if now, err := s.identify(v.r); err != nil || now != v.person {
				v.end(errRemoved)
			}
		}
	}
}

// close waits for the goroutine, after the server's closing was closed.
func (a *attendance) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.finished.Wait()
}
