// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"crypto/sha256"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
)

// Replies remembers the answers to requests with an Idempotency-Key, so that a client which got none
// can ask again: what was done is not done twice. They are kept for a day, in memory. The start of a
// run is known for as long as the run: see startRun.
type Replies struct {
	mu  sync.Mutex
	all map[string]*reply
}

// reply is the answer to one request.
type reply struct {
	body [32]byte // hash of the request's
	at   time.Time
	done bool
	code int
	data any
}

// How long an answer is kept, and how many.
const (
	repliesTime = 24 * time.Hour
	repliesMost = 10_000
	KeyMost     = 255
)

// DoOnce does what a request asks for, or gives the answer that the same request got.
func (x *Exchange) DoOnce(w http.ResponseWriter, r *http.Request, body []byte, do func() (int, any, error)) error {
	key := r.Header.Get("Idempotency-Key")
	if key == "" {
		code, data, err := do()
		if err != nil {
			return err
		}
		return x.SendMasked(w, code, data)
	}
	if len(key) > KeyMost {
		return problem.Bad("the Idempotency-Key has more than %d characters", KeyMost)
	}
	rep, again, err := x.Replies.do(r.Method+" "+r.URL.Path+" "+key, sha256.Sum256(body), do)
	if again {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	if err != nil {
		return err
	}
	return x.SendMasked(w, rep.code, rep.data)
}

// DoOnce does what a request asks for, unless the same one has done it.
func (all *Replies) DoOnce(key string, body [32]byte, do func() error) error {
	_, _, err := all.do(key, body, func() (int, any, error) { return 0, nil, do() })
	return err
}

// do returns the answer that the same request got, or else makes it. What has failed, or ended in a panic, may be tried again.
func (all *Replies) do(key string, body [32]byte, do func() (int, any, error)) (rep *reply, again bool, err error) {
	rep, err = all.begin(key, body)
	if err != nil || rep.done {
		return rep, err == nil, err
	}
	failed := true
	defer func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		if rep.done = true; failed {
			delete(all.all, key)
		}
	}()
	rep.code, rep.data, err = do()
	failed = err != nil
	return rep, false, err
}

// begin finds the answer to a request, or makes a place for it.
func (all *Replies) begin(key string, body [32]byte) (*reply, error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if rep := all.all[key]; rep != nil {
		switch {
		case rep.body != body:
			return nil, operations.ErrKeyUsed
		case !rep.done:
			return nil, problem.New(http.StatusConflict, "key_in_use", "The same request is under way", "ask again")
		}
		return rep, nil
	}
	if all.all == nil {
		all.all = make(map[string]*reply)
	}
	if len(all.all) >= repliesMost {
		all.forget()
	}
	rep := &reply{body: body, at: time.Now()}
	all.all[key] = rep
	return rep, nil
}

// forget removes the answers that are old, and if there are none, all that are done.
func (all *Replies) forget() {
	before := len(all.all)
	maps.DeleteFunc(all.all, func(_ string, rep *reply) bool { return rep.done && time.Since(rep.at) > repliesTime })
	if len(all.all) == before {
		maps.DeleteFunc(all.all, func(_ string, rep *reply) bool { return rep.done })
	}
}
