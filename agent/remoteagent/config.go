// SPDX-License-Identifier: Apache-2.0

package remoteagent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/elsewhere"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/text/requesttemplate"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/internal/values/fielderror"
	"github.com/refrain-dev/refrain/session"
)

// DefaultSizeLimit is the default limit of one answer of a server in bytes: 10 MiB.
const DefaultSizeLimit = 10 << 20

// A2AConfig describes an agent for [NewA2A]. Name is required, and either
// AgentCard or AgentCardSource.
type A2AConfig struct {
	// Name is unique in the agent's tree, and not "user".
	Name string
	// Description tells other agents the purpose of this agent.
	Description string

	// AgentCard says how to reach the remote agent. It is trusted: requests go to the servers that
	// it names, but do not follow redirects to others.
	AgentCard *a2a.AgentCard
	// AgentCardSource is the address of the card: the URL of the agent, whose card is at
	// /.well-known/agent-card.json below it; the URL of the card, ending in .json; or, if it is
	// neither http nor https, the path of a file. The card is read once a run. A URL is a template
	// whose placeholders stand after the host only, and are escaped. A card from a URL can only name
	// the URL's own server (its scheme, host and port) and those in Hosts. A card in a file is trusted
	// as AgentCard is.
	AgentCardSource string
	// AgentCardProvider returns the card, once a run, in place of AgentCard and AgentCardSource. Its card is trusted as
	// AgentCard is.
	AgentCardProvider AgentCardProvider
	// Hosts are further servers that a card from a URL may name, as example.org,
	// example.org:8443 or https://example.org. Without a scheme it is the URL's,
	// without a port the scheme's; http is refused where the URL is https.
	Hosts []string

	// Payload is the message: a text, which is a template, or maps and lists, which are sent as one
	// part of data. Each text in those, except for the keys of maps, is a template; a text that
	// consists of one placeholder is replaced by the value with its type, such as number or list.
	// Templates read {{key}} only; see package template. nil sends the user's message.
	Payload any
	// OutputKey is the state key for the answer: its text, or the value of the
	// data if the answer is nothing else. It is not written if the answer has
	// neither.
	OutputKey string
	// NewContext begins a new conversation with the remote agent at each run. By default all runs
	// of the agent in a session share one conversation, so that the remote agent knows earlier
	// iterations. A judge that is asked several times about a version has a new one for each answer.
	NewContext bool

	// Headers, such as Authorization, are sent with every request, only to the servers above. The
	// values are templates. They are removed from errors, also where the remote agent repeats them.
	Headers map[string]string
	// SizeLimit is the largest size in bytes of one answer of the server, where a stream counts as
	// a whole, and of the stored part of a task. A larger answer is a [*LimitError]. The default is
	// [DefaultSizeLimit].
	SizeLimit int64
	// Client sends the requests. The default makes a new connection for each run. The time is
	// limited by the context only.
	Client *http.Client
	// Elsewhere lets another machine, with its network, call the remote agent; with the zero value
	// this machine calls it. This machine fills templates and runs callbacks. A card in a file is a
	// file of the other machine. Pieces of an answer are not shown as they arrive.
	Elsewhere elsewhere.Queue
	// MessageSendConfig is sent with messages; ReturnImmediately is set as
	// needed.
	MessageSendConfig *a2a.SendMessageConfig

	// BeforeAgentCallbacks and AfterAgentCallbacks run around the agent; see
	// [agent.Config].
	BeforeAgentCallbacks []agent.BeforeAgentCallback
	AfterAgentCallbacks  []agent.AfterAgentCallback
	// BeforeRequestCallbacks may change each message before it is sent. The first event that one
	// returns replaces the remote agent's answer; an error fails the agent.
	BeforeRequestCallbacks []BeforeA2ARequestCallback
}

// AgentCardProvider returns the card of a remote agent.
type AgentCardProvider func(ctx context.Context) (*a2a.AgentCard, error)

// BeforeA2ARequestCallback is called before a message is sent.
type BeforeA2ARequestCallback func(ctx agent.CallbackContext, req *a2a.SendMessageRequest) (*session.Event, error)

// A2AAgent is the concrete type of [NewA2A]'s agents.
type A2AAgent struct {
	*drive.Base
	cfg     A2AConfig
	source  *requesttemplate.URL // nil for a card that is given, or in a file
	origins []string             // of Hosts
	payload requesttemplate.JSON // nil for the user's message
	headers requesttemplate.Headers
	memory  memory
	given   http.Header // in place of headers, for an exchange of another machine
}

