// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/supervisor"
)

// elsewhere answers for a host of the internet, with a redirect; all other requests go on.
type elsewhere struct {
	http.RoundTripper
	to string
}

func (e elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != "public.example" {
		return e.RoundTripper.RoundTrip(r)
	}
	return &http.Response{
		StatusCode: http.StatusTemporaryRedirect, Header: http.Header{"Location": {e.to}}, Body: http.NoBody, Request: r,
	}, nil
}

// An agent that is sent from an address of the internet to one of the machine, or to that where clouds
// keep their keys, does not get there.
func TestRedirectsStayOnTheInternet(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	reached := make(chan struct{}, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			reached <- struct{}{}
			conn.Close()
		}
	}()
	s, err := New(Config{
		Service: session.InMemoryService(), AppName: "app", UserID: "ana", Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	guarded := s.outgoing
	for _, to := range []string{"http://169.254.169.254/latest/meta-data", "http://[fd00:ec2::254]/", "http://" + l.Addr().String() + "/", "http://localhost:1/"} {
		s.outgoing = elsewhere{guarded, to}
		u, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]string{
			"name: x\nurl: http://public.example/\n":                                            "redirects to another server",
			"name: x\nendpoint: http://public.example/a2a\n":                                    "requests go to the server of the agent's card only",
			fmt.Sprintf("name: x\nurl: http://public.example/\nredirect_hosts: [%q]\n", u.Host): "private network",
		} {
			p, def, err := s.program(t.Context(), "", text)
			if err != nil {
				t.Fatal(err)
			}
			made, err := p.Build(t.Context(), s.env(), def)
			if err != nil {
				t.Fatal(err)
			}
			started, err := p.Started(def)
			if err != nil {
				t.Fatal(err)
			}
			run, err := s.Supervisor.Start(t.Context(), supervisor.Request{Started: started, Program: made})
			if err != nil {
				t.Fatal(err)
			}
			end, err := run.Wait(t.Context())
			if err != nil || !strings.Contains(end.Run.Error, want) {
				t.Errorf("%s, %q: %+v, %v", to, text, end, err)
			}
		}
		resp, err := (&http.Client{Transport: s.outgoing}).Get("http://public.example/")
		if err == nil {
			resp.Body.Close()
		}
		if !errors.Is(err, errPrivate) {
			t.Errorf("%s: %v", to, err)
		}
	}
	if len(reached) > 0 {
		t.Error("the machine was reached")
	}
}
