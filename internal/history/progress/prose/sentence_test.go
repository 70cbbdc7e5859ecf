// SPDX-License-Identifier: Apache-2.0

package prose_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// scoredLoop is a loop with these scores; NaN stands for an iteration under way.
func scoredLoop(plan loop.Plan, stop *loop.StopRecord, scores ...float64) *progress.Loop {
	l := &progress.Loop{Plan: &plan, Stop: stop}
	best := math.Inf(-1)
	for i, s := range scores {
		began := time.Duration(i) * time.Minute
		it := &progress.Iteration{Number: i + 1, Status: progress.StatusRunning, Began: began, Ended: began + time.Minute}
		if !math.IsNaN(s) {
			it.Status = progress.StatusCompleted
			it.Record = &loop.IterationRecord{Number: i + 1, Complete: true}
			if plan.Score != nil {
				it.Record.Score = new(s)
			}
			if s > best {
				it.Record.Best, best = true, s
			}
		}
		l.Iterations = append(l.Iterations, it)
	}
	return l
}

// The sentence says the same in both languages, each as people write it.
func TestSentence(t *testing.T) {
	score := func(s loop.Score) *loop.Score { s.Key = "s"; return &s }
	target := loop.Plan{MaxIterations: 8, Score: score(loop.Score{Target: new(8.0)})}
	flat := loop.Plan{MaxIterations: 8, Score: score(loop.Score{Target: new(8.0), MinDelta: new(0.1), Patience: 3})}
	free := loop.Plan{Score: score(loop.Score{MinDelta: new(0.1)})}
	stop := func(reason loop.StopReason, iteration int, detail, by string) *loop.StopRecord {
		return &loop.StopRecord{Reason: reason, Iteration: iteration, Detail: detail, By: by, BestVersion: loop.BestVersion{BestScore: new(7.5), BestIteration: 2}}
	}
	off := func(rec *loop.StopRecord, e float64, proof loop.Proof) *loop.StopRecord {
		rec.BestError, rec.Proof = e, &proof
		return rec
	}
	for _, tt := range []struct {
		name   string
		l      *progress.Loop
		kind   prose.SentenceKind
		en, pt string
	}{
		{"improving", scoredLoop(target, nil, 2, 4, 6), prose.SaysImproving,
			"Improving. The score will probably reach 8 in iteration 4. From 3 scores: 1 more iteration (1 to 2), about 1m.",
			"Melhorando. A nota deve chegar a 8 na iteração 4. De 3 notas: mais 1 iteração (1 a 2), cerca de 1m."},
		{"plateau", scoredLoop(flat, nil, 5.2, 7.1, 7.15, 7.16), prose.SaysPlateau,
			"Plateau since iteration 2. The loop will probably stop after iteration 5, at about 7.17 of 8, because the score hardly improves. From 4 scores: 1 more iteration, about 1m.",
			"Platô desde a iteração 2. O laço deve parar depois da iteração 5, perto de 7,17 de 8, porque a nota quase não melhora. De 4 notas: mais 1 iteração, cerca de 1m."},
		{"regressing", scoredLoop(loop.Plan{Score: target.Score, MaxIterations: 5}, nil, 9, 8, 7), prose.SaysRegressing,
			"Getting worse since iteration 1. The loop will probably stop at the limit of 5 iterations, at about 5 of 8. From 3 scores: 2 more iterations, about 2m.",
			"Piorando desde a iteração 1. O laço deve parar no limite de 5 iterações, perto de 5 de 8. De 3 notas: mais 2 iterações, cerca de 2m."},
		{"oscillating", scoredLoop(target, nil, 5, 7, 5, 7, 5), prose.SaysOscillating,
			"Going up and down. The scores follow no course, so there is no forecast. At most 3 more iterations.",
			"Sobe e desce. As notas não seguem um rumo, então não há previsão. No máximo mais 3 iterações."},
		{"too early", scoredLoop(target, nil, 5, math.NaN()), prose.SaysTooEarly,
			"Too early to say. 1 score of the 3 that a forecast needs. At most 6 more iterations.",
			"Cedo para dizer. 1 nota das 3 que uma previsão pede. No máximo mais 6 iterações."},
		{"before the first", scoredLoop(target, nil), prose.SaysTooEarly,
			"Too early to say. 0 scores of the 3 that a forecast needs. At most 8 more iterations.",
			"Cedo para dizer. 0 notas das 3 que uma previsão pede. No máximo mais 8 iterações."},
		{"not scored", scoredLoop(loop.Plan{MaxIterations: 2}, nil, 0, math.NaN()), prose.SaysNotScored,
			"Not scored. Without a score no version is the best, and the last one is the result. This is the last iteration.",
			"Sem nota. Sem nota nenhuma versão é a melhor, e o resultado é a última. Esta é a última iteração."},
		{"no end", scoredLoop(loop.Plan{Score: score(loop.Score{})}, nil, 1, 2, 3), prose.SaysImproving,
			"Improving. Nothing is expected to end the loop soon.", "Melhorando. Nada deve encerrar o laço tão cedo."},
		{"no target", scoredLoop(free, nil, 5, 6, 6.02), prose.SaysImproving,
			"Improving. The loop will probably stop after iteration 4, at about 6.04, because the score hardly improves. From 3 scores: 1 more iteration, about 1m.",
			"Melhorando. O laço deve parar depois da iteração 4, perto de 6,04, porque a nota quase não melhora. De 3 notas: mais 1 iteração, cerca de 1m."},
		{"asked", scoredLoop(target, stop(loop.ReasonExit, 4, "formatted, vetted, and tested", "verifier"), 1, 2, 3, 4), prose.SaysDone,
			"verifier asked to stop in iteration 4: “formatted, vetted, and tested”.", "verifier pediu para parar na iteração 4: “formatted, vetted, and tested”."},
		{"asked without a reason", scoredLoop(target, stop(loop.ReasonEscalated, 4, "no reason given by verifier", "verifier"), 1), prose.SaysDone,
			"verifier asked to stop in iteration 4.", "verifier pediu para parar na iteração 4."},
		{"impossible", scoredLoop(target, stop(loop.ReasonImpossible, 2, "no such file.", "writer"), 1), prose.SaysDone,
			"writer says that the task is impossible, in iteration 2: “no such file”.", "writer diz que a tarefa é impossível, na iteração 2: “no such file”."},
		{"blocked", scoredLoop(target, stop(loop.ReasonBlocked, 2, "no key", "writer"), 1), prose.SaysDone,
			"writer cannot go on without help, in iteration 2: “no key”.", "writer não consegue seguir sem ajuda, na iteração 2: “no key”."},
		{"condition", scoredLoop(target, stop(loop.ReasonCondition, 3, "state.failed == 0", ""), 1), prose.SaysDone,
			"The stop condition held in iteration 3: state.failed == 0", "A condição de parada se cumpriu na iteração 3: state.failed == 0"},
		{"target", scoredLoop(target, stop(loop.ReasonTarget, 2, "", ""), 1), prose.SaysDone,
			"The score reached 8 in iteration 2. The best is 7.5, in iteration 2.", "A nota chegou a 8 na iteração 2. A melhor é 7,5, na iteração 2."},
		{"converged", scoredLoop(target, stop(loop.ReasonConverged, 5, "", ""), 1), prose.SaysDone,
			"The score hardly improved any more after iteration 5. The best is 7.5, in iteration 2.", "A nota já quase não melhorava depois da iteração 5. A melhor é 7,5, na iteração 2."},
		{"converged, with a judge", scoredLoop(target, off(stop(loop.ReasonConverged, 5, "", ""), 0.3142,
			loop.Proof{Odds: 1230, Scores: 6, Gain: 0.208}), 1), prose.SaysDone,
			"The score hardly improved any more after iteration 5. The best is 7.5 ± 0.31, in iteration 2. " +
				"The last 6 scores look 1,230 times more like no gain at all than like a gain of 0.208 in every iteration.",
			"A nota já quase não melhorava depois da iteração 5. A melhor é 7,5 ± 0,31, na iteração 2. " +
				"As últimas 6 notas parecem 1.230 vezes mais com ganho nenhum do que com um ganho de 0,208 em cada iteração."},
		{"not worth it, with a judge", scoredLoop(target, off(stop(loop.ReasonConverged, 5, "", ""), 0.3142,
			loop.Proof{Chance: 0.94, Scores: 5, Gain: 0.25}), 1), prose.SaysDone,
			"The score hardly improved any more after iteration 5. The best is 7.5 ± 0.31, in iteration 2. " +
				"In 19 of 20 such cases an iteration gains less than its price, 0.25.",
			"A nota já quase não melhorava depois da iteração 5. A melhor é 7,5 ± 0,31, na iteração 2. " +
				"Em 19 de 20 casos como este uma iteração ganha menos do que custa, 0,25."},
		{"target, with a judge", scoredLoop(target, off(stop(loop.ReasonTarget, 2, "", ""), 0.3142, loop.Proof{Chance: 0.76}), 1), prose.SaysDone,
			"The score reached 8 in iteration 2. The best is 7.5 ± 0.31, in iteration 2. In 3 of 4 such cases many more answers would confirm it.",
			"A nota chegou a 8 na iteração 2. A melhor é 7,5 ± 0,31, na iteração 2. Em 3 de 4 casos assim, muitas mais respostas o confirmariam."},
		{"circles", scoredLoop(target, stop(loop.ReasonNoProgress, 5, "", ""), 1), prose.SaysDone,
			"The loop went in circles after iteration 5. The best is 7.5, in iteration 2.", "O laço andava em círculos depois da iteração 5. A melhor é 7,5, na iteração 2."},
		{"limit", scoredLoop(target, stop(loop.ReasonMaxIterations, 5, "", ""), 1), prose.SaysLimit,
			"Stopped after 5 iterations, without reaching 8. The best is 7.5, in iteration 2.", "Parou depois de 5 iterações, sem chegar a 8. A melhor é 7,5, na iteração 2."},
		{"limit, no target", scoredLoop(free, stop(loop.ReasonMaxIterations, 1, "", ""), 1), prose.SaysLimit,
			"Stopped after 1 iteration. The best is 7.5, in iteration 2.", "Parou depois de 1 iteração. A melhor é 7,5, na iteração 2."},
		{"time", scoredLoop(target, stop(loop.ReasonTimeout, 5, "", ""), 1), prose.SaysLimit,
			"The time limit was reached after iteration 5 without reaching 8. The best is 7.5, in iteration 2.", "O limite de tempo foi atingido depois da iteração 5 sem chegar a 8. A melhor é 7,5, na iteração 2."},
		{"budget", scoredLoop(free, stop(loop.ReasonBudget, 5, "", ""), 1), prose.SaysLimit,
			"The budget was spent after iteration 5. The best is 7.5, in iteration 2.", "O orçamento acabou depois da iteração 5. A melhor é 7,5, na iteração 2."},
		{"failed", scoredLoop(target, stop(loop.ReasonError, 1, "prepare: exit status 1", "prepare"), 1), prose.SaysFailed,
			"prepare failed in iteration 1: exit status 1", "prepare falhou na iteração 1: exit status 1"},
		{"canceled", scoredLoop(target, stop(loop.ReasonCanceled, 2, "by ana", ""), 1), prose.SaysCanceled,
			"Canceled in iteration 2. What was saved is kept.", "Cancelado na iteração 2. O que foi salvo continua salvo."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := prose.SentenceOf(tt.l, time.Duration(len(tt.l.Iterations))*time.Minute)
			if s.Kind != tt.kind {
				t.Errorf("kind %q, want %q", s.Kind, tt.kind)
			}
			if got := s.In(prose.English).String(); got != tt.en {
				t.Errorf("\n got %s\nwant %s", got, tt.en)
			}
			if got := s.In(prose.Portuguese).String(); got != tt.pt {
				t.Errorf("\n got %s\nwant %s", got, tt.pt)
			}
		})
	}
}

