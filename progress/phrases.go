// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Language is a language in which sentences and ledgers can be said.
type Language string

// The languages.
const (
	English    Language = "en"
	Portuguese Language = "pt"
)

// LanguageOf returns the language of a tag such as "pt-BR", or English if the sentences are not
// translated to it.
func LanguageOf(tag string) Language {
	if primary, _, _ := strings.Cut(strings.ReplaceAll(tag, "_", "-"), "-"); strings.EqualFold(primary, "pt") {
		return Portuguese
	}
	return English
}

// say puts a phrase into words. Numbers are written as the language writes them.
func (lang Language) say(p phrase, args ...any) string {
	text := phrases[p].english
	if lang == Portuguese {
		text = phrases[p].portuguese
	}
	if len(args) == 0 {
		return text
	}
	for i, a := range args {
		switch x := a.(type) {
		case int:
			args[i] = lang.number(float64(x), 0)
		case float64:
			args[i] = lang.number(x, shortest)
		case time.Duration:
			args[i] = Clock(x)
		}
	}
	return fmt.Sprintf(text, args...)
}

// counted is one of two phrases, for one thing and for several.
func (lang Language) counted(n int, one, several phrase) string {
	if n == 1 {
		return lang.say(one)
	}
	return lang.say(several, n)
}

// shortest is as many decimals as a number needs, of at most six digits.
const shortest = -1

// number writes a number with so many decimals: 41,206.5 or 41.206,5.
func (lang Language) number(f float64, decimals int) string {
	if decimals == shortest && math.Abs(f) < 1e6 {
		f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'g', 6, 64), 64)
	}
	if math.Abs(f) >= 1e15 || f != 0 && math.Abs(f) < 1e-6 {
		return strconv.FormatFloat(f, 'g', 3, 64)
	}
	text := strconv.FormatFloat(f, 'f', decimals, 64)
	sign := ""
	if text[0] == '-' {
		if text = text[1:]; strings.Trim(text, "0.") != "" {
			sign = "−"
		}
	}
	whole, part, _ := strings.Cut(text, ".")
	group, point := ",", "."
	if lang == Portuguese {
		group, point = ".", ","
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + group + whole[i:]
	}
	if part != "" {
		whole += point + part
	}
	return sign + whole
}

// phrase names something that is said.
type phrase int

const (
	leadImproving phrase = iota
	leadPlateau
	leadPlateauSince
	leadRegressing
	leadRegressingSince
	leadOscillating
	leadTooEarly
	leadNotScored
	willConverge
	willConvergeOf
	willReach
	willRunOut
	willRunOutOf
	noEnd
	noCourse
	scores1
	scoresN
	noBest
	basis
	basisTime
	basisLast
	moreNone
	more1
	moreN
	moreRange
	atMostNone
	atMost1
	atMostN

	doneExit
	doneImpossible
	doneBlocked
	doneCondition
	doneTarget
	doneTargets
	doneConverged
	doneNotWorth
	doneCircles
	limitIterations1
	limitIterationsN
	limitTime
	limitBudget
	failedBy
	failed
	canceled
	inIteration
	inIterationWhy
	inIterationQuote
	afterIteration
	withoutTarget
	bestIn
	keptSaved

	rowTarget
	rowTargetLow
	rowDimensions
	rowDimensionsLow
	rowConverged
	rowExit
	rowExitOne
	rowCircles
	rowIterations
	rowTime
	rowTokens
	rowCost
	rowCalls
	rowBudget
	rowCondition
	rowFailures
	rowNotWorth
	whyGain
	whyGainPercent
	whyNoise
	whyOnly
	whySome
	whyAny
	whyNobody
	whyCircles
	whyKept
	whyNotWorth
	perIteration
	perMinute
	perKTokens
	perCost
	or
	valueOf
	timesOf
	amountNotAsked
	amountAsked
	amountAskedIn
	amountUnknown
	tagLikely
	tagHolds
	tagNext

	failuresTitle
	failuresHow
	failuresDo
	neverTitle
	neverAfter
	neverBest
	neverRate
	neverLevel
	neverElse
	neverBlind
	neverBlindDo
	neverWhen
	neverWhenNote
	neverWhenDo
	neverAsked
	neverAskedDo
	exitWordsTitle
	exitWordsHow
	exitWordsDo
	timeoutsTitle
	timeoutsHow
	timeoutsDo
	timeoutsMost
	timeoutsMostDo
	fellTitle
	fellTo
	fellIn1
	fellInN
	fellBest
	fellUndone
	fellTellCritic
	fellTell
	fellBestDo
	fellDo
	noiseTitle
	noiseHow
	noiseDo
	noiseSamples
	circlesTitle
	circlesSame
	circlesTurns
	circlesSwing
	circlesDo
	refusedTitle
	refusedHow
	refusedDo
	slowTitle
	slowStayed
	slowStayedDo
	slowLate
	slowEven
	slowDo
	contextTitle
	contextHow
	contextDo
	iterations1
	iterationsN
	iterationsRange
	times1
	timesN
	timeouts1
	timeoutsN
	phraseCount
)

