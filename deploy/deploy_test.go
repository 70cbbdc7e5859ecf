// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"

	"github.com/refrain-dev/refrain/telemetry/metrics"
)

var promQL = parser.NewParser(parser.Options{})

// known are the labels of each metric that a scrape of refrain can have.
func known(t *testing.T) map[string][]string {
	t.Helper()
	described := regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)
	all := map[string][]string{"up": nil}
	ch := make(chan *prometheus.Desc)
	go func() {
		metrics.New(metrics.Config{}).Describe(ch)
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}).Describe(ch)
		close(ch)
	}()
	for d := range ch {
		m := described.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("no metric: %s", d)
		}
		all[m[1]] = strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' })
	}
	if len(all) < 20 {
		t.Fatalf("only %d metrics", len(all))
	}
	return all
}

// check holds an expression against the metrics that there are.
func check(t *testing.T, what, text string, known map[string][]string) {
	t.Helper()
	expr, err := promQL.ParseExpr(text)
	if err != nil {
		t.Errorf("%s: %s: %v", what, text, err)
		return
	}
	have := func(name string) []string {
		base := name
		for _, end := range []string{"_bucket", "_sum", "_count"} {
			if cut, ok := strings.CutSuffix(name, end); ok && known[name] == nil && known[cut] != nil {
				base = cut
			}
		}
		labels, ok := known[base]
		if !ok {
			t.Errorf("%s: there is no metric %s", what, name)
		}
		labels = append(slices.Clone(labels), "job", "instance", model.MetricNameLabel)
		if strings.HasSuffix(name, "_bucket") {
			labels = append(labels, "le")
		}
		return labels
	}
	var within []string // what all selectors have
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			labels := have(v.Name)
			for _, m := range v.LabelMatchers {
				if !slices.Contains(labels, m.Name) {
					t.Errorf("%s: %s has no label %s", what, v.Name, m.Name)
				}
			}
			within = append(within, labels...)
		}
		return nil
	})
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if a, ok := n.(*parser.AggregateExpr); ok {
			for _, label := range a.Grouping {
				if !slices.Contains(within, label) {
					t.Errorf("%s: nothing has a label %s: %s", what, label, text)
				}
			}
		}
		return nil
	})
	if len(within) == 0 {
		t.Errorf("%s: %s asks for nothing", what, text)
	}
}

