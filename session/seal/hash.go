// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"time"

	"github.com/refrain-dev/refrain/session"
)

// Hash is a hash over events, in their order. Whatever a store keeps of an
// event is in it, so that an event that was changed, added or taken out later
// gives another one. It does not depend on the store: an event that was read
// back counts as the one that was written.
type Hash struct {
	h   hash.Hash
	n   int
	buf []byte
}

// New returns the hash of no events.
func New() *Hash { return &Hash{h: sha256.New()} }

// Add adds the next event. It fails for one that JSON cannot hold.
func (d *Hash) Add(ev *session.Event) error {
	if ev.Omitted > 0 {
		return fmt.Errorf("hash event %d: its long texts are cut off; read the event with View.Whole", ev.Seq)
	}
	plain := *ev.Kept()
	plain.Timestamp = ev.Timestamp.UTC().Truncate(time.Microsecond) // as fine as stores are
	if err := d.AddValue(&plain); err != nil {
		return fmt.Errorf("hash event %d: %w", ev.Seq, err)
	}
	d.n++
	return nil
}

// AddValue adds something that is no event, such as a record of the events.
// Whatever has the same JSON, the order of fields apart, is the same.
func (d *Hash) AddValue(v any) error {
	first, err := json.Marshal(v)
	if err != nil {
		return err
	}
	// A struct in the state comes back as a map: only its fields in order are the same
	// for both.
	if d.buf, err = canonical(d.buf[:0], first); err != nil {
		return err
	}
	text := d.buf
	fmt.Fprintf(d.h, "%d\n", len(text))
	d.h.Write(text)
	return nil
}

// Len is how many events were added, other values not counted.
func (d *Hash) Len() int { return d.n }

// String is the hash so far, as "sha256:" and 64 hexadecimal digits.
func (d *Hash) String() string { return "sha256:" + hex.EncodeToString(d.h.Sum(nil)) }
