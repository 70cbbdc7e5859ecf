// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/refrain-dev/refrain/internal/runs/record"
	"github.com/refrain-dev/refrain/session"
)

type count struct{ N int }

func records(service session.Service) record.Records[count] {
	return record.Records[count]{Service: service, AppName: "app-count", UserID: "user", Key: "count"}
}

// Each of several changes at the same time counts.
func TestChangesOfSeveral(t *testing.T) {
	all := records(session.InMemoryService())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := all.Change(t.Context(), "r_1", func(c *count) error { c.N++; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if c, ok, err := all.Read(t.Context(), "r_1"); err != nil || !ok || c.N != 8 {
		t.Errorf("got %v, %t, %v", c, ok, err)
	}
}

// refusing has a session that nobody can read, and that nobody can create either.
type refusing struct {
	session.Service
	creates int
}

func (r *refusing) Create(context.Context, *session.CreateRequest) (*session.CreateResponse, error) {
	r.creates++
	return nil, session.ErrExists
}

// A store that refuses every change ends the attempts, and so does the end of the context.
func TestChangeGivesUp(t *testing.T) { synctest.Test(t, givesUp) }

func givesUp(t *testing.T) {
	service := &refusing{Service: session.InMemoryService()}
	same := func(*count) error { return nil }
	if err := records(service).Change(t.Context(), "r_1", same); !errors.Is(err, session.ErrExists) || service.creates != 100 {
		t.Errorf("error %v after %d attempts", err, service.creates)
	}
	ctx, cancel := context.WithCancel(t.Context())
	service.creates = 0
	err := records(service).Change(ctx, "r_1", func(*count) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) || service.creates > 1 {
		t.Errorf("error %v after %d attempts", err, service.creates)
	}
}
