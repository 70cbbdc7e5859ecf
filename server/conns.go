// SPDX-License-Identifier: Apache-2.0

package server

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// conns is a listener that limits its connections, and those of one client to half of the limit. When
// there is no place for a new connection, it closes the oldest idle one, on which the server answers no
// request that it has let in. So connections that only hold a place, such as with an unfinished body, keep
// no client out.
type conns struct {
	net.Listener
	most   int
	closed func(from string) // is told of each connection that was closed for lack of places

	mu   sync.Mutex
	all  int
	of   map[netip.Prefix]int // connections of each client
	idle list.List            // of *conn, the oldest first
}

// conn is a connection with a place.
type conn struct {
	net.Conn
	l      *conns
	client netip.Prefix

	// l.mu guards these.
	idle *list.Element // nil while a request is answered, and at the end
	gone bool
}

// Accept returns the next connection that has a place.
func (l *conns) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c, lost := l.place(raw)
		if lost != nil {
			_ = lost.Close()
			l.closed(lost.RemoteAddr().String())
		}
		if c != nil {
			return c, nil
		}
	}
}

// place gives a connection a place. lost is the connection that has none for it.
func (l *conns) place(raw net.Conn) (c *conn, lost net.Conn) {
	c = &conn{Conn: raw, l: l, client: clientOf(raw.RemoteAddr().String())}
	l.mu.Lock()
	defer l.mu.Unlock()
	crowded := l.of[c.client] >= max(1, l.most/2)
	if crowded || l.all >= l.most {
		old := l.idle.Front()
		for crowded && old != nil && old.Value.(*conn).client != c.client {
			old = old.Next()
		}
		if old == nil {
			return nil, raw
		}
		out := old.Value.(*conn)
		out.leave()
		lost = out
	}
	if l.of == nil {
		l.of = make(map[netip.Prefix]int)
	}
	l.all++
	l.of[c.client]++
	c.idle = l.idle.PushBack(c)
	return c, lost
}

// Close gives the place back.
func (c *conn) Close() error {
	c.l.mu.Lock()
	c.leave()
	c.l.mu.Unlock()
	return c.Conn.Close()
}

// leave gives the place back. l.mu is held.
func (c *conn) leave() {
	if c.gone {
		return
	}
	c.gone = true
	c.busy()
	c.l.all--
	if c.l.of[c.client]--; c.l.of[c.client] == 0 {
		delete(c.l.of, c.client)
	}
}

// busy keeps the connection from being closed for another one. l.mu is held.
func (c *conn) busy() {
	if c.idle != nil {
		c.l.idle.Remove(c.idle)
		c.idle = nil
	}
}

// connKey is the key under which a request's context has its *conn.
type connKey struct{}

// letIn says that the server answers a request that it has let in.
func letIn(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		c.l.mu.Lock()
		c.busy()
		c.l.mu.Unlock()
	}
}

// connState is [http.Server.ConnState]: a connection is idle again when its request was answered.
func connState(raw net.Conn, state http.ConnState) {
	c, ok := raw.(*conn)
	if !ok || state != http.StateIdle {
		return
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.idle == nil && !c.gone {
		c.idle = c.l.idle.PushBack(c)
	}
}

// clientOf is who an address belongs to: the address itself, or in version 6 of the protocol its network
// of 64 bits, all of which one client can have.
func clientOf(addr string) netip.Prefix {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := at.Addr().Unmap().WithZone(""), 64
	if ip.Is4() {
		bits = 32
	}
	client, _ := ip.Prefix(bits)
	return client
}