// Every condition has words in both languages.
func TestLedgerInWords(t *testing.T) {
	plan := loop.Plan{
		Steps: []loop.Step{{Name: "writer"}, {Name: "critic"}, {Name: "editor", Finalizer: true}}, CanExit: []string{"critic"}, MaxIterations: 8,
		Score:    &loop.Score{Key: "s", Judge: &loop.Judge{Step: "critic", Samples: 3}, Target: new(8.0), DimensionTarget: new(7.0), MinDelta: new(0.1), Patience: 3},
		StopWhen: &loop.Condition{Any: []loop.Condition{{Expr: "iteration > 7"}}}, NoProgress: &loop.NoProgress{}, NotWorth: &loop.NotWorth{Gain: 0.05, Per: loop.PerMinute},
		Timeout: loop.Duration(30 * time.Minute), Budget: &loop.Budget{Tokens: 200_000, Cost: new(0.5), Calls: 40}, MaxConsecutiveFailures: 3,
	}
	var tally loop.Tally
	for range 2 {
		d := plan.Next(&tally)
		plan.Add(&tally, loop.Outcome{Iteration: d.Iteration, Step: d.Step,
			State: map[string]any{"s": `{"score": 7.5, "dimensions": {"wit": 6.5}}`},
			Usage: loop.Usage{Calls: 1, InputTokens: 41_206, Cost: new(0.113)}})
	}
	led := plan.Ledger(&tally, loop.Moment{Iteration: 1})
	l := &progress.Step{Loop: &progress.Loop{Plan: &plan}}
	say := func(lang prose.Language) (lines []string) {
		for i := range led.Rows {
			w := prose.RowOf(l, lang, &led, &led.Rows[i])
			lines = append(lines, fmt.Sprintf("%s | %s | %s", w.Title, w.Why, w.Amount))
		}
		return lines
	}
	if diff := cmp.Diff([]string{
		"critic asks to stop | the only step that may | not asked", "Failures in a row |  | 0 of 3",
		"Active time | 3m kept for the answer | 0ms of 27m", "Model calls | 4 kept for the answer | 2 of 36",
		"Tokens | 20,000 kept for the answer | 82,412 of 180,000", "Cost | 0.05 kept for the answer | 0.226 of 0.45",
		"Condition holds | iteration > 7 | unknown", "iteration > 7 |  | unknown",
		"Score reaches 8 |  | 7.5 of 8", "Every part reaches 7 |  | 6.5 of 7",
		"Hardly improves | gain below 0.1, or within the judge's noise | 0 of 3 in a row", "Goes in circles | how often the last result came, or two in turns | 0 of 3 in a row",
		"Next gain is not worth it | less than 0.05 per minute | unknown", "Iterations |  | 1 of 8",
	}, say(prose.English)); diff != "" {
		t.Errorf("English (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"critic pede para parar | o único passo que pode | não pediu", "Falhas seguidas |  | 0 de 3",
		"Tempo ativo | 3m guardados para a resposta | 0ms de 27m", "Chamadas ao modelo | 4 guardados para a resposta | 2 de 36",
		"Tokens | 20.000 guardados para a resposta | 82.412 de 180.000", "Custo | 0,05 guardados para a resposta | 0,226 de 0,45",
		"Condição se cumpre | iteration > 7 | desconhecido", "iteration > 7 |  | desconhecido",
		"Nota chega a 8 |  | 7,5 de 8", "Cada parte chega a 7 |  | 6,5 de 7",
		"Quase não melhora | ganho menor que 0,1, ou dentro do ruído do avaliador | 0 de 3 seguidas", "Anda em círculos | quantas vezes veio o último resultado, ou dois alternados | 0 de 3 seguidas",
		"Próximo ganho não compensa | menos de 0,05 por minuto | desconhecido", "Iterações |  | 1 de 8",
	}, say(prose.Portuguese)); diff != "" {
		t.Errorf("Portuguese (-want +got):\n%s", diff)
	}
}

