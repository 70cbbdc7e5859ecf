// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// UnmarshalJSON reads an event. Its timestamp may also be a number, as Python's ADK
// writes it: seconds since 1970, read to the microsecond.
func (e *Event) UnmarshalJSON(data []byte) error {
	type plain Event // without this method
	err := json.Unmarshal(data, (*plain)(e))
	if err == nil {
		return nil
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
	*e = Event{}
	rest := struct {
		*plain
		Timestamp json.RawMessage `json:"timestamp"` // takes the place of the event's
	}{plain: (*plain)(e)}
	if err := json.Unmarshal(data, &rest); err != nil {
		return err
	}
	e.Timestamp = at
	return nil
}
