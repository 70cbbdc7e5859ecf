// SPDX-License-Identifier: Apache-2.0

package credential_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/process/credential"
)

func Example() {
	var secrets credential.Secrets
	req, err := http.NewRequest(http.MethodGet, "https://api.example.org/v1", nil)
	if err != nil {
		fmt.Println(err)
	}
	req.Header.Set("Authorization", "Bearer sk-1234567890")
	secrets.Request(req)
	fmt.Println(secrets.Strike("401: no such key: Bearer sk-1234567890"))
	// Output: 401: no such key: Bearer [secret]
}

func address(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// What a request proves itself with is struck out in every form that servers
// repeat it in.
func TestSecretsOfARequest(t *testing.T) {
	const odd = `p"a<s&s=w/o+r d`
	for _, tt := range []struct {
		name, value string
		gone        []string
	}{
		{"Authorization", "Bearer sk-SECRET123", []string{"sk-SECRET123", base64.StdEncoding.EncodeToString([]byte("sk-SECRET123"))}},
		{"authorization", "sk-SECRET123", []string{"sk-SECRET123"}},
		{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("ana:"+odd)), []string{odd, "ana:" + odd, url.QueryEscape(odd), url.PathEscape(odd), html.EscapeString(odd)}},
		{"X-Api-Key", "sk-SECRET123", []string{"sk-SECRET123"}},
		{"X-Goog-Api-Key", "AIza SECRET", []string{"AIza SECRET", "AIza+SECRET", "AIza%20SECRET"}},
		{"X-Apikey", "sk-SECRET123", []string{"sk-SECRET123"}},
		{"Private-Token", "abcd", []string{"abcd"}},
		{"X-Clientsecret", "abcd", []string{"abcd"}},
		{"Cookie", `theme=dark; session="s3cr3ts3cr3t"`, []string{"s3cr3ts3cr3t"}},
		{"Authorization", `AWS4-HMAC-SHA256 Credential=AKIA/x, Signature=fe5f80f77d5fa3be`, []string{"fe5f80f77d5fa3be"}},
	} {
		var s credential.Secrets
		req := &http.Request{URL: address(t, "https://h/"), Header: http.Header{}}
		req.Header.Set(tt.name, tt.value)
		s.Request(req)
		for _, secret := range tt.gone {
			text := "no: '" + secret + "', says the proxy"
			if got := s.Strike(text); got != "no: '[secret]', says the proxy" {
				t.Errorf("%s: %s: %q became %q", tt.name, tt.value, text, got)
			}
		}
	}
	var s credential.Secrets
	s.Request(&http.Request{URL: address(t, "https://ana:hidden1@h/x?api_key=hidden2&q=shown"), Header: http.Header{
		"User-Agent": {"refrain/shown"}, "Idempotency-Key": {"shown-1234"}, "X-Token": {"abc"}, "Content-Type": {"application/json"},
	}})
	got := s.Strike("hidden1 hidden2 shown refrain/shown shown-1234 abc application/json")
	if got != "[secret] [secret] shown refrain/shown shown-1234 abc application/json" {
		t.Errorf("got %q", got)
	}
}

// A header of a configuration is a secret unless it is known for other things.
func TestSecretsOfAConfiguration(t *testing.T) {
	var s credential.Secrets
	for name, value := range map[string]string{
		"X-Shared": "hunter2hunter2", "X-Env": "prod", "X-Key": "prod2", "Accept-Language": "de-AT-hidden", "Accept": "text/hidden",
	} {
		s.Header(name, value)
	}
	if got := s.Strike("hunter2hunter2 prod prod2 de-AT-hidden text/hidden"); got != "[secret] prod [secret] de-AT-hidden text/hidden" {
		t.Errorf("got %q", got)
	}
}

// The whole of an address but its server may be the secret.
func TestSecretsOfAnAddress(t *testing.T) {
	var s credential.Secrets
	s.Address(address(t, "https://ana:hidden1@hooks.example.org/services/T0/PATHSECRET?k=hidden2"))
	for _, text := range []string{"hidden1", "hidden2", "PATHSECRET", "services/T0/PATHSECRET", "k=hidden2"} {
		if got := s.Strike("at " + text); got != "at [secret]" {
			t.Errorf("%q became %q", text, got)
		}
	}
	const fine = "two services of hooks.example.org are down"
	if got := s.Strike(fine); got != fine {
		t.Errorf("got %q", got)
	}
}

