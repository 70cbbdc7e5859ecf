// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/text/requesttemplate"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/fielderror"
	"github.com/refrain-dev/refrain/internal/values/propagate"
	"github.com/refrain-dev/refrain/session"
)

// DefaultHTTPTimeout limits the time of a request if [HTTPConfig] does not set a Timeout.
const DefaultHTTPTimeout = 30 * time.Second

// HTTPConfig describes an agent that sends an HTTP request.
type HTTPConfig struct {
	Config
	// Method is the request's method; the default is GET.
	Method string
	// URL is a template of an http or https URL. Placeholders may stand only after the host, so
	// that no value can choose the server. Values are escaped: before a question mark as part of one
	// segment of the path, and after it as part of the query. Sections such as {{#key}} are not
	// possible. Put a user name and a password into Headers. Required.
	URL string
	// Headers are templates. A value with a line break in it is an error. The header Host cannot be
	// set. Except for common headers such as Accept, the values are treated as secrets: they are
	// removed from errors, and from an answer whose status means failure.
	Headers map[string]string
	// Body is a template of the request's body, for text. For JSON use BodyJSON, because a quote or a
	// line break in a value would break the JSON.
	Body string
	// BodyJSON is sent as JSON, instead of Body. It can have maps, lists, numbers and texts. Each text in it,
	// except for the keys of maps, is a template. If a text consists of one placeholder, the value
	// keeps its type, such as number or list. Content-Type is application/json, unless Headers set another.
	BodyJSON any
	// JSON requires that the answer is one JSON value, which is then written to OutputKey.
	JSON bool
	// Timeout limits the time of the whole request; the default is [DefaultHTTPTimeout].
	Timeout time.Duration
	// SizeLimit is the largest size of the answer's body in bytes. The headers have the same limit, but
	// at least 64 KiB. A longer answer is a [*LimitError]. The default is 1 MiB.
	SizeLimit int64
	// OKStatus are the status codes of success; the default is 200 to 299. Any other is a
	// [*StatusError].
	OKStatus []int
	// RedirectHosts are other servers to which a redirect may lead, as host or host:port. They get
	// neither Headers nor a body. A redirect from https may lead to https only.
	RedirectHosts []string
	// Client sends the request. The default client, and any client without CheckRedirect, follows at most 5
	// redirects to the same server (scheme, host and port). A request that has no body and changes nothing
	// may also be redirected to RedirectHosts. Any other redirect is an error.
	Client *http.Client
}

// headerIdempotencyKey is the header with the ID of the call ([drive.Place.CallID]), for
// requests that change something. The ID is the same in each attempt, and when the run is
// resumed. Headers can set another value.
const headerIdempotencyKey = "Idempotency-Key"

// changes reports whether a request with this method can change something on the server.
func changes(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return false
	}
	return true
}

// HTTPAgent is the concrete type of [NewHTTP]'s agents.
type HTTPAgent struct {
	*drive.Base
	task
	cfg      HTTPConfig
	client   *http.Client
	url      *requesttemplate.URL
	headers  requesttemplate.Headers
	body     *template.Template
	bodyJSON requesttemplate.JSON
}

// NewHTTP returns an agent that sends an HTTP request. The agent outputs the body of the answer
// without trailing line ends, and writes the same text to OutputKey. The result has the fields
// status, headers (the first value of each, by its name in lower case), body and, with JSON, json.
//
// NewHTTP reports every mistake in the config, including templates and expressions that cannot be
// parsed. The agent fails with a [*StatusError], a [*LimitError], context.DeadlineExceeded after
// its Timeout, or if there is no answer.
func NewHTTP(cfg HTTPConfig) (agent.Agent, error) {
	if cfg.Method == "" {
		cfg.Method = http.MethodGet
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultHTTPTimeout
	}
	if cfg.SizeLimit == 0 {
		cfg.SizeLimit = defaultLimit
	}
	if cfg.Client == nil {
		cfg.Client = &http.Client{}
	}
	cfg.Headers, cfg.OKStatus, cfg.RedirectHosts = maps.Clone(cfg.Headers), slices.Clone(cfg.OKStatus),
		slices.Clone(cfg.RedirectHosts)
	a := &HTTPAgent{cfg: cfg, client: careful(cfg.Client, cfg.RedirectHosts)}
	a.task = task{cfg: cfg.Config, do: a.do, json: cfg.JSON}
	var s source
	a.parse(&s)
	base, err := a.prepare(a, "HTTP", &s)
	if err != nil {
		return nil, err
	}
	a.Base = base
	return a, nil
}

