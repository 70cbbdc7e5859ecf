// SPDX-License-Identifier: Apache-2.0

package mcptoolset

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// connection is one session with the server.
type connection struct {
	session *mcp.ClientSession
	over    chan struct{} // closed when the session has ended

	tools []*mcp.Tool // as listed last; guarded by Toolset.mu
	lists int64       // Toolset.lists when they were
}

func (c *connection) ended() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// close ends the session and waits until it is over. That a server's process
// did not end well is its own affair.
func (c *connection) close() error {
	err := c.session.Close()
	<-c.over
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil
	}
	return err
}

// connection returns a session that, as far as is known, works.
func (s *Toolset) connection(ctx context.Context) (*connection, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	select {
	case s.connecting <- struct{}{}:
		defer func() { <-s.connecting }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	switch {
	case s.closing.Err() != nil:
		return nil, ErrClosed
	case c != nil && !c.ended():
		return c, nil
	case c != nil:
		s.drop(c)
	}
	return s.connect(ctx)
}

// connect makes a session. Only the wait for it ends with ctx, because other callers share the
// session.
func (s *Toolset) connect(ctx context.Context) (*connection, error) {
	dialing, cancel := context.WithTimeoutCause(context.Background(), s.cfg.ConnectTimeout,
		fmt.Errorf("the server did not answer in %s: %w", s.cfg.ConnectTimeout, context.DeadlineExceeded))
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()

	transport, words := s.dial.transport()
	session, err := s.client.Connect(dialing, transport, nil)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case dialing.Err() != nil:
		err = context.Cause(dialing)
		fallthrough
	default:
		if refused, ok := errors.AsType[*unauthorizedError](err); ok {
			err = refused
		}
		if said := words(); said != "" {
			err = fmt.Errorf("%w; it said: %s", err, said)
		}
		return nil, fmt.Errorf("connect to %s: %w", s.dial, err)
	}
	c := &connection{session: session, over: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Err() != nil {
		_ = session.Close()
		return nil, ErrClosed
	}
	s.wg.Go(func() {
		_ = session.Wait()
		close(c.over)
	})
	s.conn = c
	return c, nil
}

// drop forgets a broken session.
func (s *Toolset) drop(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != c {
		return
	}
	s.conn = nil
	s.wg.Go(func() { _ = c.close() }) // may take a while; Close waits for it
}

// do sends a request to the server, and once more in a new session if the session is broken. It
// repeats a request that could have an effect twice only if the server cannot have received it.
func (s *Toolset) do(ctx context.Context, again bool, ask func(context.Context, *connection) error) error {
	return s.secrets.Error(s.ask(ctx, again, ask))
}

func (s *Toolset) ask(ctx context.Context, again bool, ask func(context.Context, *connection) error) error {
	// A session cannot be closed while it waits for an answer.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.closing, func() { cancel(ErrClosed) })()
	for try := 1; ; try++ {
		c, err := s.connection(ctx)
		if err != nil {
			return err
		}
		err = ask(ctx, c)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !broken(err):
			return err
		}
		s.drop(c)
		if refused, ok := errors.AsType[*unauthorizedError](err); ok {
			return refused
		}
		if unsent(err) || again {
			if try == 1 {
				continue
			}
			return err
		}
		return fmt.Errorf("the connection was lost, and it is unknown whether the call took effect: %w", err)
	}
}

// unsent reports whether the server cannot have acted on the request.
func unsent(err error) bool {
	if errors.Is(err, mcp.ErrConnectionClosed) || errors.Is(err, mcp.ErrSessionMissing) {
		return true
	}
	// How servers on the TypeScript SDK say that a session is gone.
	e, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && e.Code == -32001 && strings.Contains(strings.ToLower(e.Message), "session")
}

// broken reports whether the connection has failed, and not the request, so that the session is
// useless.
func broken(err error) bool {
	_, answered := errors.AsType[*jsonrpc.Error](err)
	return !answered || unsent(err)
}

// list returns the server's tools. They are kept if the server says when they
// change.
func (s *Toolset) list(ctx context.Context) ([]*mcp.Tool, error) {
	var tools []*mcp.Tool
	err := s.do(ctx, true, func(ctx context.Context, c *connection) error {
		lists := s.lists.Load()
		s.mu.Lock()
		known := c.tools != nil && c.lists == lists
		tools = c.tools
		s.mu.Unlock()
		if known {
			return nil
		}
		tools = []*mcp.Tool{}
		for t, err := range c.session.Tools(ctx, nil) {
			if err != nil {
				return err
			}
			tools = append(tools, t)
		}
		if s.cfg.Client == nil && announces(c.session) {
			s.mu.Lock()
			c.tools, c.lists = tools, lists
			s.mu.Unlock()
		}
		return nil
	})
	return tools, err
}

// announces reports whether the server says when its tools change.
func announces(cs *mcp.ClientSession) bool {
	r := cs.InitializeResult()
	return r != nil && r.Capabilities != nil && r.Capabilities.Tools != nil && r.Capabilities.Tools.ListChanged
}
