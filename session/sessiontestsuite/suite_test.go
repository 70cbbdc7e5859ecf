// SPDX-License-Identifier: Apache-2.0

package sessiontestsuite_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sessiontestsuite"
)

var opts = sessiontestsuite.SuiteOptions{SupportsUserProvidedSessionID: true}

// The service in memory keeps ADK's promises, and so does one that makes every ID itself.
func TestInMemoryService(t *testing.T) {
	sessiontestsuite.RunServiceTests(t, opts, func(*testing.T) session.Service { return session.InMemoryService() })
	t.Run("own IDs", func(t *testing.T) {
		own := sessiontestsuite.SuiteOptions{ProvidesServerAssignedEventID: true, AppName: "mine"}
		sessiontestsuite.RunServiceTests(t, own, func(*testing.T) session.Service { return serverIDs{session.InMemoryService()} })
	})
}

// serverIDs is a service that makes the IDs of sessions and events.
type serverIDs struct{ session.Service }

func (s serverIDs) Create(ctx context.Context, req *session.CreateRequest) (*session.CreateResponse, error) {
	if req.SessionID != "" {
		return nil, fmt.Errorf("session %q: the service makes the IDs", req.SessionID)
	}
	return s.Service.Create(ctx, req)
}

func (s serverIDs) AppendEvent(ctx context.Context, to session.Session, ev *session.Event) error {
	mine := *ev
	mine.ID = ""
	return s.Service.AppendEvent(ctx, to, &mine)
}

// forgetful breaks one promise: it does not store what is appended.
type forgetful struct{ session.Service }

func (forgetful) AppendEvent(context.Context, session.Session, *session.Event) error { return nil }

// The suite fails for a service that loses events. It runs in a process of its own, as it fails its test.
func TestSuiteFindsALostEvent(t *testing.T) {
	if os.Getenv("REFRAIN_FORGETFUL") != "" {
		sessiontestsuite.RunServiceTests(t, opts, func(*testing.T) session.Service { return forgetful{session.InMemoryService()} })
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSuiteFindsALostEvent$")
	cmd.Env = append(os.Environ(), "REFRAIN_FORGETFUL=1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("the suite passes:\n%s", out)
	}
	for _, name := range []string{"append", "order", "fields", "app_state", "append_to_a_deleted_session"} {
		if !strings.Contains(string(out), "--- FAIL: TestSuiteFindsALostEvent/"+name+" ") {
			t.Errorf("%s passes:\n%s", name, out)
		}
	}
}

func ExampleSnapshot() {
	ctx, svc := context.Background(), session.InMemoryService()
	made, err := svc.Create(ctx, &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s1", State: map[string]any{"k": "v"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	held := sessiontestsuite.Snapshot(made.Session)
	fmt.Println(held.UserID, held.SessionID, held.State, len(held.Events))
	// Output: ana s1 map[k:v] 0
}
