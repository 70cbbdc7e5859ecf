// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
)

var paint = flag.Bool("paint", false, "print how fast a run of 10,000 iterations is drawn")

// U11, M10: a long run has only those rows in the document that can be seen, and the others when
// somebody scrolls there.
func TestALongRunIsDrawnInPart(t *testing.T) {
	iterations, rounds, frames := 1000, 1, 50
	if *paint {
		iterations, rounds, frames = 10_000, 5, 200
	}
	climb := strings.NewReplacer("max_iterations: 6", fmt.Sprintf("max_iterations: %d\ntimeout: 10h", iterations), ", target: 50.0", "").Replace(quick)
	s := serve(t, map[string]string{"climb.yaml": climb})
	id := s.start(t, "climb")
	if _, err := s.server.Supervisor().Wait(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	p := open(t, s)
	type figures struct {
		First, Drawn, Median, Longest float64
		Rows                          int
	}
	for range rounds {
		p.visit("/runs/" + id)
		p.until("the first row", `!!document.querySelector('.tree .tr.it .num b, .tree .tr.it .num:not(:empty)')`)
		// How long it took, and how long each frame takes while somebody scrolls to the end.
		got, err := eval[figures](p, fmt.Sprintf(`(async () => {
			const frames = %d
			const first = performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0
			const drawn = performance.now()
			const frame = () => new Promise(done => requestAnimationFrame(done))
			const gaps = []
			let rows = 0, at = await frame()
			for (let i = 1; i <= frames; i++) {
				scrollTo(0, document.documentElement.scrollHeight * i / frames)
				const now = await frame()
				gaps.push(now - at)
				at = now
				rows = Math.max(rows, document.querySelectorAll('.tree .tr').length)
			}
			gaps.sort((a, b) => a - b)
			return {First: first, Drawn: drawn, Median: gaps[frames / 2], Longest: gaps[frames - 1], Rows: rows}
		})()`, frames))
		if err != nil {
			t.Fatal(err)
		}
		if got.Rows == 0 || got.Rows > 150 {
			t.Errorf("%d rows are in the document", got.Rows)
		}
		last := fmt.Sprintf(`[data-key="climb[%d]"]`, iterations)
		p.until("the last row", `(() => { scrollTo(0, document.documentElement.scrollHeight); const r = document.querySelector(`+quote(last)+
			`); return !!r && r.querySelector('.num').innerText !== '' })()`)
		if *paint {
			fmt.Printf("%d iterations in Chromium: first paint %.0f ms, rows there by %.0f ms; a frame in which all rows change %.1f ms, the longest %.0f ms; %d rows at most\n",
				iterations, got.First, got.Drawn, got.Median, got.Longest, got.Rows)
		}
	}
}
