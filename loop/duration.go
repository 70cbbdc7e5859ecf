// SPDX-License-Identifier: Apache-2.0

package loop

import "time"

// Duration is a span of time that JSON writes as people do: "1m30s". 0 means
// that there is no limit, or no delay.
type Duration time.Duration

// String is that of [time.Duration].
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes the duration as a text.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what [time.ParseDuration] does.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}