// careful returns a copy of the client, which has the default redirect policy if the client has none.
func careful(client *http.Client, hosts []string) *http.Client {
	c := new(*client)
	if c.CheckRedirect == nil {
		c.CheckRedirect = redirects(hosts).check
	}
	return c
}

// Config returns the config that the agent was made from, with the defaults filled in.
func (a *HTTPAgent) Config() HTTPConfig { return a.cfg }

// parse parses the templates of the config and checks it. It adds every error to s.
func (a *HTTPAgent) parse(s *source) {
	cfg := &a.cfg
	if _, err := http.NewRequest(cfg.Method, "http://localhost/", nil); err != nil {
		s.about("Method", "%q is not one of HTTP", cfg.Method)
	}
	a.url = s.templates().URL("URL", cfg.URL)
	checkHosts(cfg.RedirectHosts, s)
	a.headers = s.templates().Headers("Headers", cfg.Headers)
	a.body = s.template("Body", cfg.Body, template.Mustache)
	if cfg.BodyJSON != nil {
		if cfg.Body != "" {
			s.add(fielderror.Whole("both %s and %s are set", fielderror.Name("Body"), fielderror.Name("BodyJSON")))
		}
		a.bodyJSON = s.templates().JSON("BodyJSON", cfg.BodyJSON)
	}
	if cfg.Timeout < 0 {
		s.about("Timeout", "is negative: %s", cfg.Timeout)
	}
	if cfg.SizeLimit < 0 {
		s.about("SizeLimit", "is negative: %d", cfg.SizeLimit)
	}
}

func (a *HTTPAgent) do(ctx agent.InvocationContext, round int, _ func(*session.Event, error) bool) (outcome, error) {
	key := ""
	if changes(a.cfg.Method) && a.cfg.Effect != agent.Pure {
		key = drive.At(ctx).CallID()
	}
	by := a.sends
	if a.cfg.Elsewhere.Name != "" {
		by = func(ctx agent.InvocationContext, req *http.Request) (answer, error) {
			return a.sendsElsewhere(ctx, req, round)
		}
	}
	return a.doAs(ctx, key, drive.At(ctx).Lookup, by)
}

// doAs makes the request, has by send it, and turns the answer into the task's outcome. key is the idempotency key; with ""
// the request has none.
func (a *HTTPAgent) doAs(ctx agent.InvocationContext, key string, lookup func(string) (any, bool),
	by func(agent.InvocationContext, *http.Request) (answer, error)) (outcome, error) {
	var secrets credential.Secrets
	req, err := a.request(ctx, lookup, &secrets)
	if err != nil {
		return outcome{}, err
	}
	if name := headerIdempotencyKey; key != "" && req.Header.Get(name) == "" {
		req.Header.Set(name, key)
	}
	where := requesttemplate.Short(req.URL)
	got, err := by(ctx, req)
	if err != nil {
		return outcome{}, fmt.Errorf("request %s: %w", where, secrets.Error(err))
	}
	if !a.ok(got.Status) {
		got = got.withoutSecrets(&secrets)
	}
	out := outcome{words: trimNewline(got.Body), result: map[string]any{
		"status": got.Status, "headers": got.Headers, "body": got.Body,
	}}
	out.output = out.words
	if !a.ok(got.Status) {
		return out, &StatusError{URL: where, Status: got.Status, Body: tail(brief.CleanText(got.Body)),
			RetryAfter: got.RetryAfter}
	}
	if a.cfg.JSON {
		v, err := parseJSON(got.Body)
		if err != nil {
			return out, fmt.Errorf("read the answer of %s as JSON: %w", where, secrets.Error(err))
		}
		out.output, out.result["json"] = v, v
	}
	return out, nil
}

// sends sends a request from this machine.
func (a *HTTPAgent) sends(ctx agent.InvocationContext, req *http.Request) (answer, error) {
	propagate.Header(ctx, req.Header)
	return sendWithin(ctx, a.client, req, a.cfg.Timeout, a.cfg.SizeLimit)
}

// sendWithin sends a request and waits for its answer until timeout is over.
func sendWithin(ctx context.Context, client *http.Client, req *http.Request, timeout time.Duration,
	sizeLimit int64) (answer, error) {
	late := fmt.Errorf("it did not end in its timeout of %s: %w", timeout, context.DeadlineExceeded)
	within, cancel := context.WithTimeoutCause(ctx, timeout, late)
	defer cancel()
	got, err := send(client, req.WithContext(within), sizeLimit)
	if err != nil && within.Err() != nil {
		err = context.Cause(within)
	}
	return got, err
}

func (a *HTTPAgent) ok(status int) bool {
	if len(a.cfg.OKStatus) > 0 {
		return slices.Contains(a.cfg.OKStatus, status)
	}
	return status >= 200 && status <= 299
}