// Variables are secrets by their names, and what proves something in addresses, connection
// strings and headers is one. Ordinary words are not, whatever they are called.
func TestSecretsOfAnEnvironment(t *testing.T) {
	var s credential.Secrets
	s.Environment([]string{
		"OPENAI_API_KEY=sk-hidden1", "GITHUB_TOKEN=hiddenTWO", "PGPASSWORD=hunter2hunter2", "LONG_SECRET=allinlowercaseletters",
		"DATABASE_URL=postgres://ana:hidden-3@h/db", "REFRAIN_URL=postgres:postgres://ana:hid%24den8@h/db", "REFRAIN_STORE=host=h user=ana password='hidden_4 is'", "AZURE=Server=h;Password=hidden.5",
		"OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20hidden6six,x-team=sk-hidden7", "PEM_SECRET=first-line-8\nsecond-line-9",
		"SHELL_TOKEN=true", "DB_PASSWORD=postgres", "X_PASSWORD=hunter2", "PIN_SECRET=123456789012345678", "EMPTY_TOKEN=", "odd",
		"TOKEN_FILE=/run/secrets/token-1", "TLS_CREDENTIALS=/home/ana/key.json", "SSH_AUTH_SOCK=/tmp/ssh-1/agent.1", "HOME=/home/ana", "PATH=/bin", "AUTH_METHOD=client-cert",
		"PWD=/work/place-1", "DB_PWD=hidden-10", "XDG_SESSION_TYPE=wayland-1", "MAX_TOKENS=hundred-1",
	})
	for _, secret := range []string{"sk-hidden1", "hiddenTWO", "hunter2hunter2", "allinlowercaseletters", "hidden-3", "hid%24den8", "hid$den8",
		"hidden_4", "hidden.5", "hidden6six", "sk-hidden7",
		"hidden-10", "first-line-8", "second-line-9", "first-line-8\nsecond-line-9"} {
		if got := s.StrikeWhole("a " + secret + " b"); strings.Contains(got, secret) {
			t.Errorf("%q is in %q", secret, got)
		}
	}
	const fine = "true postgres hunter2 123456789012345678 /run/secrets/token-1 /home/ana/key.json /tmp/ssh-1/agent.1 /home/ana /bin client-cert /work/place-1 wayland-1 hundred-1 sk-hidde"
	if got := s.StrikeWhole(fine); got != fine {
		t.Errorf("%q became %q", fine, got)
	}
}

// What is cut in the middle of a secret does not end with half of it.
func TestStrikeHalfASecret(t *testing.T) {
	var s credential.Secrets
	if s.Strike("x") != "x" {
		t.Error("no secrets change a text")
	}
	s.Add("sk-SECRETKEY1234567890")
	s.Add("secret") // is in the mark itself
	for text, want := range map[string]string{
		"wrong: sk-SECRETKEY":                    "wrong: [secret]",
		"wrong: sk-":                             "wrong: sk-",
		"secret sk-SECRETKEY1234567890 secret":   "[secret] [secret] [secret]",
		"sk-SECRETKEY1234567890sk-SECRETKEY1234": "[secret][secret]",
	} {
		if got := s.Strike(text); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestErrorsKeepWhatTheyAre(t *testing.T) {
	var s credential.Secrets
	s.Add("sk-SECRET")
	err := s.Error(fmt.Errorf("key sk-SECRET: %w", io.ErrUnexpectedEOF))
	if err.Error() != "key [secret]: unexpected EOF" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	if s.Error(io.EOF) != io.EOF || s.Error(nil) != nil {
		t.Error("an error without secrets is changed")
	}
}

// Another scheme, host or port is another server.
func TestSameOrigin(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"https://h/x", "https://H:443/y?z", true},
		{"http://h", "HTTP://h:80", true},
		{"http://[::1]:80/", "http://[::1]/", true},
		{"https://h", "http://h", false},
		{"https://h:443", "http://h:443", false},
		{"http://127.0.0.1:1", "http://127.0.0.1:2", false},
		{"https://h", "https://h.example.org", false},
		{"https://h:80", "https://h", false},
	} {
		if credential.SameOrigin(address(t, tt.a), address(t, tt.b)) != tt.same {
			t.Errorf("%s and %s: want %t", tt.a, tt.b, tt.same)
		}
	}
	at := func(text string) *http.Request { return &http.Request{URL: address(t, text)} }
	if credential.Left(at("http://a/2"), []*http.Request{at("http://a/1")}) {
		t.Error("the same server is another")
	}
	if !credential.Left(at("http://a/3"), []*http.Request{at("http://a/1"), at("http://b/2")}) {
		t.Error("what was elsewhere and came back did not leave")
	}
}

// FuzzStrike: whatever a secret is, no text has it afterwards.
func FuzzStrike(f *testing.F) {
	f.Add("sk-SECRET", "a", "b")
	f.Add("[secret]", "[", "]")
	f.Add("aaaa", "aaa", "aaaaa")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		if len(strings.TrimSpace(secret)) < 4 || strings.Contains(secret, "\x00") || strings.Contains("[secret][secret]", strings.TrimSpace(secret)) {
			return
		}
		var s credential.Secrets
		s.Add(secret)
		if got := s.Strike(before + " " + secret + " " + after); strings.Contains(strings.ReplaceAll(got, "[secret]", "\x00"), strings.TrimSpace(secret)) {
			t.Errorf("%q is in %q", secret, got)
		}
	})
}
