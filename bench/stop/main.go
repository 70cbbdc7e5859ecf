// SPDX-License-Identifier: Apache-2.0

// Command stop measures when loops stop and what they hand back, by simulation, against a truth that the simulation knows.
// It prints the targets of the rules under noise, and exits with 1 if one is missed. The seeds are fixed, so that its
// numbers are exact.
//
//	go run ./stop            the targets
//	go run ./stop -regret    the rules beside those of others, and families that no constant was chosen with
//	go run ./stop -pairs     judges that compare two versions beside judges that mark them
//	go run ./stop -legs      what a loop can do on a plateau
//	go run ./stop -seen      which gains are seen with how many samples and iterations, as doc/scoring.md has it
package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/refrain-dev/refrain/loop"
)

// current stands for the version of the rules for new loops, and withoutPrice is the last one that asks for the same proof at
// every price of an iteration.
const (
	current      = ^uint(0)
	withoutPrice = 3
)

// fresh is the base of the seeds that no constant was chosen with.
const fresh = 77_000_000

func main() {
	regrets := flag.Bool("regret", false, "compare the rules with those of others")
	gains := flag.Bool("seen", false, "print which gains are seen with how many samples and iterations")
	pairs := flag.Bool("pairs", false, "compare comparisons of two versions with absolute marks")
	legs := flag.Bool("legs", false, "compare what a loop can do on a plateau")
	runs := flag.Int("runs", 1000, "number of runs of each row")
	flag.Parse()
	of := func(base uint64) *bench { return &bench{*runs, base, make(map[string]measure)} }
	if *regrets {
		regret(os.Stdout, families, *runs, 0)
		fmt.Println("\nFresh seeds:")
		regret(os.Stdout, families, *runs, fresh)
		fmt.Println("\nOther families:")
		regret(os.Stdout, others, *runs, fresh)
		fmt.Println()
		unseen(os.Stdout, of(fresh))
		return
	}
	if *legs {
		plateaus(os.Stdout, *runs, fresh)
		return
	}
	if *pairs {
		comparePairs(os.Stdout, *runs, fresh)
		return
	}
	if *gains {
		seen(os.Stdout, of(0))
		return
	}
	if !check(os.Stdout, of(0), of(fresh)) {
		os.Exit(1)
	}
}

// seen prints for the first families, which gain the same in each iteration, how many of 100 runs are stopped too early, and
// how much of a full run's gain is handed back. A flat family has the number of its iterations.
func seen(w io.Writer, b *bench) {
	for _, limit := range []uint{8, 12, 20} {
		fmt.Fprintf(w, "%2d iterations", limit)
		for _, samples := range []uint{1, 3, 5, 10} {
			fmt.Fprintf(w, "%14s", fmt.Sprintf("samples %d", samples))
		}
		for i := range families[:6] {
			f := &families[i]
			fmt.Fprintf(w, "\n%-13s", f.name)
			for _, samples := range []uint{1, 3, 5, 10} {
				m := b.measure(f, set(samples).with(func(s *setting) { s.limit = limit }), current)
				text := fmt.Sprintf("%.0f %%, %.0f %%", m.early, m.share)
				if !f.improves {
					text = fmt.Sprintf("%.1f", m.iterations)
				}
				fmt.Fprintf(w, "%14s", text)
			}
		}
		fmt.Fprintln(w)
	}
}

// prices of an iteration, in deviations of an answer; a tenth of it for each call of the judge besides.
var prices = [3]float64{0.02, 0.1, 0.3}

// lossRow is what a rule loses at each of the prices.
type lossRow struct {
	name string
	loss [3]float64
}