// The dashboard asks for metrics and labels that exist, and its panels have names, a place and a text.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("grafana/refrain.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		UID, Title string
		Panels     []struct {
			ID          int
			Type, Title string
			Description string
			GridPos     struct{ X, Y, W, H int }
			Datasource  struct{ UID string }
			Targets     []struct{ RefID, Expr, LegendFormat string }
		}
		Templating struct {
			List []struct {
				Name, Type string
				Query      any
			}
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	known := known(t)
	variables := map[string]string{"$__rate_interval": "5m", "${datasource}": "x"}
	for _, v := range board.Templating.List {
		variables["$"+v.Name] = "refrain"
		if q, ok := v.Query.(map[string]any); ok {
			m := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`).FindStringSubmatch(fmt.Sprint(q["query"]))
			if m == nil || !slices.Contains(append(known[m[1]], "job"), m[2]) || known[m[1]] == nil {
				t.Errorf("variable %s: %v", v.Name, q)
			}
		}
	}
	ids := make(map[int]bool)
	taken := make(map[[2]int]string)
	for _, p := range board.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d %q: its number or name", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if at := [2]int{x, y}; taken[at] != "" || x > 23 {
					t.Fatalf("panel %q lies on %q", p.Title, taken[at])
				} else {
					taken[at] = p.Title
				}
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("panel %q has no description, no data source or no target", p.Title)
		}
		for _, target := range p.Targets {
			expr := target.Expr
			for name, value := range variables {
				expr = strings.ReplaceAll(expr, name, value)
			}
			check(t, p.Title, expr, known)
			for _, m := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if strings.Contains(expr, " by ") && !regexp.MustCompile(` by \([^)]*\b`+m[1]+`\b`).MatchString(expr) {
					t.Errorf("panel %q: the legend has %s, which %s leaves out", p.Title, m[1], expr)
				}
			}
		}
	}
}

func rules(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile("prometheus/alerts.yaml", false, model.UTF8Validation, promQL, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	all := make(map[string]rulefmt.Rule)
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if all[r.Alert].Alert != "" || r.Alert == "" {
				t.Errorf("%q is there twice, or is no alert", r.Alert)
			}
			all[r.Alert] = r
		}
	}
	return all
}

// Every alert asks for what exists, has a severity, and its summary tells what to do.
func TestAlerts(t *testing.T) {
	known := known(t)
	for name, r := range rules(t) {
		check(t, name, r.Expr, known)
		if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
			t.Errorf("%s has the severity %q", name, r.Labels["severity"])
		}
		summary := r.Annotations["summary"]
		if strings.Count(summary, ". ") < 1 || !strings.HasSuffix(summary, ".") {
			t.Errorf("%s: the summary says what has happened and what to do: %q", name, summary)
		}
		for _, m := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(summary, -1) {
			if by := regexp.MustCompile(`by \(([^)]*)\)`).FindStringSubmatch(r.Expr); by != nil && !strings.Contains(by[1], m[1]) {
				t.Errorf("%s: the summary has the label %s, which the expression leaves out", name, m[1])
			}
		}
	}
}

// Each alert fires on data that calls for it, and on none that does not. A series has a value a minute.
func TestAlertsFire(t *testing.T) {
	const quiet = `load 1m
  up{job="refrain",instance="a:1"} 1x200
  refrain_store_up{job="refrain",instance="a:1"} 1x200
  refrain_store_runs{job="refrain",instance="a:1",status="paused"} 0x1000
  refrain_store_runs{job="refrain",instance="a:1",status="completed"} 0+1x1000
  refrain_oldest_iteration_timestamp_seconds{job="refrain",instance="a:1"} 0+60x200
  refrain_store_oldest_running_timestamp_seconds{job="refrain",instance="a:1"} 0+60x200
  refrain_store_oldest_question_timestamp_seconds{job="refrain",instance="a:1"} 0+60x300
  refrain_runs_dropped_total{job="refrain",instance="a:1",reason="error"} 0x200
  refrain_runs_total{job="refrain",instance="a:1",definition="d",status="failed",stop_reason="error"} 4x200
  refrain_runs_total{job="refrain",instance="a:1",definition="d",status="completed",stop_reason="exit_loop"} 0+1x200
  refrain_sub_agent_errors_total{job="refrain",instance="a:1",agent="w",kind="timeout"} 0+0.1x200
  refrain_budget_used_ratio{job="refrain",instance="a:1",definition="d"} 0.5x200
  refrain_cost_total{job="refrain",instance="a:1"} 0+0.1x200
  refrain_runs_queued{job="refrain",instance="a:1"} 3 4 0 5 0 2 0x190
`
	loud := map[string]string{
		"RefrainDown":              `up{job="refrain",instance="a:1"} 1x50 0x150`,
		"RefrainStoreDown":         `refrain_store_up{job="refrain",instance="a:1"} 1x50 0x150`,
		"RefrainRunStuck":          `refrain_oldest_iteration_timestamp_seconds{job="refrain",instance="a:1"} 60x200`,
		"RefrainRunAbandoned":      `refrain_store_oldest_running_timestamp_seconds{job="refrain",instance="a:1"} 60x200`,
		"RefrainRunDropped":        `refrain_runs_dropped_total{job="refrain",instance="a:1",reason="error"} 0x100 1x100`,
		"RefrainQuestionOpen":      `refrain_store_oldest_question_timestamp_seconds{job="refrain",instance="a:1"} 60x300`,
		"RefrainRunsPaused":        `refrain_store_runs{job="refrain",instance="a:1",status="paused"} 2x1000`,
		"RefrainRunsFail":          `refrain_runs_total{job="refrain",instance="a:1",definition="d",status="failed",stop_reason="error"} 0x100 1x100`,
		"RefrainStepsFail":         `refrain_sub_agent_errors_total{job="refrain",instance="a:1",agent="w",kind="timeout"} 0+2x200`,
		"RefrainBudgetNearlySpent": `refrain_budget_used_ratio{job="refrain",instance="a:1",definition="d"} 0.95x200`,
		"RefrainCostHigh":          `refrain_cost_total{job="refrain",instance="a:1"} 0+2x200`,
		"RefrainQueueFull":         `refrain_runs_queued{job="refrain",instance="a:1"} 3x200`,
	}
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	fires := func(t *testing.T, r rulefmt.Rule, data string) bool {
		storage := promqltest.LoadedStorage(t, data)
		defer storage.Close()
		since := time.Time{}
		for at := time.Unix(0, 0); at.Before(time.Unix(1000*60, 0)); at = at.Add(time.Minute) {
			q, err := engine.NewInstantQuery(context.Background(), storage, nil, r.Expr, at)
			if err != nil {
				t.Fatal(err)
			}
			got := q.Exec(context.Background())
			v, err := got.Vector()
			if err != nil {
				t.Fatal(err)
			}
			q.Close()
			switch {
			case len(v) == 0:
				since = time.Time{}
			case since.IsZero():
				since = at
			}
			if !since.IsZero() && at.Sub(since) >= time.Duration(r.For) {
				return true
			}
		}
		return false
	}
	for name, r := range rules(t) {
		t.Run(name, func(t *testing.T) {
			if fires(t, r, quiet) {
				t.Error("fires although all is well")
			}
			if loud[name] == "" {
				t.Fatal("there is no data on which it has to fire")
			}
			if !fires(t, r, "load 1m\n  "+loud[name]+"\n") {
				t.Error("does not fire")
			}
		})
	}
}