// phrases are all words for people that are in more than one language. Portuguese is written, not
// translated word by word.
var phrases = [phraseCount]struct{ english, portuguese string }{
	leadImproving:       {"Improving.", "Melhorando."},
	leadPlateau:         {"Plateau.", "Platô."},
	leadPlateauSince:    {"Plateau since iteration %s.", "Platô desde a iteração %s."},
	leadRegressing:      {"Getting worse.", "Piorando."},
	leadRegressingSince: {"Getting worse since iteration %s.", "Piorando desde a iteração %s."},
	leadOscillating:     {"Going up and down.", "Sobe e desce."},
	leadTooEarly:        {"Too early to say.", "Cedo para dizer."},
	leadNotScored:       {"Not scored.", "Sem score."},
	willConverge: {"It will probably stop after iteration %s, at about %s, because it hardly improves.",
		"Deve parar depois da iteração %s, perto de %s, porque quase não melhora."},
	willConvergeOf: {"It will probably stop after iteration %s, at about %s of %s, because it hardly improves.",
		"Deve parar depois da iteração %s, perto de %s de %s, porque quase não melhora."},
	willReach: {"It will probably reach %s in iteration %s.", "Deve chegar a %s na iteração %s."},
	willRunOut: {"It will probably stop at the limit of %s iterations, at about %s.",
		"Deve parar no limite de %s iterações, perto de %s."},
	willRunOutOf: {"It will probably stop at the limit of %s iterations, at about %s of %s.",
		"Deve parar no limite de %s iterações, perto de %s de %s."},
	noEnd:      {"Nothing is expected to end it soon.", "Nada deve encerrar o loop tão cedo."},
	noCourse:   {"The scores follow no course, so there is no forecast.", "Os scores não seguem um rumo, então não há previsão."},
	scores1:    {"1 score of the %s that a forecast needs.", "1 score dos %s que uma previsão pede."},
	scoresN:    {"%s scores of the %s that a forecast needs.", "%s scores dos %s que uma previsão pede."},
	noBest:     {"Without a score no version is the best, and the last one is the result.", "Sem score nenhuma versão é a melhor, e o resultado é a última."},
	basis:      {"From %s scores: %s.", "De %s scores: %s."},
	basisTime:  {"From %s scores: %s, about %s.", "De %s scores: %s, cerca de %s."},
	basisLast:  {"From %s scores: this is probably the last iteration.", "De %s scores: esta deve ser a última iteração."},
	moreNone:   {"no more iterations", "nenhuma iteração a mais"},
	more1:      {"1 more iteration", "mais 1 iteração"},
	moreN:      {"%s more iterations", "mais %s iterações"},
	moreRange:  {"%s (%s to %s)", "%s (%s a %s)"},
	atMostNone: {"This is the last iteration.", "Esta é a última iteração."},
	atMost1:    {"At most 1 more iteration.", "No máximo mais 1 iteração."},
	atMostN:    {"At most %s more iterations.", "No máximo mais %s iterações."},

	doneExit:         {"%s asked to stop", "%s pediu para parar"},
	doneImpossible:   {"%s says that it cannot be done,", "%s diz que não é possível,"},
	doneBlocked:      {"%s cannot go on without help,", "%s não consegue seguir sem ajuda,"},
	doneCondition:    {"The stop condition held", "A condição de parada se cumpriu"},
	doneTarget:       {"The score reached %s", "O score chegou a %s"},
	doneTargets:      {"Every part reached its target", "Cada parte chegou à sua meta"},
	doneConverged:    {"It hardly improved any more", "Já quase não melhorava"},
	doneNotWorth:     {"The next iteration was not worth it", "A próxima iteração não compensava"},
	doneCircles:      {"It went in circles", "Andava em círculos"},
	limitIterations1: {"Stopped after 1 iteration,", "Parou depois de 1 iteração,"},
	limitIterationsN: {"Stopped after %s iterations,", "Parou depois de %s iterações,"},
	limitTime:        {"Its time was over", "O tempo acabou"},
	limitBudget:      {"Its budget was spent", "O orçamento acabou"},
	failedBy:         {"%s failed", "%s falhou"},
	failed:           {"Failed", "Falhou"},
	canceled:         {"Canceled", "Cancelado"},
	inIteration:      {"in iteration %s.", "na iteração %s."},
	inIterationWhy:   {"in iteration %s: %s", "na iteração %s: %s"},
	inIterationQuote: {"in iteration %s: “%s”.", "na iteração %s: “%s”."},
	afterIteration:   {"after iteration %s.", "depois da iteração %s."},
	withoutTarget:    {"without reaching %s.", "sem chegar a %s."},
	bestIn:           {"The best is %s, in iteration %s.", "O melhor é %s, na iteração %s."},
	keptSaved:        {"What was saved is kept.", "O que foi salvo continua salvo."},

	rowTarget:        {"Score reaches %s", "Score chega a %s"},
	rowTargetLow:     {"Score falls to %s", "Score cai a %s"},
	rowDimensions:    {"Every part reaches %s", "Cada parte chega a %s"},
	rowDimensionsLow: {"Every part falls to %s", "Cada parte cai a %s"},
	rowConverged:     {"Hardly improves", "Quase não melhora"},
	rowExit:          {"A step asks to stop", "Um passo pede para parar"},
	rowExitOne:       {"%s asks to stop", "%s pede para parar"},
	rowCircles:       {"Goes in circles", "Anda em círculos"},
	rowIterations:    {"Iterations", "Iterações"},
	rowTime:          {"Active time", "Tempo ativo"},
	rowTokens:        {"Tokens", "Tokens"},
	rowCost:          {"Cost", "Custo"},
	rowCalls:         {"Model calls", "Chamadas ao modelo"},
	rowBudget:        {"Budget", "Orçamento"},
	rowCondition:     {"Condition holds", "Condição se cumpre"},
	rowFailures:      {"Failures in a row", "Falhas seguidas"},
	rowNotWorth:      {"Next gain is not worth it", "Próximo ganho não compensa"},
	whyGain:          {"gain below %s", "ganho menor que %s"},
	whyGainPercent:   {"gain below %s%%", "ganho menor que %s%%"},
	whyNoise:         {"within the judge's noise", "dentro do ruído do avaliador"},
	whyOnly:          {"the only step that may", "o único passo que pode"},
	whySome:          {"%s may", "podem: %s"},
	whyAny:           {"any step may", "qualquer passo pode"},
	whyNobody:        {"no step may", "nenhum passo pode"},
	whyCircles:       {"the same result again", "o mesmo resultado de novo"},
	whyKept:          {"%s kept for the answer", "%s guardados para a resposta"},
	whyNotWorth:      {"less than %s per %s", "menos de %s por %s"},
	perIteration:     {"iteration", "iteração"},
	perMinute:        {"minute", "minuto"},
	perKTokens:       {"1,000 tokens", "1.000 tokens"},
	perCost:          {"unit of cost", "unidade de custo"},
	or:               {"%s, or %s", "%s, ou %s"},
	valueOf:          {"%s of %s", "%s de %s"},
	timesOf:          {"%s of %s in a row", "%s de %s seguidas"},
	amountNotAsked:   {"not asked", "não pediu"},
	amountAsked:      {"asked", "pediu"},
	amountAskedIn:    {"asked in %s", "pediu na %s"},
	amountUnknown:    {"unknown", "desconhecido"},
	tagLikely:        {"likely", "provável"},
	tagHolds:         {"holds", "se cumpre"},
	tagNext:          {"would have been next", "seria a próxima"},

	failuresTitle: {"Most steps failed", "A maioria dos passos falhou"},
	failuresHow:   {"%s of %s steps, and the loop continued", "%s de %s passos, e o loop continuou"},
	failuresDo: {"Look at their errors first; max_consecutive_failures: 3 would have ended the loop early",
		"Veja primeiro os erros deles; max_consecutive_failures: 3 teria encerrado o loop cedo"},
	neverTitle: {"The loop never reached its criterion", "O loop nunca chegou ao seu critério"},
	neverAfter: {"%s after %s", "%s depois de %s"},
	neverBest:  {"%s, best score %s of %s (iteration %s)", "%s, melhor score %s de %s (iteração %s)"},
	neverRate: {"At this rate it takes %s more: set max_iterations to %s",
		"Nesse ritmo ainda leva %s: ponha max_iterations em %s"},
	neverLevel: {"The scores level off near %s: lower the target, or give the writer better feedback",
		"Os scores param perto de %s: baixe a meta, ou dê a quem escreve um retorno melhor"},
	neverElse: {"Lower the target, raise max_iterations, or give the writer better feedback",
		"Baixe a meta, aumente max_iterations, ou dê a quem escreve um retorno melhor"},
	neverBlind: {"%s: %s, and nothing in the loop looks at the score",
		"%s: %s, e nada no loop olha para o score"},
	neverBlindDo: {"Give score a target, or min_delta with patience, so that the loop ends when the score gets no better",
		"Dê a score um target, ou min_delta com patience, para o loop terminar quando o score já não melhora"},
	neverWhen: {"%s, stop_when never held: %s is %s, wanted %s",
		"%s, stop_when nunca se cumpriu: %s é %s, era para ser %s"},
	neverWhenNote: {"%s, stop_when never held: %s: %s", "%s, stop_when nunca se cumpriu: %s: %s"},
	neverWhenDo: {"Check that a step writes what the condition reads, or make it easier to meet",
		"Confira se algum passo escreve o que a condição lê, ou torne-a mais fácil de cumprir"},
	neverAsked: {"%s, and no step asked to leave", "%s, e nenhum passo pediu para sair"},
	neverAskedDo: {"Say in the instructions of the steps that may exit when to call exit_loop, or measure it with stop_when or a score",
		"Diga nas instruções dos passos que podem sair quando chamar exit_loop, ou meça isso com stop_when ou um score"},
	exitWordsTitle: {"A model wrote exit_loop() and did not call the tool",
		"Um modelo escreveu exit_loop() e não chamou a ferramenta"},
	exitWordsHow: {"%s, %s; the loop took no notice of it", "%s, %s; o loop não percebeu"},
	exitWordsDo: {"Say in the instructions that it is to call the tool and write nothing, or take a model that calls tools",
		"Diga nas instruções que ele deve chamar a ferramenta e não escrever nada, ou use um modelo que chame ferramentas"},
	timeoutsTitle: {"Steps often run out of time", "Passos ficam sem tempo com frequência"},
	timeoutsHow:   {"%s in %s", "%s em %s"},
	timeoutsDo: {"Make the steps faster, or raise timeout and iteration_timeout",
		"Torne os passos mais rápidos, ou aumente timeout e iteration_timeout"},
	timeoutsMost: {", most of them in %s", ", a maioria em %s"},
	timeoutsMostDo: {"Make %s faster, raise its timeout to %s, or let it adapt with adaptive_timeout",
		"Torne %s mais rápido, aumente seu timeout para %s, ou deixe-o se adaptar com adaptive_timeout"},
	fellTitle:  {"The score fell", "O score caiu"},
	fellTo:     {"%s (to %s)", "%s (para %s)"},
	fellIn1:    {"in iteration %s", "na iteração %s"},
	fellInN:    {"in iterations %s", "nas iterações %s"},
	fellBest:   {"; the best is %s in iteration %s", "; o melhor é %s, na iteração %s"},
	fellUndone: {"; all were rolled back", "; todas foram desfeitas"},
	fellTellCritic: {"Tell the critic why with {{rejected.reason}}: its feedback may contradict itself",
		"Diga ao crítico por quê, com {{rejected.reason}}: seu retorno pode se contradizer"},
	fellTell: {"Tell %s why with {{rejected.reason}}: the feedback may contradict itself",
		"Diga a %s por quê, com {{rejected.reason}}: o retorno pode se contradizer"},
	fellBestDo: {"Set on_regression: rollback so that the next iteration starts from the best, and let the critic see {{best.KEY}}",
		"Use on_regression: rollback para a próxima iteração partir da melhor, e deixe o crítico ver {{best.KEY}}"},
	fellDo: {"Set on_regression: rollback, or a quality_gate, so that a worse version is not built upon",
		"Use on_regression: rollback, ou um quality_gate, para não se continuar de uma versão pior"},
	noiseTitle: {"The judge is too noisy", "O avaliador varia demais"},
	noiseHow: {"differences of up to %s count for nothing, and %s of %s were below that",
		"diferenças de até %s não valem nada, e %s de %s ficaram abaixo disso"},
	noiseDo: {"Give the judge clearer criteria, a lower temperature, or a scale with fewer steps",
		"Dê ao avaliador critérios mais claros, uma temperatura menor, ou uma escala com menos graus"},
	noiseSamples: {"; samples: %s would tell a difference of %s",
		"; samples: %s perceberia uma diferença de %s"},
	circlesTitle: {"The loop goes round in circles", "O loop anda em círculos"},
	circlesSame:  {"the same result %s times running", "o mesmo resultado %s vezes seguidas"},
	circlesTurns: {"two results take turns, %s times running",
		"dois resultados se alternam, %s vezes seguidas"},
	circlesSwing: {"the scores swing: %s", "os scores oscilam: %s"},
	circlesDo: {"Let the critic see all earlier feedback, or raise the temperature of the step that should find something new",
		"Deixe o crítico ver todo o retorno anterior, ou aumente a temperatura do passo que deve achar algo novo"},
	refusedTitle: {"An exit was refused", "Uma saída foi recusada"},
	refusedHow:   {"%s, asked by %s", "%s, pedida por %s"},
	refusedDo: {"Give %s can_exit_loop: true, or tell it not to decide about the end",
		"Dê a %s can_exit_loop: true, ou diga-lhe que não decida sobre o fim"},
	slowTitle:  {"Many iterations, little improvement", "Muitas iterações, pouca melhora"},
	slowStayed: {"the score stayed at %s for %s", "o score ficou em %s por %s"},
	slowStayedDo: {"Give the steps more to go on: have the critic name one concrete improvement at a time",
		"Dê mais aos passos em que se apoiar: que o crítico aponte uma melhora concreta de cada vez"},
	slowLate: {"iterations %s to %s brought %s of %s points",
		"as iterações %s a %s trouxeram %s de %s pontos"},
	slowEven: {"%s brought %s points, none more than %s%%",
		"%s trouxeram %s pontos, nenhuma mais que %s%%"},
	slowDo: {"Stop earlier with min_delta_percent: 5 (about iteration %s), or have the critic name one concrete improvement at a time",
		"Pare antes com min_delta_percent: 5 (perto da iteração %s), ou que o crítico aponte uma melhora concreta de cada vez"},
	contextTitle: {"Every iteration sends more than the one before",
		"Cada iteração envia mais que a anterior"},
	contextHow: {"%s input tokens in the first, %s in the last",
		"%s tokens de entrada na primeira, %s na última"},
	contextDo: {"Show models less of what was said before: context: iteration, or context: {last: 2}",
		"Mostre aos modelos menos do que já foi dito: context: iteration, ou context: {last: 2}"},
	iterations1:     {"1 iteration", "1 iteração"},
	iterationsN:     {"%s iterations", "%s iterações"},
	iterationsRange: {"%s to %s iterations", "%s a %s iterações"},
	times1:          {"1 time", "1 vez"},
	timesN:          {"%s times", "%s vezes"},
	timeouts1:       {"1 timeout", "1 tempo esgotado"},
	timeoutsN:       {"%s timeouts", "%s tempos esgotados"},
}
