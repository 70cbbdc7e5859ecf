// SPDX-License-Identifier: Apache-2.0

//go:build unix

package launcher_test

import (
	"net/http"
	"strings"

	old "github.com/a2aproject/a2a-go/a2a"
	oldclient "github.com/a2aproject/a2a-go/a2aclient"
	oldcard "github.com/a2aproject/a2a-go/a2aclient/agentcard"
	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
)

// agents asks the root agent of a server over A2A: with the SDKs of both versions of the protocol, by the one card of the server
// and at the addresses that ADK has. ADK 1.6 resolves cards as the old SDK does.
func (m *moved) agents(where string) {
	m.Helper()
	card, err := agentcard.DefaultResolver.Resolve(m.Context(), where)
	if err != nil {
		m.Fatal(err)
	}
	oldest, err := oldcard.DefaultResolver.Resolve(m.Context(), where)
	if err != nil {
		m.Fatal(err)
	}
	if card.Name != "helper" || oldest.Name != "helper" || oldest.Description != "Helps." || oldest.URL != where+"/a2a/helper" {
		m.Errorf("the cards are %+v and %+v", card, oldest)
	}
	client, err := a2aclient.NewFromCard(m.Context(), card)
	if err != nil {
		m.Fatal(err)
	}
	got, err := client.SendMessage(m.Context(), &a2a.SendMessageRequest{Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart("I am Ana"))})
	if task, ok := got.(*a2a.Task); err != nil || !ok || task.Status.State != a2a.TaskStateCompleted {
		m.Errorf("a client of 1.0 got %+v, %v", got, err)
	}
	oldAsk, err := oldclient.NewFromCard(m.Context(), oldest)
	if err != nil {
		m.Fatal(err)
	}
	msg := old.NewMessage(old.MessageRoleUser, old.TextPart{Text: "I am Ana"})
	oldGot, err := oldAsk.SendMessage(m.Context(), &old.MessageSendParams{Message: msg})
	if task, ok := oldGot.(*old.Task); err != nil || !ok || task.Status.State != old.TaskStateCompleted {
		m.Errorf("a client of 0.3 got %+v, %v", oldGot, err)
	}
	for path, method := range map[string]string{"/a2a/invoke": "tasks/get", "/a2a/v1/invoke": "GetTask"} {
		req, err := http.NewRequestWithContext(m.Context(), "POST", where+path, strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"id":"none"}}`))
		if err != nil {
			m.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			m.Fatal(err)
		}
		m.has(readAll(m, resp), `"jsonrpc":"2.0"`, `"code":-32001`)
	}
}
