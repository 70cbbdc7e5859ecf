// SPDX-License-Identifier: Apache-2.0

//go:build linux

package command

import (
	"database/sql"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// settle takes every run to its end, and looks at what it has come to.
func (s *soaking) settle() {
	s.Helper()
	for _, r := range s.runs {
		b := r.branch()
		for try := 0; !s.attack.drive(b, 0, nil); try++ {
			if try == 20 {
				s.Errorf("run %s does not come to its end: %+v", r.id, s.stand(r.id))
				break
			}
		}
		if p := s.do("verify", r.id); p.code() != 0 {
			log := s.do("events", r.id)
			s.Errorf("verify %s: exit code %d\n%s%s\nthe log:\n%s", r.id, p.code(), &p.stdout, &p.stderr, &log.stdout)
		}
	}
	s.count()
	s.integrity()
}

// count demands of what was done that a run did nothing under two IDs, and nothing
// twice that must not be. A fork may do once more what its run had begun: whoever
// answers for both may say of each that it was not done, before either does it.
func (s *soaking) count() {
	s.Helper()
	type call struct{ job, id string }
	times, ids, calls := make(map[call]int), make(map[string]map[string]bool), make(map[string]int)
	for _, r := range s.runs {
		calls[r.run] = r.calls
	}
	for _, e := range s.w.effects() {
		run, _, _ := strings.Cut(e.job, "/")
		if times[call{e.job, e.id}]++; times[call{e.job, e.id}] == 2+s.forks[run] && onceOnly[e.name] {
			s.Errorf("%s must not be done twice, and was done %d times by a run with %d forks (%s)", e.job, 2+s.forks[run], s.forks[run], e.id)
		}
		if ids[e.job] == nil {
			ids[e.job] = make(map[string]bool)
		}
		if ids[e.job][e.id] = true; len(ids[e.job]) == 2+s.forks[run] {
			s.Errorf("%s was done under %d IDs, and its run has %d forks", e.job, len(ids[e.job]), s.forks[run])
		}
	}
	for run, asked := range s.w.asked {
		if most := (1+s.forks[run])*calls[run] + 2*s.kills[run]; asked > most {
			s.Errorf("run %s and its %d forks asked models %d times; the budget is %d calls, and it was killed %d times",
				run, s.forks[run], asked, calls[run], s.kills[run])
		}
	}
}

// integrity asks the database whether it is whole.
func (s *soaking) integrity() {
	s.Helper()
	db, err := sql.Open("sqlite", strings.TrimPrefix(s.absolute(), "sqlite:"))
	if err != nil {
		s.Fatal(err)
	}
	defer db.Close()
	var said string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&said); err != nil || said != "ok" {
		s.Errorf("the database: %s, %v", said, err)
	}
}

// absolute is the store, wherever the process is.
func (s *soaking) absolute() string {
	return "sqlite:" + filepath.Join(s.dir, strings.TrimPrefix(s.store, "sqlite:"))
}

// descriptors are the files that this process has open.
func (s *soaking) descriptors() int {
	s.Helper()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	s.w.server.CloseClientConnections()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		s.Fatal(err)
	}
	return len(open)
}

// nothingIsLeft demands that this process has no more open than at the beginning, and
// that no other is there. Its last run may still be closing what it had.
func (s *soaking) nothingIsLeft(descriptors, goroutines int) {
	s.Helper()
	var files, routines int
	for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		files, routines = s.descriptors(), runtime.NumGoroutine()
		if files <= descriptors && routines <= goroutines {
			break
		}
	}
	if files > descriptors {
		var names []string
		list, _ := filepath.Glob("/proc/self/fd/*")
		for _, path := range list {
			name, _ := os.Readlink(path)
			names = append(names, name)
		}
		s.Errorf("%d descriptors are open, %d at the beginning: %q", files, descriptors, names)
	}
	if routines > goroutines {
		text := make([]byte, 1<<20)
		s.Errorf("%d goroutines, %d at the beginning\n%s", routines, goroutines, text[:runtime.Stack(text, true)])
	}
	if left := below(s.known); len(left) > 0 {
		s.Errorf("processes are left: %v", left)
	}
}
