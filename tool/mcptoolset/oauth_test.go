// SPDX-License-Identifier: Apache-2.0

package mcptoolset_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/mcptoolset"
)

// bank is an MCP server that signs people in: with discovery, registration, PKCE, and tokens that are renewed.
type bank struct {
	*httptest.Server
	tools http.Handler

	mu        sync.Mutex
	challenge string
	token     int // the number of the valid token
	expires   int // seconds
	grants    []string
}

func newBank(t *testing.T, expires int) *bank {
	b := &bank{expires: expires}
	s := newServer()
	b.tools = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true})
	mux := http.NewServeMux()
	send := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/.well-known/oauth-protected-resource", func(w http.ResponseWriter, _ *http.Request) {
		send(w, http.StatusOK, map[string]any{"resource": b.URL + "/mcp", "authorization_servers": []string{b.URL}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		send(w, http.StatusOK, map[string]any{"issuer": b.URL, "authorization_endpoint": b.URL + "/authorize", "token_endpoint": b.URL + "/token",
			"registration_endpoint": b.URL + "/register", "response_types_supported": []string{"code"},
			"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"}})
	})
	mux.HandleFunc("/register", func(w http.ResponseWriter, _ *http.Request) {
		send(w, http.StatusCreated, map[string]any{"client_id": "client-1", "redirect_uris": []string{"http://127.0.0.1:1/back"}, "token_endpoint_auth_method": "none"})
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		q := r.URL.Query()
		b.challenge = q.Get("code_challenge")
		http.Redirect(w, r, q.Get("redirect_uri")+"?code=c1&state="+url.QueryEscape(q.Get("state")), http.StatusFound)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		grant := r.FormValue("grant_type")
		b.grants = append(b.grants, grant)
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		known := grant == "authorization_code" && r.FormValue("code") == "c1" && base64.RawURLEncoding.EncodeToString(sum[:]) == b.challenge
		if !known && (grant != "refresh_token" || r.FormValue("refresh_token") != fmt.Sprint("r", b.token)) {
			send(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
			return
		}
		b.token++
		send(w, http.StatusOK, map[string]any{"access_token": fmt.Sprint("a", b.token), "refresh_token": fmt.Sprint("r", b.token), "token_type": "Bearer",
			"expires_in": b.expires})
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		ok := b.token > 0 && r.Header.Get("Authorization") == fmt.Sprint("Bearer a", b.token)
		b.mu.Unlock()
		if !ok {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+b.URL+`/.well-known/oauth-protected-resource"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		b.tools.ServeHTTP(w, r)
	})
	b.Server = httptest.NewServer(mux)
	t.Cleanup(b.Close)
	return b
}

// person signs in as a browser does.
func person(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, args.URL, nil)
	if err != nil {
		return nil, err
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	res.Body.Close()
	back, err := res.Location()
	if err != nil {
		return nil, err
	}
	return &auth.AuthorizationResult{Code: back.Query().Get("code"), State: back.Query().Get("state")}, nil
}

// The SDK's handler signs in at a server that wants it, and renews the token.
func TestSignsInWithOAuth(t *testing.T) {
	for name, tt := range map[string]struct {
		expires int
		want    string
	}{"lasting": {3600, "[authorization_code]"}, "short": {1, "authorization_code refresh_token"}} {
		t.Run(name, func(t *testing.T) {
			b := newBank(t, tt.expires)
			h, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
				RedirectURL: "http://127.0.0.1:1/back", AuthorizationCodeFetcher: person, Client: b.Client(),
				DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
					ClientName: "test", RedirectURIs: []string{"http://127.0.0.1:1/back"}, TokenEndpointAuthMethod: "none"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			s := toolset(t, mcptoolset.Config{URL: b.URL + "/mcp", OAuth: h})
			res, err := tool.Call(call(t.Context()), tools(t, s)["add"], map[string]any{"a": 2, "b": 3})
			if got, _ := json.Marshal(res); err != nil || string(got) != `{"total":5}` {
				t.Errorf("got %s, %v", got, err)
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			if got := fmt.Sprint(b.grants); !strings.Contains(got, tt.want) {
				t.Errorf("the grants are %s, want %s", got, tt.want)
			}
		})
	}
}

// Without a handler the error says what to do.
func TestSaysThatAServerWantsOAuth(t *testing.T) {
	b := newBank(t, 60)
	s := toolset(t, mcptoolset.Config{URL: b.URL + "/mcp"})
	if _, err := s.Tools(call(t.Context())); err == nil || !strings.Contains(err.Error(), "Config.OAuth") {
		t.Errorf("got %v", err)
	}
}
