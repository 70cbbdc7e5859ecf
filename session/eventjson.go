// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"math"
	"time"

	json "github.com/go-json-experiment/json/v1" // reads as encoding/json does, in half the time
)

// stored is an event as this package writes it: without UnmarshalJSON.
type stored Event

// Decode reads an event from its JSON; e must be empty. The state delta has plain
// values; see [Plain]. Decode is for stores: it is faster than json.Unmarshal, and
// refuses a timestamp that is a number.
func (e *Event) Decode(data []byte) error {
	if err := json.Unmarshal(data, (*stored)(e)); err != nil {
		return err
	}
	return e.restore(data)
}

// UnmarshalJSON reads an event. The state delta has plain values; see [Plain]. The
// timestamp may also be a number, as Python's ADK writes it: seconds since 1970, read
// to the microsecond.
func (e *Event) UnmarshalJSON(data []byte) error {
	err := json.Unmarshal(data, (*stored)(e))
	if err == nil {
		return e.restore(data)
	}
	var number struct {
		Timestamp *float64 `json:"timestamp"`
	}
	if json.Unmarshal(data, &number) != nil || number.Timestamp == nil {
		return err
	}
	at := time.UnixMicro(int64(math.Round(*number.Timestamp * 1e6))).UTC()
	if y := at.Year(); y < 1 || y > 9999 || math.Abs(*number.Timestamp) > 1e12 {
		return fmt.Errorf("timestamp %v of an event is not in seconds since 1970", *number.Timestamp)
	}
	rest := struct {
		*stored
		Timestamp json.RawMessage `json:"timestamp"` // takes the place of the event's
	}{stored: (*stored)(e)}
	if err := json.Unmarshal(data, &rest); err != nil {
		return err
	}
	e.Timestamp = at
	return e.restore(data)
}