// losses returns what the rules lose against an oracle that stops at the best moment, as a mean over the families. min_delta is
// the price of an iteration in points of the score; that of not_worth, which has no min_delta, stands in the last rows.
func losses(fs []family, runs int, base uint64) []lossRow {
	ours := []struct {
		name  string
		rules uint
		with  func(*setting)
	}{
		{"ours before", 0, func(*setting) {}},
		{"ours", current, func(*setting) {}},
		{"ours, patience 4", current, func(s *setting) { s.patience = 4 }},
		{"not_worth before", withoutPrice, func(s *setting) { s.free, s.price = true, s.delta }},
		{"not_worth", current, func(s *setting) { s.free, s.price = true, s.delta }},
	}
	var rows []lossRow
	for _, o := range ours[:3] {
		rows = append(rows, lossRow{name: o.name})
	}
	for _, p := range peers {
		rows = append(rows, lossRow{name: p.name})
	}
	for _, o := range ours[3:] {
		rows = append(rows, lossRow{name: o.name})
	}
	for j, price := range prices {
		s := set(3)
		s.delta = price
		for k := range fs {
			f := &fs[k]
			var plans []*loop.Plan
			for _, o := range ours {
				own := s.with(o.with)
				plans = append(plans, own.plan(f, o.rules))
			}
			for r := range runs {
				seed := base + uint64(r) + 1
				most := f.course(seed).oracle(int(s.limit), each(f, &s, price))
				for i := range rows {
					c := f.course(seed)
					var e ending
					switch peer := i - 3; {
					case peer < 0:
						e = c.play(plans[i])
					case peer < len(peers):
						e = c.follow(&s, peers[peer].rule())
					default:
						e = c.play(plans[i-len(peers)])
					}
					lost := most - c.gain(e.iteration)/f.deviation() + price*float64(e.iterations) + price/10*float64(e.calls)
					rows[i].loss[j] += lost / float64(runs*len(fs))
				}
			}
		}
	}
	return rows
}

// priced are the rows of not_worth in what losses returns.
const priced = 2

// shares returns what not_worth loses, before and now, in percent of what the best of the other rules loses.
func shares(rows []lossRow) (before, now [3]float64) {
	others := rows[:len(rows)-priced]
	for j := range prices {
		best := math.Inf(1)
		for _, r := range others {
			best = min(best, r.loss[j])
		}
		before[j], now[j] = rows[len(others)].loss[j]/best*100, rows[len(others)+1].loss[j]/best*100
	}
	return before, now
}

// regret prints what the rules lose.
func regret(w io.Writer, fs []family, runs int, base uint64) {
	fmt.Fprintf(w, "Mean regret over %d families, %d runs each; price of an iteration:\n%-22s", len(fs), runs, "")
	for _, price := range prices {
		fmt.Fprintf(w, "%8.2f", price)
	}
	rows := losses(fs, runs, base)
	for _, r := range rows {
		fmt.Fprintf(w, "\n%-22s", r.name)
		for _, loss := range r.loss {
			fmt.Fprintf(w, "%8.2f", loss)
		}
	}
	_, now := shares(rows)
	fmt.Fprintf(w, "\n%-22s", "  % of the best other")
	for _, share := range now {
		fmt.Fprintf(w, "%8.0f", share)
	}
	fmt.Fprintln(w)
}

// oracle is the most that a course can be worth, less the price of its iterations.
func (c *course) oracle(limit int, price float64) float64 {
	best, most := math.Inf(-1), math.Inf(-1)
	for range limit {
		i := c.make()
		best = max(best, c.gain(i))
		most = max(most, best/c.deviation()-price*float64(i))
	}
	return most
}

// each is the price of an iteration with its calls of the judge.
func each(f *family, s *setting, price float64) float64 {
	if f.exact {
		return price * 1.1
	}
	return price + price/10*float64(s.samples)
}

// unseen prints families that no constant was chosen with.
func unseen(w io.Writer, b *bench) {
	fmt.Fprintf(w, "%-22s %10s %10s %12s    (before)\n", "Other families", "early, %", "iterations", "handed, %")
	for i := range others {
		f := &others[i]
		m, was := b.measure(f, set(3), current), b.measure(f, set(3), 0)
		early := math.NaN()
		if f.improves {
			early = m.early
		}
		fmt.Fprintf(w, "%-22s %10.1f %10.2f %12.1f    %.1f %.2f %.1f\n", f.name, early, m.iterations, m.share, was.early, was.iterations, was.share)
	}
}
