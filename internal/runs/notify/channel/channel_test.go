// SPDX-License-Identifier: Apache-2.0

package channel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/refrain-dev/refrain/internal/runs/notify/channel"
)

var message = channel.Message{ID: "r_1.7", Title: "story <!channel> has ended", Text: "@here *done*", Link: "http://127.0.0.1:8080/runs/r_1",
	Record: json.RawMessage(`{"id":"r_1.7"}`)}

// standIn answers as a service, and keeps the last request.
type standIn struct {
	*httptest.Server
	status int
	path   string
	header http.Header
	body   string
}

func newStandIn(t *testing.T) *standIn {
	s := &standIn{status: http.StatusOK}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.path, s.header, s.body = r.URL.RequestURI(), r.Header, string(body)
		w.Header().Set("Retry-After", "2")
		w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
		w.WriteHeader(s.status)
		fmt.Fprintf(w, "no such token: %s", r.URL.Path)
	}))
	t.Cleanup(s.Close)
	return s
}

func parse(t *testing.T, address string) *channel.Channel {
	t.Helper()
	ch, err := channel.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// Each service gets its own body, in which the text of an agent mentions nobody and is not formatted.
func TestBodyOfEachService(t *testing.T) {
	s := newStandIn(t)
	for _, tt := range []struct{ address, service, path, body string }{
		{"slack+%s/services/T0/B0/SECRET", "slack", "/services/T0/B0/SECRET",
			`{"mrkdwn":false,"text":"story \u0026lt;!channel\u0026gt; has ended\n@here *done*\nhttp://127.0.0.1:8080/runs/r_1\nr_1.7","unfurl_links":false,"unfurl_media":false}`},
		{"discord+%s/api/webhooks/1/SECRET", "discord", "/api/webhooks/1/SECRET",
			`{"allowed_mentions":{"parse":[]},"content":"story \u003c` + "\u200b" + `!channel\\\u003e has ended\n@` + "\u200b" +
				`here \\*done\\*\nhttp://127.0.0.1:8080/runs/r_1\nr_1.7","flags":4}`},
		{"telegram+%s/bot1:SECRET?chats=42", "telegram", "/bot1:SECRET/sendMessage",
			`{"chat_id":"42","link_preview_options":{"is_disabled":true},` +
				`"text":"story \u003c` + "\u200b" + `!channel\u003e has ended\n@` + "\u200b" + `here *done*\nhttp://127.0.0.1:8080/runs/r_1\nr_1.7"}`},
		{"mattermost+%s/hooks/SECRET", "mattermost", "/hooks/SECRET",
			`{"text":"story \u003c` + "\u200b" + `!channel\\\u003e has ended\n@` + "\u200b" + `here \\*done\\*\nhttp://127.0.0.1:8080/runs/r_1\nr_1.7"}`},
		{"ntfy+%s/mytopic", "ntfy", "/", `{"click":"http://127.0.0.1:8080/runs/r_1","message":"@here *done*\n\nr_1.7",` +
			`"title":"story \u003c!channel\u003e has ended","topic":"mytopic"}`},
		{"teams+%s/workflows/1?sig=SECRET", "teams", "/workflows/1?sig=SECRET",
			`{"attachments":[{"content":{"$schema":"http://adaptivecards.io/schemas/adaptive-card.json","actions":[{"title":"Open",` +
				`"type":"Action.OpenUrl","url":"http://127.0.0.1:8080/runs/r_1"}],"body":[{"inlines":[{"text":"story \u003c!channel\u003e has ended",` +
				`"type":"TextRun","weight":"Bolder"}],"type":"RichTextBlock"},{"inlines":[{"text":"@here *done*\n\nr_1.7","type":"TextRun",` +
				`"weight":"Default"}],"type":"RichTextBlock"}],"type":"AdaptiveCard","version":"1.4"},` +
				`"contentType":"application/vnd.microsoft.card.adaptive"}],"type":"message"}`},
		{"%s/hook#whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "webhook", "/hook", `{"id":"r_1.7"}`},
	} {
		ch := parse(t, fmt.Sprintf(tt.address, s.URL))
		if err := ch.Send(t.Context(), message); err != nil {
			t.Errorf("%s: %v", tt.service, err)
		}
		if ch.String() != tt.service || s.path != tt.path || s.body != tt.body {
			t.Errorf("%s got %s\n%s\nwant %s\n%s", ch, s.path, s.body, tt.path, tt.body)
		}
	}
	wh, err := standardwebhooks.NewWebhook("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	if err := wh.Verify([]byte(s.body), s.header); err != nil || s.header.Get("webhook-id") != message.ID {
		t.Errorf("the signature: %v; %v", err, s.header)
	}
}

// The addresses that services show need no more than themselves.
func TestServiceOfAnAddress(t *testing.T) {
	for address, want := range map[string]string{
		"https://hooks.slack.com/services/T/B/X": "slack", "slack://hook:T-B-X@webhook": "slack",
		"https://discord.com/api/webhooks/1/x": "discord", "discord://x@1": "discord",
		"telegram://1:x@telegram?chats=-5": "telegram", "https://ntfy.sh/topic": "ntfy", "ntfy://me:pw@ntfy.example/topic": "ntfy",
		"https://a.b.logic.azure.com/workflows/1": "teams", "mattermost://chat.example/token": "mattermost",
		"generic+https://example.org/x": "webhook", "generic://example.org/x": "webhook", "https://example.org/x": "webhook",
		"smtp://u:p@mail.example:587/?from=a@example.org&to=b@example.org": "mail",
	} {
		if ch := parse(t, address); ch.String() != want {
			t.Errorf("%s is %s, want %s", address, ch, want)
		}
	}
	for _, address := range []string{"", "SECRETSECRET", "http://", "pushover://SECRETSECRET@x", "irc+https://x/SECRETSECRET", "telegram://SECRETSECRET@telegram",
		"ntfy://ntfy.sh/", "smtp://u:SECRETSECRET@mail.example", "https://x/#SECRETSECRET", "https://x/SECRETSECRET\x00"} {
		if _, err := channel.Parse(address); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%q: error %v", address, err)
		}
	}
}

// An error says what the service answers, and no part of the address.
func TestFailures(t *testing.T) {
	s := newStandIn(t)
	ch := parse(t, "slack+"+s.URL+"/services/T0/B0/SECRETSECRET")
	for status, permanent := range map[int]bool{404: true, 302: true, 429: false, 503: false} {
		s.status = status
		err := ch.Send(t.Context(), message)
		answer, ok := errors.AsType[*channel.Error](err)
		if !ok || answer.Status != status || answer.Permanent() != permanent || answer.After != 2*time.Second ||
			strings.Contains(err.Error(), "SECRET") || !strings.Contains(err.Error(), "no such token") {
			t.Errorf("%d: error %v", status, err)
		}
	}
	s.Close()
	if err := ch.Send(t.Context(), message); err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("without a server: error %v", err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, address := range []string{"http://%s/x", "smtp://%s/?from=a@example.org&to=b@example.org"} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		began := time.Now()
		err := parse(t, fmt.Sprintf(address, silent.Addr())).Send(ctx, message)
		if cancel(); err == nil || time.Since(began) > 10*time.Second {
			t.Errorf("%s: error %v", address, err)
		}
	}
}

// A service that repeats the address into which one of shoutrrr is translated reveals no secret.
func TestTranslatedAddressIsSecret(t *testing.T) {
	service := &answering{}
	before := http.DefaultTransport
	http.DefaultTransport = service
	defer func() { http.DefaultTransport = before }()
	for _, address := range []string{"slack://hook:T0-B0-SECRETSECRET@webhook", "discord://SECRETSECRET@1", "telegram://1:SECRETSECRET@telegram?chats=2",
		"mattermost://chat.example/SECRETSECRET"} {
		err := parse(t, address).Send(t.Context(), message)
		if err == nil || !strings.Contains(service.path, "SECRET") || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s, asked at %s: error %v", address, service.path, err)
		}
	}
}

// answering is a transport that answers with the path of the request.
type answering struct{ path string }

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	a.path = r.URL.Path
	return &http.Response{StatusCode: http.StatusNotFound, Body: io.NopCloser(strings.NewReader("no " + a.path)), Request: r}, nil
}
