// SPDX-License-Identifier: Apache-2.0

package server

import (
	"maps"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/refrain-dev/refrain/operations/problem"
)

// guesses counts requests with a wrong token or none, by client. A client may make a few at once, and then
// one a second; more are answered with 429. A right token is never held up: it is compared first.
type guesses struct {
	mu sync.Mutex
	of map[netip.Prefix]*rate.Limiter
}

const (
	guessesAtOnce  = 20
	guessesClients = 4096 // that are remembered
)

// take takes a try, and returns how long to wait for one if there is none.
func (g *guesses) take(client netip.Prefix, now time.Time) (wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of == nil {
		g.of = make(map[netip.Prefix]*rate.Limiter)
	}
	if len(g.of) >= guessesClients {
		g.forget(now)
	}
	one := g.of[client]
	if one == nil {
		one = rate.NewLimiter(1, guessesAtOnce)
		g.of[client] = one
	}
	try := one.ReserveN(now, 1)
	if wait = try.DelayFrom(now); wait > 0 {
		try.CancelAt(now)
	}
	return wait
}

// forget makes room for a client: without those that have all their tries again, or else without any one.
func (g *guesses) forget(now time.Time) {
	maps.DeleteFunc(g.of, func(_ netip.Prefix, one *rate.Limiter) bool { return one.TokensAt(now) >= guessesAtOnce })
	for client := range g.of {
		if len(g.of) < guessesClients {
			return
		}
		delete(g.of, client)
	}
}

// unproven is the problem of a request without the token.
func (s *Server) unproven(r *http.Request) *problem.Problem {
	if wait := s.guesses.take(clientOf(r.RemoteAddr), time.Now()); wait > 0 {
		seconds := strconv.Itoa(int(math.Ceil(wait.Seconds())))
		p := problem.New(http.StatusTooManyRequests, "slow_down", "Too many requests without the token", "try again in %s s", seconds)
		p.Header = map[string]string{"Retry-After": seconds}
		return p
	}
	p := problem.New(http.StatusUnauthorized, "no_token", "The token is missing or wrong", "send it as Authorization: Bearer TOKEN")
	p.Header = map[string]string{"WWW-Authenticate": `Bearer realm="refrain"`}
	return p
}
