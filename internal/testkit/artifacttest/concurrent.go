// SPDX-License-Identifier: Apache-2.0

package artifacttest

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/artifact"
)

// savers checks that each save of a file gets its own version.
func (s *suite) savers() {
	const workers, saves = 8, 10
	var wg sync.WaitGroup
	var mu sync.Mutex
	var given []int64
	for range workers {
		wg.Go(func() {
			for range saves {
				v := s.saveBeside("a", "text")
				mu.Lock()
				given = append(given, v)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(given)
	if n := len(slices.Compact(slices.Clone(given))); n != workers*saves {
		s.Errorf("%d saves got %d versions: %v", workers*saves, n, given)
	}
	got, err := s.versionsOf("a")
	if len(got) != workers*saves || err != nil {
		s.Errorf("Versions: %v, %v, want %d", got, err, workers*saves)
	}
}

// saveBeside is save for goroutines, which must not end the test.
func (s *suite) saveBeside(name, text string) int64 {
	version, err := s.trySave(one, name, genai.NewPartFromText(text), 0)
	if err != nil {
		s.Errorf("Save: %v", err)
	}
	return version
}

// readers checks that each reader gets a whole file, also while a version is written again.
func (s *suite) readers() {
	letters := []string{"a", "b", "c"}
	text := func(i int) string { return strings.Repeat(letters[i%len(letters)], 50_000) }
	s.save("a", text(0))
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				part, err := s.load("a", 0)
				if err != nil {
					s.Errorf("Load while there always is a version: %v", err)
					return
				}
				if got := part.Text; len(got) != 50_000 || strings.Trim(got, got[:1]) != "" {
					s.Errorf("Load got a mixture of two versions, of %d letters", len(got))
					return
				}
			}
		})
	}
	latest := int64(1)
	for i := range 100 {
		if i%10 == 0 {
			latest = s.save("a", text(i))
		} else {
			s.savePart(one, "a", genai.NewPartFromText(text(i)), latest)
		}
	}
	close(done)
	wg.Wait()
}

// deleter checks that a save survives unless it was deleted after it, and that
// nothing fails because others delete.
func (s *suite) deleter() {
	done := make(chan struct{})
	var savers, deleter sync.WaitGroup
	for range 4 {
		savers.Go(func() {
			for range 25 {
				s.saveBeside("a", "text")
			}
		})
	}
	deleter.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				s.remove("a", 0)
				if _, err := s.versionsOf("a"); err != nil && !errors.Is(err, artifact.ErrNotFound) {
					s.Errorf("Versions: %v", err)
				}
			}
		}
	})
	savers.Wait()
	close(done)
	deleter.Wait()
	s.remove("a", 0)
	s.wantVersions("a")
	s.wantFiles(app, ana, one)
	s.save("a", "last")
	s.wantText("a", 0, "last")
}
