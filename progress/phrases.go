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
}
