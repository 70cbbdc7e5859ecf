// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/internal/process/credential"
)

// redirects is the redirect policy for clients that have none of their own. It lists the servers to which
// a redirect may lead, in addition to the server of the request.
type redirects []string

// check returns an error for a redirect that the policy does not allow. The client calls it before it follows the redirect.
func (hosts redirects) check(req *http.Request, via []*http.Request) error {
	if s := req.URL.Scheme; s != "http" && s != "https" {
		return fmt.Errorf("redirect to scheme %q: only http and https are followed", s)
	}
	if len(via) > 5 {
		return errors.New("more than 5 redirects")
	}
	if !credential.Left(req, via) {
		return nil
	}
	to := credential.Origin(req.URL)
	switch {
	case changes(req.Method) || req.Body != nil && req.Body != http.NoBody:
		return fmt.Errorf("it redirects the %s request to another server, %s, to which it is not sent: "+
			"write that address into the URL if that is right", req.Method, to)
	case via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme == "http":
		return fmt.Errorf("it redirects from https to %s, which is not followed", to)
	case !hosts.list(req.URL) && !credential.SameOrigin(req.URL, via[0].URL):
		return fmt.Errorf("it redirects to another server, %s, which is not asked: "+
			"list its host in redirect_hosts, or write that address into the URL, if that is right", to)
	}
	req.Header = make(http.Header) // no Referer either, because its query may hold a secret
	return nil
}

// list reports whether the server of u is in the list. A host without a port stands for the default port of the scheme.
func (hosts redirects) list(u *url.URL) bool {
	return slices.ContainsFunc(hosts, func(host string) bool {
		return credential.SameOrigin(u, &url.URL{Scheme: u.Scheme, Host: host})
	})
}

// checkHosts adds an error to s for each text that is not a host.
func checkHosts(hosts []string, s *source) {
	for i, host := range hosts {
		u, err := url.Parse("https://" + host)
		if err != nil || u.Host != host || u.Hostname() == "" || strings.ContainsAny(host, "{}*") {
			s.report(fmt.Sprintf("RedirectHosts[%d]", i), "%q is not a host, such as example.com or example.com:8443", host)
		}
	}
}
