// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/runs/schedule"
)

// one parses a file with one schedule, whose times are the lines.
func one(t *testing.T, lines ...string) *schedule.Schedule {
	t.Helper()
	text := "schedules:\n  - name: nightly\n    definition: fix\n    " + strings.Join(lines, "\n    ")
	list, problems := schedule.Parse("schedules.yaml", []byte(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return list[0]
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The time that a change of summer time skips starts at the change, and one that it repeats starts once, unless the hour is *.
func TestTimesAtAChangeOfSummerTime(t *testing.T) {
	for _, tt := range []struct {
		cron, zone, from string
		want             []string
	}{
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"*/20 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		{"0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T00:45:00Z", []string{"2026-10-26T01:30:00Z"}},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", []string{"2026-10-26T01:30:00Z"}},
		{"30 1 * * *", "America/New_York", "2026-11-01T00:00:00Z", []string{"2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"}},
		{"15 0 * * *", "America/Santiago", "2026-09-05T12:00:00Z", []string{"2026-09-06T04:00:00Z", "2026-09-07T03:15:00Z"}}, // skips midnight
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", []string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
		{"*/30 * * * *", "Europe/Berlin", "2026-03-29T00:20:00Z", []string{"2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"}},
		{"*/30 * * * *", "Europe/Berlin", "2026-10-25T00:20:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z"}},
		{"@daily", "UTC", "2026-10-25T00:00:00Z", []string{"2026-10-26T00:00:00Z"}},
	} {
		s := one(t, fmt.Sprintf("cron: %q", tt.cron), "timezone: "+tt.zone)
		var got []string
		next := at(t, tt.from)
		for range tt.want {
			next = s.Next(next)
			got = append(got, next.UTC().Format(time.RFC3339))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s in %s from %s: %s", tt.cron, tt.zone, tt.from, diff)
		}
	}
}

// Through a whole year in many zones, each day has the time once.
func TestEachDayHasItsTimeOnce(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Tehran", "Pacific/Apia"} {
		for _, hour := range []int{0, 1, 2, 3, 23} {
			s := one(t, fmt.Sprintf(`cron: "30 %d * * *"`, hour), "timezone: "+zone)
			days := map[string]bool{}
			last := time.Date(2026, 1, 1, 12, 0, 0, 0, s.Location)
			for range 365 {
				next := s.Next(last)
				if day := next.Format(time.DateOnly); !next.After(last) || days[day] {
					t.Fatalf("%s at %d:30: %s follows %s", zone, hour, next, last)
				} else {
					days[day] = true
				}
				last = next
			}
			if want := time.Date(2027, 1, 1, hour, 30, 0, 0, s.Location); hour < 12 && !last.Equal(want) {
				t.Errorf("%s at %d:30: the 365th time is %s, want %s", zone, hour, last, want)
			}
		}
	}
}

func TestIntervalsCountFromOneOrigin(t *testing.T) {
	s := one(t, "every: 90s")
	from := at(t, "2026-11-30T10:00:01.5Z")
	next := s.Next(from)
	if next.Unix()%90 != 0 || next.Sub(from) > 90*time.Second || !s.Next(next).Equal(next.Add(90*time.Second)) {
		t.Errorf("the times are %s and %s", next, s.Next(next))
	}
	if got := s.RunID(next); got != "nightly@"+next.UTC().Format("20060102T150405Z") {
		t.Errorf("the ID is %s", got)
	}
}

// Only the newest missed time starts late, and none that is later than catch_up allows.
func TestNewestMissedTime(t *testing.T) {
	s := one(t, `cron: "0 * * * *"`, "catch_up: 3h")
	now := at(t, "2026-11-30T12:30:00Z")
	for from, want := range map[string]string{
		"2026-11-20T00:00:00Z": "2026-11-30T12:00:00Z",
		"2026-11-30T11:59:59Z": "2026-11-30T12:00:00Z",
		"2026-11-30T12:00:00Z": "0001-01-01T00:00:00Z",
	} {
		if got := s.Newest(at(t, from), now).Format(time.RFC3339); got != want {
			t.Errorf("after %s the newest time is %s, want %s", from, got, want)
		}
	}
	daily := one(t, `cron: "0 2 * * *"`, "catch_up: 1h")
	for now, want := range map[string]bool{"2026-11-30T02:00:00Z": true, "2026-11-30T03:00:00Z": true, "2026-11-30T03:00:01Z": false, "2026-11-30T01:59:59Z": false} {
		if got := !daily.Newest(time.Time{}, at(t, now)).IsZero(); got != want {
			t.Errorf("at %s the time of 2:00 starts: %v", now, got)
		}
	}
	strict := one(t, `cron: "0 2 * * *"`, "catch_up: 0s")
	if strict.Newest(time.Time{}, at(t, "2026-11-30T02:00:09Z")).IsZero() || !strict.Newest(time.Time{}, at(t, "2026-11-30T02:00:11Z")).IsZero() {
		t.Error("with catch_up: 0s a run starts up to 10 s late")
	}
}

func TestJitterDependsOnTheTimeOnly(t *testing.T) {
	s, same := one(t, "every: 1h", "jitter: 30m"), one(t, "every: 1h", "jitter: 30m")
	seen := map[time.Duration]bool{}
	next := at(t, "2026-11-30T00:00:00Z")
	for range 100 {
		next = s.Next(next)
		late := s.Due(next).Sub(next)
		if late < 0 || late >= 30*time.Minute || !same.Due(next).Equal(s.Due(next)) {
			t.Fatalf("%s is due after %s", next, late)
		}
		seen[late] = true
		if got := s.Newest(next.Add(-time.Second), next.Add(late)); !got.Equal(next) {
			t.Errorf("when %s is due, the newest time is %s", next, got)
		}
		if got := s.Newest(next.Add(-time.Second), next.Add(late-time.Millisecond)); !got.IsZero() {
			t.Errorf("before %s is due, the newest time is %s", next, got)
		}
	}
	if len(seen) < 90 {
		t.Errorf("100 times have %d delays", len(seen))
	}
}

