// SPDX-License-Identifier: Apache-2.0

package mark

import "github.com/refrain-dev/refrain/session/internal/jsonscan"

// read reads the data of most marks of a log, without reflection and without a copy of what it
// contains. It returns false, and changes nothing, if encoding/json has to read it.
func (f *StepFinished) read(data []byte) bool {
	s, got := jsonscan.New(data), *f
	var seen uint64
	ok := s.Object(func(key []byte) bool {
		var field uint
		var ok bool
		switch string(key) { // no allocation
		case "error":
			field, ok = 1, s.Into(&got.Error)
		case "kind":
			field, ok = 2, s.Into((*string)(&got.Kind))
		case "permanent":
			field, ok = 3, s.Bool(&got.Permanent)
		case "budget":
			field, ok = 4, s.Into(&got.Budget)
		case "retry_after_ns":
			field, ok = 5, s.Int64((*int64)(&got.RetryAfter))
		case "timeout":
			field, ok = 6, s.Bool(&got.Timeout)
		case "canceled":
			field, ok = 7, s.Bool(&got.Canceled)
		case "again":
			field, ok = 8, s.Bool(&got.Again)
		case "at":
			field, ok = 9, s.Into(&got.At)
		case "seconds":
			field, ok = 10, s.Float(&got.Seconds)
		case "outcome":
			got.Outcome = s.Raw()
			field, ok = 11, got.Outcome != nil
		case "usage":
			got.Usage = s.Raw()
			field, ok = 12, got.Usage != nil
		}
		return ok && jsonscan.Once(&seen, field)
	})
	if ok = ok && s.End(); ok {
		*f = got
	}
	return ok
}