func TestLanguageOf(t *testing.T) {
	for tag, want := range map[string]prose.Language{"pt": "pt", "pt-BR": "pt", "PT_br": "pt", "en-GB": "en", "": "en", "de": "en"} {
		if got := prose.LanguageOf(tag); got != want {
			t.Errorf("%q: %q, want %q", tag, got, want)
		}
	}
}

// How does the loop stand, and how can it stop?
func ExampleOutlooks() {
	var live progress.Live
	for _, ev := range exampleLog() {
		live.Add(ev)
	}
	for _, o := range prose.Outlooks(live.Tree(), prose.English) {
		fmt.Println(o.Words)
		for _, r := range o.Ledger {
			fmt.Printf("%s: %s, %s\n", r.Words.Title, r.Words.Amount, r.Status)
		}
	}
	// Output:
	// Improving. The score will probably reach 8 in iteration 4. From 3 scores: 1 more iteration (1 to 2).
	// A step asks to stop: not asked, not_asked
	// Score reaches 8: 6 of 8, likely
	// Iterations: 3 of 9, far
}

// exampleLog is the log of a run in which three iterations have ended.
func exampleLog() (log []*session.Event) {
	add := func(at session.Address, iteration int, kind string, data any, delta map[string]any) {
		raw, _ := json.Marshal(data)
		ev := &session.Event{Seq: int64(len(log) + 1), InvocationID: "run", Address: at, Iteration: iteration, Author: at.Agent()}
		ev.Mark = &mark.Mark{Kind: mark.Kind(kind), Data: raw}
		ev.Actions.StateDelta = delta
		log = append(log, ev)
	}
	plan := loop.Plan{Steps: []loop.Step{{Name: "writer"}}, MaxIterations: 9, Score: &loop.Score{Key: "score", Target: new(8.0)}}
	add("refine", 0, "step_started", nil, nil)
	add("refine", 0, "loop_started", plan, nil)
	for i := 1; i <= 3; i++ {
		at := session.Address(fmt.Sprintf("refine[%d]/writer", i))
		score := float64(2 * i)
		add(at, i, "step_started", nil, nil)
		add(at, i, "step_finished", map[string]any{"outcome": loop.Outcome{Iteration: i}}, map[string]any{"score": score})
		add("refine", 0, "iteration_finished", loop.IterationRecord{Number: i, Score: &score, Complete: true, Best: true}, nil)
	}
	return log
}
