// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"

	"github.com/refrain-dev/refrain/server"
)

// listener gets push notifications.
type listener struct {
	*httptest.Server
	came chan string

	mu     sync.Mutex
	broken int // how many of the next notifications are answered 503
	all    []string
}

func listens(t *testing.T) *listener {
	l := &listener{came: make(chan string, 100)}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var now struct{ Task *a2a.Task }
		var old struct {
			Kind, ID string
			Status   struct{ State string }
		}
		_, _ = json.Unmarshal(body, &now), json.Unmarshal(body, &old)
		state := old.Kind + " " + old.Status.State
		if now.Task != nil {
			state = string(now.Task.Status.State)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.broken > 0 {
			l.broken--
			http.Error(w, "later", http.StatusServiceUnavailable)
			l.came <- "503"
			return
		}
		l.all = append(l.all, state)
		l.came <- fmt.Sprintf("%s %s%s %s", state, r.Header.Get("A2A-Notification-Token"), r.Header.Get("X-A2A-Notification-Token"), r.Header.Get("Authorization"))
	}))
	t.Cleanup(l.Close)
	return l
}

// hears waits for a notification that begins so. Others may come before.
func (l *listener) hears(t *testing.T, what string) {
	t.Helper()
	late := time.After(soon)
	var came []string
	for {
		select {
		case got := <-l.came:
			if came = append(came, got); strings.HasPrefix(got, what) {
				return
			}
		case <-late:
			t.Fatalf("got %q, want %s", came, what)
		}
	}
}

// A client of A2A gets the task at each change of its state, with its token, in its version of the protocol.
func TestA2APush(t *testing.T) {
	for _, by := range speeches {
		t.Run(by.String(), func(t *testing.T) {
			s := open(t, map[string]string{"climbing.yaml": climbing}, private)
			l := listens(t)
			p := s.peer("climbing", by)
			if !p.card.Capabilities.PushNotifications {
				t.Error("the card has no push notifications")
			}
			asks, completed := "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED"
			if by.version == a2av0.Version {
				asks, completed = "task input-required", "task completed"
			}
			with := func(c *a2a.SendMessageConfig) {
				c.PushConfig = &a2a.PushConfig{ID: "mine", URL: l.URL, Token: "t1", Auth: &a2a.PushAuthInfo{Scheme: "Bearer", Credentials: "c1"}}
			}
			task := p.send(words("Up!"), with)
			l.hears(t, asks+" t1t1 Bearer c1")
			all, err := p.ListTaskPushConfigs(t.Context(), &a2a.ListTaskPushConfigRequest{TaskID: task.ID})
			if err != nil || len(all) != 1 || all[0].ID != "mine" || all[0].URL != l.URL || all[0].Token != "t1" {
				t.Errorf("the list is %+v, %v", all, err)
			}
			more, err := p.CreateTaskPushConfig(t.Context(), &a2a.PushConfig{TaskID: task.ID, URL: l.URL + "/2", Token: "t2"})
			if err != nil || more.ID == "" {
				t.Fatalf("got %+v, %v", more, err)
			}
			l.hears(t, asks+" t2t2 ")
			one, err := p.GetTaskPushConfig(t.Context(), &a2a.GetTaskPushConfigRequest{TaskID: task.ID, ID: more.ID})
			if err != nil || one.URL != l.URL+"/2" || one.Token != "t2" {
				t.Errorf("got %+v, %v", one, err)
			}
			if err := p.DeleteTaskPushConfig(t.Context(), &a2a.DeleteTaskPushConfigRequest{TaskID: task.ID, ID: "mine"}); err != nil {
				t.Error(err)
			}
			if _, err := p.GetTaskPushConfig(t.Context(), &a2a.GetTaskPushConfigRequest{TaskID: task.ID, ID: "mine"}); err == nil {
				t.Error("the address is still there")
			}
			p.send(to(task, "yes"))
			p.send(to(task, "yes"))
			l.hears(t, completed+" t2t2 ")
			if log := string(s.ok("GET", "/api/v1/runs/"+string(task.ID)+"/events", nil, nil).body); strings.Contains(log, "t2") && strings.Contains(log, l.URL) {
				t.Error("the log of the run has the address")
			}
		})
	}
}