func TestMostStartsADay(t *testing.T) {
	for lines, want := range map[string]int{
		"every: 10m": 144, `cron: "0 2 * * *"`: 1, `cron: "0 9-17 * * 1-5"`: 9, `cron: "0 0 1 1 *"`: 1, "every: 7h": 4, `cron: "* * * * *"`: 1440,
	} {
		if got := one(t, lines).MostADay(at(t, "2026-11-30T00:00:00Z")); got != want {
			t.Errorf("%s starts %d times a day, want %d", lines, got, want)
		}
	}
}

func TestMistakesInAFileOfSchedules(t *testing.T) {
	for text, want := range map[string]string{
		"schedules:\n  - name: a\n    definiton: b\n    every: 1h":                                     `s.yaml:3:5: error: unknown field "definiton" of a schedule [LOOP003] did you mean "definition"?`,
		"schedules:\n  - {name: a, definition: b}":                                                     `s.yaml:2:5: error: a schedule without cron or every [LOOP006]`,
		"schedules:\n  - {name: a, definition: b, every: 1h, cron: '@daily'}":                          `error: a schedule has either cron or every [LOOP007]`,
		"schedules:\n  - {name: a, definition: b, cron: '61 * * * *'}":                                 `s.yaml:2:36: error: cron "61 * * * *": end of range (61) above maximum (59): 61 [LOOP004]`,
		"schedules:\n  - {name: a, definition: b, cron: '0 0 30 2 *'}":                                 `this time never comes`,
		"schedules:\n  - {name: a, definition: b, cron: '@every 1h'}":                                  `an interval has a field of its own, every`,
		"schedules:\n  - {name: a, definition: b, cron: 'TZ=UTC 0 0 * * *'}":                           `the time zone has a field of its own, timezone`,
		"schedules:\n  - {name: a, definition: b, cron: '@daily', timezone: Europe/Berlim}":            `there is no time zone "Europe/Berlim"`,
		"schedules:\n  - {name: a, definition: b, every: 1h, timezone: UTC}":                           `timezone applies only to cron`,
		"schedules:\n  - {name: a, definition: b, every: 1h, overlap: skipp}":                          `overlap cannot be "skipp" [LOOP004] did you mean "skip"?`,
		"schedules:\n  - {name: a, definition: b, every: 1500ms}":                                      `every must be in whole seconds`,
		"schedules:\n  - {name: a, definition: b, every: 1m, jitter: 1m}":                              `jitter must be shorter than the time between two starts, which is 1m0s`,
		"schedules:\n  - {name: a, definition: b, every: 1h, catch_up: 8d}":                            `catch_up must be between 0s and 168h0m0s, got 8d`,
		"schedules:\n  - {name: a, definition: b, every: 1h}\n  - {name: a, definition: c, every: 1h}": `s.yaml:3:12: error: the schedule "a" is in line 2 already`,
		"schedules:\n  - {name: a@b, definition: b, every: 1h}":                                        `"a@b" cannot be the name of a schedule`,
		"schedules: 3":    `schedules must be a list, got 3`,
		"name: schedules": `unknown field "name" of a file of schedules`,
		"schedules: [":    `LOOP001`,
	} {
		list, problems := schedule.Parse("s.yaml", []byte(text))
		var got strings.Builder
		for _, p := range problems {
			got.WriteString(p.Error() + " " + p.Hint + "\n")
		}
		if !strings.Contains(got.String(), want) || len(list) > 0 {
			t.Errorf("%s\ngot  %swant %s", text, got.String(), want)
		}
	}
	for _, text := range []string{"", "schedules:\n", "schedules: []", "# nothing"} {
		if list, problems := schedule.Parse("s.yaml", []byte(text)); len(list)+len(problems) > 0 {
			t.Errorf("%q has %d schedules and the problems %v", text, len(list), problems)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("schedules:\n  - {name: a, definition: b, cron: '0 2 * * 1-5', timezone: Europe/Berlin, set: {a: 1}, jitter: 5m, catch_up: 2d}")
	f.Add("schedules:\n  - {name: a, definition: b, every: 7s}")
	f.Fuzz(func(t *testing.T, text string) {
		list, _ := schedule.Parse("s.yaml", []byte(text))
		for _, s := range list {
			from := time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC)
			for range 5 {
				next := s.Next(from)
				if next.IsZero() {
					break
				}
				if !next.After(from) {
					t.Fatalf("%s follows %s", next, from)
				}
				from = next
			}
		}
	})
}

// A time that waits for its jitter is the next one until it is due.
func TestNextDueHasJitter(t *testing.T) {
	s := one(t, "every: 1h", "jitter: 50m")
	at := time.Date(2026, 11, 30, 2, 0, 0, 0, time.UTC)
	due := s.Due(at)
	if !due.After(at) {
		t.Fatalf("%v has no jitter", at)
	}
	if got := s.NextDue(due.Add(-time.Millisecond)); !got.Equal(at) {
		t.Errorf("before %v is due, the next is %v", at, got)
	}
	if got := s.NextDue(due); !got.Equal(at.Add(time.Hour)) {
		t.Errorf("when %v is due, the next is %v", at, got)
	}
}