// NewA2A returns an agent that calls a remote one over A2A. It does not connect, and returns an
// error that lists every mistake in the config.
//
// The agent fails with a [*TaskError], a [*LimitError], or the error of the connection.
func NewA2A(cfg A2AConfig) (agent.Agent, error) {
	if cfg.SizeLimit == 0 {
		cfg.SizeLimit = DefaultSizeLimit
	}
	cfg.Hosts, cfg.Headers = slices.Clone(cfg.Hosts), maps.Clone(cfg.Headers)
	a := &A2AAgent{cfg: cfg}
	var p parser
	base, err := drive.NewBase(agent.Config{
		Name: cfg.Name, Description: cfg.Description,
		BeforeAgentCallbacks: cfg.BeforeAgentCallbacks, AfterAgentCallbacks: cfg.AfterAgentCallbacks,
	}, a, a.run)
	if err != nil {
		p.errs = append(p.errs, err)
	}
	a.parse(&p)
	if len(p.errs) > 0 {
		return nil, fmt.Errorf("A2A agent %q: %w", cfg.Name, errors.Join(p.errs...))
	}
	a.Base = base
	return a, nil
}

func (a *A2AAgent) parse(p *parser) {
	cfg := &a.cfg
	templates := requesttemplate.Parser{Template: p.template, Report: p.add}
	remote := strings.HasPrefix(cfg.AgentCardSource, "http://") || strings.HasPrefix(cfg.AgentCardSource, "https://")
	switch {
	case cfg.AgentCardProvider != nil:
		if cfg.AgentCard != nil || cfg.AgentCardSource != "" {
			p.about("AgentCardProvider", "is set, and %s or %s too: give one of them", fielderror.Name("AgentCard"), fielderror.Name("AgentCardSource"))
		}
	case cfg.AgentCard == nil && cfg.AgentCardSource == "":
		p.about("AgentCardSource", "is empty, and there is no %s; set one of them", fielderror.Name("AgentCard"))
	case cfg.AgentCard != nil && cfg.AgentCardSource != "":
		p.errs = append(p.errs, fielderror.Whole("both %s and %s are set; set one of them", fielderror.Name("AgentCard"), fielderror.Name("AgentCardSource")))
	case remote:
		if a.source = templates.URL("AgentCardSource", cfg.AgentCardSource); a.source != nil {
			a.origins = p.origins(cfg.Hosts, a.source.Scheme())
		}
	case strings.Contains(cfg.AgentCardSource, "{{"), strings.Contains(cfg.AgentCardSource, "://"):
		p.report("AgentCardSource", "%q is no URL of http or https with a host, and no path of a file",
			cfg.AgentCardSource)
	}
	switch x := cfg.Payload.(type) {
	case nil:
	case string: // words, also where they are one placeholder
		words := p.template("Payload", x)
		a.payload = func(lookup func(string) (any, bool)) (any, error) {
			return requesttemplate.Fill("Payload", words, lookup)
		}
	default:
		a.payload = templates.JSON("Payload", x)
	}
	a.headers = templates.Headers("Headers", cfg.Headers)
	if cfg.SizeLimit < 0 {
		p.about("SizeLimit", "is negative: %d", cfg.SizeLimit)
	}
}

// origins are the servers that Hosts names.
func (p *parser) origins(hosts []string, scheme string) []string {
	var all []string
	for _, text := range hosts {
		full := text
		if strings.Count(full, ":") > 1 && !strings.ContainsAny(full, "/[") {
			full = "[" + full + "]" // a bare address of IPv6
		}
		if !strings.Contains(full, "://") {
			full = scheme + "://" + full
		}
		u, err := url.Parse(full)
		switch {
		case err != nil || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" ||
			u.Fragment != "":
			p.report("Hosts", "%q is not a server such as example.org, example.org:8443 or https://example.org", text)
		case u.Scheme != "https" && u.Scheme != "http":
			p.report("Hosts", "%q is neither http nor https", text)
		case u.Scheme == "http" && scheme == "https":
			p.report("Hosts", "%q must be https, because the agent's card is read over https", text)
		default:
			all = append(all, credential.Origin(u))
		}
	}
	return all
}

// parser parses the templates of a config and notes every mistake.
type parser struct{ errs []error }

func (p *parser) add(err *fielderror.Error) { p.errs = append(p.errs, err) }

// report notes what is wrong with a value in a field.
func (p *parser) report(field, format string, args ...any) {
	p.add(fielderror.New(field, format, args...))
}

// about notes a mistake in a sentence that begins with the field.
func (p *parser) about(field, format string, args ...any) {
	p.add(fielderror.About(field, format, args...))
}

// template parses a template. It never returns nil.
func (p *parser) template(field, text string) *template.Template {
	t, err := template.Parse(text, template.Options{Dialect: template.Mustache})
	if err != nil {
		p.report(field, "%w", err)
		return new(template.Template)
	}
	return t
}

// Type returns [agent.TypeRemote].
func (a *A2AAgent) Type() agent.Type { return agent.TypeRemote }

// Config returns the config that the agent was made from, with the defaults filled in.
func (a *A2AAgent) Config() A2AConfig { return a.cfg }

// Traits says that in a resumed run the agent continues the task that it was waiting for.
func (a *A2AAgent) Traits(bool) drive.Traits { return drive.Traits{Continues: true} }