// A server that answers an error gets the notification again, and a restart loses none.
func TestA2APushIsRepeated(t *testing.T) {
	s := open(t, map[string]string{"climbing.yaml": climbing}, private)
	l := listens(t)
	l.broken = 1
	p := s.peer("climbing", speeches[0])
	with := func(c *a2a.SendMessageConfig) { c.PushConfig = &a2a.PushConfig{URL: l.URL, Token: "t1"} }
	task := p.send(words("Up!"), with)
	l.hears(t, "TASK_STATE_INPUT_REQUIRED t1")
	l.mu.Lock()
	l.broken = 1000
	l.mu.Unlock()
	p.send(to(task, "yes"))
	p.send(to(task, "yes"))
	l.hears(t, "503")
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	l.broken = 0
	l.mu.Unlock()
	s.start(private)
	if err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.hears(t, "TASK_STATE_COMPLETED t1")
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	// It was told, so the next server does not tell it again.
	s.start(private)
	if err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case again := <-l.came:
		t.Errorf("got again %s", again)
	case <-time.After(300 * time.Millisecond):
	}
}

// Two servers of one store tell a change once.
func TestA2APushOfTwoServers(t *testing.T) {
	s := open(t, map[string]string{"climbing.yaml": climbing}, private)
	other := &site{TB: t, dir: s.dir, store: s.store, logs: new(logs)}
	other.start(private, func(cfg *server.Config) { cfg.Owner = "the other" })
	l := listens(t)
	p := s.peer("climbing", speeches[0])
	with := func(c *a2a.SendMessageConfig) { c.PushConfig = &a2a.PushConfig{URL: l.URL, Token: "t1"} }
	task := p.send(words("Up!"), with)
	if err := other.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.send(to(task, "yes"))
	p.send(to(task, "yes"))
	l.hears(t, "TASK_STATE_COMPLETED t1")
	time.Sleep(300 * time.Millisecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(slices.DeleteFunc(l.all, func(s string) bool { return s != "TASK_STATE_COMPLETED" })); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// A message that arrives again, because its client did not hear the answer, adds no second address.
func TestA2APushOfAMessageSentAgain(t *testing.T) {
	s := open(t, map[string]string{"climbing.yaml": climbing}, private)
	l := listens(t)
	p := s.peer("climbing", speeches[0])
	with := func(c *a2a.SendMessageConfig) {
		c.PushConfig = &a2a.PushConfig{URL: l.URL, Token: "t1", Auth: &a2a.PushAuthInfo{Scheme: "Bearer", Credentials: "c1"}}
	}
	start := words("Up!")
	task := p.send(start, with)
	l.hears(t, "TASK_STATE_INPUT_REQUIRED t1")
	p.send(start, with)
	all, err := p.ListTaskPushConfigs(t.Context(), &a2a.ListTaskPushConfigRequest{TaskID: task.ID})
	if err != nil || len(all) != 1 || all[0].ID == "" {
		t.Errorf("the addresses are %+v, %v", all, err)
	}
}

// Notifications go where agents may go, and addresses that get none are refused before the message is taken.
func TestA2APushAddresses(t *testing.T) {
	s := open(t, map[string]string{"climbing.yaml": climbing})
	p := s.peer("climbing", speeches[0])
	task := p.send(words("Up!"))
	for url, says := range map[string]string{
		"http://127.0.0.1:1/x": "--allow-private", "http://localhost/x": "--allow-private", "http://169.254.169.254/": "--allow-private",
		"http://[::1]/": "--allow-private", "http://10.0.0.1/": "--allow-private", "ftp://example.org/": "web server", "/x": "web server",
		"https://u:p@example.org/": "password", "https://example.org/" + strings.Repeat("x", 5000): "at most 4096",
	} {
		_, err := p.CreateTaskPushConfig(t.Context(), &a2a.PushConfig{TaskID: task.ID, URL: url})
		p.refusal(err, a2a.ErrInvalidParams, says)
		_, err = p.SendMessage(t.Context(), &a2a.SendMessageRequest{Message: words("Up!"), Config: &a2a.SendMessageConfig{PushConfig: &a2a.PushConfig{URL: url}}})
		p.refusal(err, a2a.ErrInvalidParams, says)
	}
	_, err := p.CreateTaskPushConfig(t.Context(), &a2a.PushConfig{TaskID: "none", URL: "https://example.org/"})
	p.refusal(err, a2a.ErrTaskNotFound, "no run")
	list, err := p.ListTasks(t.Context(), &a2a.ListTasksRequest{})
	if err != nil || list.TotalSize != 1 {
		t.Errorf("there are %+v, %v", list, err)
	}
	for i := range 9 {
		if _, err = p.CreateTaskPushConfig(context.Background(), &a2a.PushConfig{TaskID: task.ID, URL: fmt.Sprintf("https://nowhere.invalid/%d", i)}); err != nil {
			break
		}
	}
	p.refusal(err, a2a.ErrInvalidParams, "8 addresses")
}
