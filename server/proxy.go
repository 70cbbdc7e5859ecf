// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/internal/runs/access"
)

// Proxy is the proxy before a server, which adds headers to requests. The headers count only in requests from its addresses.
type Proxy struct {
	// From are the networks of the proxy. The last address in X-Forwarded-For that is not in them is the address of the client. If it is
	// empty, no proxy is trusted.
	From []netip.Prefix
	// Header is the header in which the proxy names the person who sends the request, such as X-Forwarded-User. It needs From. Empty
	// means that the proxy names nobody.
	Header string
	// Role is the role of a person whom the proxy names and who is not in Config.People. The default is [access.None], which refuses them.
	Role access.Role
}

func (p *Proxy) check() error {
	switch {
	case p.Header != "" && len(p.From) == 0:
		return errors.New("the header " + p.Header + " needs the addresses of the proxy: everybody else can send it, too")
	case strings.Trim(strings.ToLower(p.Header), "abcdefghijklmnopqrstuvwxyz0123456789-_") != "":
		return fmt.Errorf("the header of the proxy is %q: a name has letters, digits, - and _, such as X-Forwarded-User", p.Header)
	case p.Header == "" && p.Role != access.None:
		return errors.New("a role for people whom the proxy names needs the header in which it names them")
	case strings.EqualFold(p.Header, "Authorization"):
		return errors.New("the header Authorization has tokens: let the proxy name people in another one, such as X-Forwarded-User")
	}
	return nil
}

// trusts reports whether an address is one of the proxy's.
func (p *Proxy) trusts(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return addr.IsValid() && slices.ContainsFunc(p.From, func(n netip.Prefix) bool { return n.Contains(addr) })
}

// client returns the address of the client of a request that the proxy has passed on; peer if the proxy does not tell it.
func (p *Proxy) client(r *http.Request, peer netip.Addr) netip.Addr {
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		addr, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			return peer
		}
		if peer = addr; !p.trusts(addr) {
			break
		}
	}
	return peer
}

// proxyNameKey is the key under which a request's context has the name that the proxy gives to the person.
type proxyNameKey struct{}

// behindProxy returns a handler that gives next the address of the client and the name of the person in place of what the proxy has written
// into headers. It removes these headers from requests of all others.
func (s *Server) behindProxy(next http.Handler) http.Handler {
	p := &s.cfg.Proxy
	if len(p.From) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, _ := netip.ParseAddrPort(r.RemoteAddr) // an address that is not valid is not trusted
		names := r.Header.Values(p.Header)
		ctx := r.Context()
		trusted := p.trusts(peer.Addr())
		if trusted && len(names) > 0 {
			ctx = context.WithValue(ctx, proxyNameKey{}, strings.Join(names, ", ")) // several names are not a name
		}
		r = r.Clone(ctx)
		if trusted {
			r.RemoteAddr = net.JoinHostPort(p.client(r, peer.Addr()).String(), "0")
		} else {
			r.Header.Del("X-Forwarded-Proto")
		}
		r.Header.Del("X-Forwarded-For")
		r.Header.Del(p.Header)
		next.ServeHTTP(w, r)
	})
}
