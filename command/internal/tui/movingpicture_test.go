// SPDX-License-Identifier: Apache-2.0

//go:build unix

package tui_test

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/command/internal/tui"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// The moving picture in the README shows what the view draws of a scripted run, whose minutes are seconds.
func TestMovingPicture(t *testing.T) {
	const columns, lines = 78, 17
	log := pictureRun(t)
	cfg := tui.Config{Name: "refine", Run: "r_181860ba", Hooks: tui.Hooks{Pause: func() {}, Cancel: func() {}, Detach: func() {}}}
	m := movie{columns: columns, lines: lines + 1}
	m.show(600*time.Millisecond, "$ ")
	m.show(900*time.Millisecond, "$ refrain run bakery.yaml")
	for i := range log {
		wait := time.Second
		if i+1 < len(log) {
			wait = log[i+1].Timestamp.Sub(log[i].Timestamp)
		}
		if wait < time.Second { // the next event is at the same time
			continue
		}
		for since := time.Duration(0); since < wait; since += 4 * time.Second {
			m.show(250*time.Millisecond, "$ refrain run bakery.yaml\n"+tui.Frame(cfg, log[:i+1], since, false, columns, lines))
		}
	}
	m.show(5*time.Second, "$ refrain run bakery.yaml\n"+tui.Frame(cfg, log, 0, true, columns, lines))

	want, file := m.svg(), filepath.Join("../../..", "doc/refrain.svg")
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is out of date; run go test ./command/internal/tui -run MovingPicture -update", file)
	}
	if len(want) > 60_000 {
		t.Errorf("%s has %d bytes: too many for the first screen of a README", file, len(want))
	}
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "(doc/refrain.svg)") {
		t.Errorf("README.md does not show %s", file)
	}
	if text := ansi.Strip(tui.Frame(cfg, log, 0, true, columns, lines)); !strings.Contains(text, "Stopped: target_reached") {
		t.Errorf("the last frame does not say why the loop stopped:\n%s", text)
	}
}

// pictureRun is a loop that a score ends in its third iteration.
func pictureRun(t *testing.T) []*session.Event {
	t.Helper()
	return run(t, func() agent.Agent {
		uses := func(in, out int32) func(int, *session.Event) error {
			return func(_ int, ev *session.Event) error {
				ev.UsageMetadata = &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: in, CandidatesTokenCount: out}
				return nil
			}
		}
		judge := says("judge", 8*time.Second, func(n int, ev *session.Event) error {
			ev.Actions.StateDelta = map[string]any{"score": []float64{5, 7, 8.5}[n-1]}
			return uses(600, 80)(n, ev)
		})
		return must(loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: "refine", SubAgents: []agent.Agent{
				says("writer", 20*time.Second, uses(400, 240)), judge, says("publish", 4*time.Second, nil),
			}},
			MaxIterations: 5,
			Rules: loop.Plan{
				Steps: []loop.Step{{Name: "publish", Finalizer: true}}, Timeout: loop.Duration(30 * time.Minute),
				Score: &loop.Score{Key: "score", Target: new(8.0)},
			},
		}))
	})
}

// movie is a picture of a terminal that changes.
type movie struct {
	columns, lines int
	frames         []movieFrame
}

type movieFrame struct {
	at, until time.Duration
	text      []string // with the colors of a terminal
}

func (m *movie) show(d time.Duration, text string) {
	var at time.Duration
	if n := len(m.frames); n > 0 {
		at = m.frames[n-1].until
	}
	m.frames = append(m.frames, movieFrame{at: at, until: at + d, text: strings.Split(strings.TrimRight(text, "\n"), "\n")})
}

// svg draws each line once for as long as it stays the same. The picture begins in the last frame, which a reader sees first, and all of the time
// who asked for less motion.
func (m *movie) svg() string {
	const wide, high, margin = 8.4, 19, 16
	total := m.frames[len(m.frames)-1].until
	width, height := int(float64(m.columns)*wide)+2*margin, m.lines*high+2*margin
	var b, steps strings.Builder
	n := 0
	for y := range m.lines {
		for i := 0; i < len(m.frames); {
			text := m.line(i, y)
			next := i + 1
			for next < len(m.frames) && m.line(next, y) == text {
				next++
			}
			if text != "" {
				class := "gone" // before the last frame
				if next == len(m.frames) {
					class = "last"
				}
				from, to := percent(m.frames[i].at, total), percent(m.frames[next-1].until, total)
				fmt.Fprintf(&steps, "@keyframes k%d{0%%{opacity:%d}%s%%{opacity:1}%s%%{opacity:0}}\n", n, btoi(i == 0), from, to)
				fmt.Fprintf(&b, "<text class=%q y=\"%d\" style=\"animation-name:k%d\">%s</text>\n", class, margin+high*y+14, n, spans(text))
				n++
			}
			i = next
		}
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" aria-label="A terminal: refrain run shows the iterations of a loop, their scores, and why it stopped.">
<style>
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre;fill:#d6deeb;animation:%.2[3]fs steps(1) infinite;animation-delay:-%.2[7]fs}
.s1{font-weight:bold}.s2{fill:#8b98ad}.s31{fill:#ff7b72}.s32{fill:#7ee787}.s33{fill:#f2cc60}.s36{fill:#79dafa}
@media (prefers-reduced-motion:reduce){text{animation:none}.gone{opacity:0}}
%[4]s</style>
<rect width="100%%" height="100%%" rx="8" fill="#0f1722"/>
<g transform="translate(%[5]d 0)">
%[6]s</g>
</svg>
`, width, height, total.Seconds(), steps.String(), margin, b.String(), (total - 4*time.Second).Seconds())
}

func (m *movie) line(frame, y int) string {
	if f := m.frames[frame]; y < len(f.text) {
		return strings.TrimRight(f.text[y], " ")
	}
	return ""
}

func percent(d, of time.Duration) string { return fmt.Sprintf("%.2f", 100*d.Seconds()/of.Seconds()) }

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

var sgr = regexp.MustCompile(`\x1b\[([0-9;]*)m`)

// spans returns the text of a line, whose colors are classes.
func spans(line string) string {
	var b strings.Builder
	style, at := "", 0
	put := func(text string) {
		switch text = html.EscapeString(text); {
		case text == "":
		case style == "":
			b.WriteString(text)
		default:
			fmt.Fprintf(&b, `<tspan class="s%s">%s</tspan>`, style, text)
		}
	}
	for _, found := range sgr.FindAllStringSubmatchIndex(line, -1) {
		put(line[at:found[0]])
		style, at = line[found[2]:found[3]], found[1]
	}
	put(line[at:])
	return b.String()
}
