// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"

	"github.com/refrain-dev/refrain/internal/values/canonical"
	"github.com/refrain-dev/refrain/session"
)

// Hash is a hash over events, in their order, as seals of older versions and exports have it. It covers everything that a store keeps of an event, so
// changing, adding or removing an event gives another hash. It does not depend on the store: an event has
// the same hash after it is read back.
type Hash struct {
	h       hash.Hash
	n       int
	buf     []byte
	waiting []byte // what h has not got yet: it takes one long text in less time than many short ones
}

// block is how much a Hash lets wait.
const block = 1 << 10

// New returns the hash of no events.
func New() *Hash { return &Hash{h: sha256.New()} }

// Add adds the next event. It fails for an event that JSON cannot hold.
func (d *Hash) Add(ev *session.Event) (err error) {
	if d.buf, err = ev.AppendCanonical(d.buf[:0]); err == nil {
		d.AddData(d.buf)
	}
	return err
}

// AddData adds the next event, whose [session.Event.AppendCanonical] is data.
func (d *Hash) AddData(data []byte) {
	d.write(data)
	d.n++
}

// AddValue adds a value that is not an event, such as a record of the events. Values with the same JSON,
// apart from the order of fields, have the same hash.
func (d *Hash) AddValue(v any) (err error) {
	if d.buf, err = canonical.AppendJSON(d.buf[:0], v); err == nil {
		d.write(d.buf)
	}
	return err
}

// write takes in JSON, with its length.
func (d *Hash) write(data []byte) {
	d.waiting = append(strconv.AppendInt(d.waiting, int64(len(data)), 10), '\n')
	if d.waiting = append(d.waiting, data...); len(d.waiting) >= block {
		d.flush()
	}
}

func (d *Hash) flush() {
	d.h.Write(d.waiting)
	if d.waiting = d.waiting[:0]; cap(d.waiting) > 2*block { // of a long text
		d.waiting = nil
	}
}

// clone returns a hash that is continued apart.
func (d *Hash) clone() *Hash {
	d.flush()
	h, err := d.h.(hash.Cloner).Clone()
	if err != nil {
		panic(err) // that of package crypto/sha256 has no error
	}
	return &Hash{h: h, n: d.n}
}

// Len returns how many events were added; other values do not count.
func (d *Hash) Len() int { return d.n }

// String returns the hash so far, as "sha256:" and 64 hexadecimal digits.
func (d *Hash) String() string {
	d.flush()
	return "sha256:" + hex.EncodeToString(d.h.Sum(nil))
}
