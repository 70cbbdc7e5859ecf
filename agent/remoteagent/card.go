// SPDX-License-Identifier: Apache-2.0

package remoteagent

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/text/requesttemplate"
)

const (
	cardTime = 30 * time.Second // how long reading a card may take
	maxNamed = 5                // interfaces of a card that an error is about

	wellKnown    = "/.well-known/agent-card.json"
	wellKnownOld = "/.well-known/agent.json" // before A2A 0.3
)

// card is the agent's card, and where it is from. Interfaces that may not be used
// are taken out of it.
func (a *A2AAgent) card(ctx agent.InvocationContext, c *connection) (card *a2a.AgentCard, where string, err error) {
	if a.source != nil {
		u, err := a.source.Fill(drive.At(ctx).Lookup)
		if err != nil {
			return nil, "", err
		}
		c.wire.origins = append([]string{credential.Origin(u)}, a.origins...)
		if card, err = fetch(ctx, c, u); err != nil {
			return nil, "", err
		}
		where = identity(u)
	} else if a.cfg.AgentCardProvider != nil {
		if card, err = a.cfg.AgentCardProvider(ctx); err == nil && card == nil {
			err = errors.New("it returned no card")
		}
		if err != nil {
			return nil, "", fmt.Errorf("AgentCardProvider: %w", err)
		}
	} else if card = a.cfg.AgentCard; card == nil {
		where = a.cfg.AgentCardSource
		if card, err = readCard(where); err != nil {
			return nil, "", err
		}
	}
	if a.source == nil { // it is trusted; but where its servers redirect to is not
		for _, i := range card.SupportedInterfaces {
			if i == nil {
				continue
			}
			if u, err := url.Parse(i.URL); err == nil {
				c.wire.origins = append(c.wire.origins, credential.Origin(u))
			}
		}
	}
	card, err = c.wire.usable(card)
	return card, where, err
}

// NewAgentCardProvider returns a provider that reads the card from a source, such as [A2AConfig].AgentCardSource,
// without placeholders. From a card at a URL it removes the interfaces on servers other than that of the URL.
func NewAgentCardProvider(source string) AgentCardProvider {
	return func(ctx context.Context) (*a2a.AgentCard, error) {
		if !strings.HasPrefix(source, "http://") && !strings.HasPrefix(source, "https://") {
			return readCard(source)
		}
		u, err := url.Parse(source)
		if err != nil {
			return nil, fmt.Errorf("read agent card: %w", requesttemplate.WithoutURL(err))
		}
		c := &connection{wire: &wire{limit: DefaultSizeLimit, origins: []string{credential.Origin(u)}}}
		c.wire.base, c.http = http.DefaultTransport, &http.Client{CheckRedirect: checkRedirect, Transport: c.wire}
		card, err := fetch(ctx, c, u)
		if err != nil {
			return nil, c.wire.shown(err)
		}
		return c.wire.usable(card)
	}
}

// usable returns a card with the interfaces that requests may go to.
func (w *wire) usable(card *a2a.AgentCard) (*a2a.AgentCard, error) {
	var errs []error
	usable := new(*card)
	usable.SupportedInterfaces = nil
	for _, i := range card.SupportedInterfaces {
		if i == nil {
			continue
		}
		u, err := url.Parse(i.URL)
		if err == nil {
			err = w.allows(u)
		}
		if err != nil {
			if len(errs) < maxNamed {
				errs = append(errs, requesttemplate.WithoutURL(err))
			}
			continue
		}
		usable.SupportedInterfaces = append(usable.SupportedInterfaces, i)
	}
	switch {
	case usable.SupportedInterfaces != nil:
		return usable, nil
	case errs == nil:
		return nil, errors.New("the agent's card names no interface")
	}
	return nil, fmt.Errorf("no interface in the agent's card can be used: %w", errors.Join(errs...))
}

// readCard reads a card in a file.
func readCard(file string) (*a2a.AgentCard, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read agent card: %w", err)
	}
	card, err := parseCard(text)
	if err != nil {
		return nil, fmt.Errorf("read agent card %q: %w", file, err)
	}
	return card, nil
}

var parseCard = a2av0.NewAgentCardParser() // it reads cards of 1.0 too

// fetch looks for a card: at the address itself if that is a card's, else below
// it, and then below the host, where the card has to name the address as one of
// the agent's interfaces: a host may have many agents.
func fetch(ctx context.Context, c *connection, u *url.URL) (*a2a.AgentCard, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cardTime, fmt.Errorf("the server did not send the agent's card "+
		"in %s: %w", cardTime, context.DeadlineExceeded))
	defer cancel()
	if strings.HasSuffix(u.Path, ".json") {
		card, _, err := c.get(ctx, u)
		return card, err
	}
	origin := url.URL{Scheme: u.Scheme, Host: u.Host}
	var first error
	for _, path := range []string{wellKnown, wellKnownOld} {
		below := u.JoinPath(path)
		card, missing, err := c.get(ctx, below)
		if !missing {
			return card, err
		}
		if first == nil {
			first = err
		}
		top := origin.JoinPath(path)
		if top.Path == below.Path {
			continue
		}
		card, missing, err = c.get(ctx, top)
		if err == nil && names(card, u) || err != nil && !missing {
			return card, err
		}
	}
	return nil, fmt.Errorf("%w, and there is no card of this agent at %s; give the address of the card", first,
		requesttemplate.Short(origin.JoinPath(wellKnown)))
}

// names reports whether a card names an address.
func names(card *a2a.AgentCard, u *url.URL) bool {
	return slices.ContainsFunc(card.SupportedInterfaces, func(i *a2a.AgentInterface) bool {
		return i != nil && strings.TrimSuffix(i.URL, "/") == strings.TrimSuffix(u.String(), "/")
	})
}

// get reads a card. missing reports that the address has no card.
func (c *connection) get(ctx context.Context, u *url.URL) (card *a2a.AgentCard, missing bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, false, fmt.Errorf("AgentCardSource: %w", requesttemplate.WithoutURL(err))
	}
	req.Header.Set("Accept", "application/json")
	fail := func(err error) (*a2a.AgentCard, bool, error) {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, false, fmt.Errorf("read agent card %s: %w", requesttemplate.Short(u), c.reason(err))
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fail(err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone:
		return nil, true, fmt.Errorf("read agent card %s: %s", requesttemplate.Short(u), resp.Status)
	default:
		return fail(errors.New(resp.Status))
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fail(err)
	}
	card, err = parseCard(text)
	if err == nil && card.Name == "" && len(card.SupportedInterfaces) == 0 {
		err = errors.New("it is not an agent card") // perhaps an answer of JSON-RPC
	}
	if err != nil {
		_, _, err = fail(err)
		return nil, true, err
	}
	return card, false, nil
}

// identity returns the name of an agent in the log: the address of its card, with a checksum in
// place of the query, which may be secret.
func identity(u *url.URL) string {
	if u.RawQuery == "" {
		return requesttemplate.Short(u)
	}
	return fmt.Sprintf("%s?sha256=%.4x", requesttemplate.Short(u), sha256.Sum256([]byte(u.RawQuery)))
}
