// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/operations"
	"github.com/refrain-dev/refrain/operations/problem"
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
	err  error
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
	rep, err := x.Replies.begin(r.Method+" "+r.URL.Path+" "+key, sha256.Sum256(body))
	if err != nil {
		return err
	}
	if !rep.done {
		x.Replies.fill(rep, func() { rep.code, rep.data, rep.err = do() })
	} else {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	if rep.err != nil {
		return rep.err
	}
	return x.SendMasked(w, rep.code, rep.data)
}

// DoOnce does what a request asks for, unless the same one has done it.
func (all *Replies) DoOnce(key string, body [32]byte, do func() error) error {
	rep, err := all.begin(key, body)
	if err != nil || rep.done {
		return err
	}
	all.fill(rep, func() { rep.err = do() })
	return rep.err
}

// fill has an answer made and known. One that ends in a panic has failed.
func (all *Replies) fill(rep *reply, do func()) {
	rep.err = errors.New("the request panicked")
	defer all.end(rep)
	do()
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

// end makes an answer known. What has failed may be tried again.
func (all *Replies) end(rep *reply) {
	all.mu.Lock()
	defer all.mu.Unlock()
	rep.done = true
	if rep.err == nil {
		return
	}
	for key, other := range all.all {
		if other == rep {
			delete(all.all, key)
		}
	}
}

// forget removes the answers that are old, and if there are none, all that are done.
func (all *Replies) forget() {
	before := len(all.all)
	for key, rep := range all.all {
		if rep.done && time.Since(rep.at) > repliesTime {
			delete(all.all, key)
		}
	}
	if len(all.all) < before {
		return
	}
	for key, rep := range all.all {
		if rep.done {
			delete(all.all, key)
		}
	}
}
