// SPDX-License-Identifier: Apache-2.0

// Package web serves the agents of a program over HTTP: see the verb serve of package command. Its sublaunchers
// say what it serves.
//
//	l := universal.NewLauncher(web.NewLauncher(api.NewLauncher(), webui.NewLauncher()))
//
// and on the command line: program web -port 8080 api webui.
package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/cmd/launcher"
	"github.com/refrain-dev/refrain/cmd/launcher/internal/door"
	"github.com/refrain-dev/refrain/command"
)

// Sublauncher adds routes to the server. ADK's takes a router of gorilla in place of the mux.
type Sublauncher interface {
	// Keyword, Parse, CommandLineSyntax and SimpleDescription are those of [launcher.SubLauncher].
	Keyword() string
	Parse(args []string) ([]string, error)
	CommandLineSyntax() string
	SimpleDescription() string
	// SetupSubrouters adds the routes. The server does not guard them, so your own route must check its clients.
	SetupSubrouters(mux *http.ServeMux, config *launcher.Config) error
	// UserMessage tells a person, when the server starts, what it serves at its address.
	UserMessage(webURL string, printer func(v ...any))
}

type web struct {
	door.Flags
	subs, active                []Sublauncher
	host                        string
	port                        int
	write, read, idle, shutdown time.Duration
	cloud, h2c                  bool
}

// NewLauncher returns the launcher with the keyword web, which serves the routes of those subs whose keywords are
// among the arguments. Its flags are:
//
//   - -port: default 8080; 0 is any free port
//   - -host: default 127.0.0.1; another address than a loopback one needs a token in the environment, REFRAIN_TOKEN
//   - -write-timeout: the time that a client has to read a piece of an answer; default 15s
//   - -read-timeout: the time that a client has to send a request; default 15s
//   - -idle-timeout: the time that a connection stays open without a request; default 60s
//   - -shutdown-timeout: the time that running steps have to end when the server stops; default 15s
func NewLauncher(subs ...Sublauncher) launcher.SubLauncher {
	w := &web{subs: subs, Flags: door.NewFlags("web", "serve the agents over HTTP")}
	w.Set.IntVar(&w.port, "port", 8080, "`port` to listen on; 0 is any free one")
	w.Set.StringVar(&w.host, "host", "127.0.0.1", "`address` to listen on; other addresses than loopback need REFRAIN_TOKEN")
	w.Set.DurationVar(&w.write, "write-timeout", 15*time.Second, "`time` that a client has to read a part of a response")
	w.Set.DurationVar(&w.read, "read-timeout", 15*time.Second, "`time` that a client has to send a request")
	w.Set.DurationVar(&w.idle, "idle-timeout", 60*time.Second, "`time` that a connection stays open without a request")
	w.Set.DurationVar(&w.shutdown, "shutdown-timeout", 15*time.Second, "`time` that running steps have to end when the server stops")
	w.Set.BoolVar(&w.cloud, "otel_to_cloud", false, "not available; set OTEL_EXPORTER_OTLP_ENDPOINT instead")
	w.Set.BoolVar(&w.h2c, "h2c", false, "not available; put a proxy in front")
	return w
}

func (w *web) CommandLineSyntax() string {
	var b strings.Builder
	b.WriteString(w.Flags.CommandLineSyntax())
	b.WriteString("  Then name one or more services:\n")
	for _, sub := range w.subs {
		fmt.Fprintf(&b, "  %-8s %s\n", sub.Keyword(), sub.SimpleDescription())
	}
	for _, sub := range w.subs {
		if syntax := sub.CommandLineSyntax(); syntax != "" {
			fmt.Fprintf(&b, "\nweb … %s\n%s", sub.Keyword(), syntax)
		}
	}
	return b.String()
}

func (w *web) Parse(args []string) ([]string, error) {
	rest, err := w.Flags.Parse(args)
	switch {
	case err != nil:
		return nil, err
	case w.cloud:
		return nil, errors.New("-otel_to_cloud is not available; set OTEL_EXPORTER_OTLP_ENDPOINT to send traces and metrics")
	case w.h2c:
		return nil, errors.New("-h2c is not available; put a proxy in front of the server that speaks HTTP/1.1 to it")
	case w.port < 0 || w.port > 65535:
		return nil, fmt.Errorf("-port %d: give a number from 0 to 65535", w.port)
	}
	for _, name := range []string{"write-timeout", "read-timeout", "idle-timeout", "shutdown-timeout"} {
		if given := w.Set.Lookup(name).Value; strings.HasPrefix(given.String(), "-") {
			return nil, fmt.Errorf("-%s %s is negative", name, given)
		}
	}
	w.active = nil
	for len(rest) > 0 {
		i := slices.IndexFunc(w.subs, func(s Sublauncher) bool { return s.Keyword() == rest[0] })
		if i < 0 {
			return rest, nil
		}
		if slices.Contains(w.active, w.subs[i]) {
			return nil, fmt.Errorf("%q is given twice; give each name once", rest[0])
		}
		w.active = append(w.active, w.subs[i])
		if rest, err = w.subs[i].Parse(rest[1:]); err != nil {
			return nil, fmt.Errorf("%s: %w", w.subs[i].Keyword(), err)
		}
	}
	return nil, nil
}

func (w *web) Run(ctx context.Context, config *launcher.Config) error {
	if len(w.active) == 0 {
		var words []string
		for _, sub := range w.subs {
			words = append(words, sub.Keyword())
		}
		return fmt.Errorf("after web, name one or more services: %s", strings.Join(words, ", "))
	}
	args := []string{"serve", "--own-only", "--addr", net.JoinHostPort(w.host, strconv.Itoa(w.port)),
		"--write-timeout", w.write.String(), "--read-timeout", w.read.String(), "--idle-timeout", w.idle.String(),
		"--grace", w.shutdown.String()}
	return door.Run(ctx, config, func(string) []string { return args },
		command.Config{Around: func(inner http.Handler) (http.Handler, error) {
			mux := http.NewServeMux()
			defer door.Serve(config, inner)()
			for _, sub := range order(w.active) {
				if err := setUp(sub, mux, config); err != nil {
					return nil, fmt.Errorf("%s: %w", sub.Keyword(), err)
				}
			}
			return mux, nil
		}, Began: func(at string) {
			for _, sub := range w.active {
				sub.UserMessage(at, log.Println)
			}
		}})
}

// setUp adds the routes of a sublauncher. It fails if two have the same route.
func setUp(sub Sublauncher, mux *http.ServeMux, config *launcher.Config) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("another launcher serves the same path; give another -path_prefix: %v", p)
		}
	}()
	return sub.SetupSubrouters(mux, config)
}

// order puts the page last, because it answers what no other route does.
func order(subs []Sublauncher) []Sublauncher {
	return slices.SortedStableFunc(slices.Values(subs), func(a, b Sublauncher) int {
		return cmp.Compare(strings.Count(a.Keyword(), "webui"), strings.Count(b.Keyword(), "webui"))
	})
}
