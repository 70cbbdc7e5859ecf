// SPDX-License-Identifier: Apache-2.0

package prose

// phrase is a text in each language. The n-th %s stands for the same value in both.
type phrase struct{ english, portuguese string }

var (
	leadImproving       = phrase{"Improving.", "Melhorando."}
	leadPlateau         = phrase{"Plateau.", "Platô."}
	leadPlateauSince    = phrase{"Plateau since iteration %s.", "Platô desde a iteração %s."}
	leadRegressing      = phrase{"Getting worse.", "Piorando."}
	leadRegressingSince = phrase{"Getting worse since iteration %s.", "Piorando desde a iteração %s."}
	leadOscillating     = phrase{"Going up and down.", "Sobe e desce."}
	leadTooEarly        = phrase{"Too early to say.", "Cedo para dizer."}
	leadNotScored       = phrase{"Not scored.", "Sem nota."}
	willConverge        = phrase{"The loop will probably stop after iteration %s, at about %s, because the score hardly improves.",
		"O laço deve parar depois da iteração %s, perto de %s, porque a nota quase não melhora."}
	willConvergeOf = phrase{"The loop will probably stop after iteration %s, at about %s of %s, because the score hardly improves.",
		"O laço deve parar depois da iteração %s, perto de %s de %s, porque a nota quase não melhora."}
	willReach  = phrase{"The score will probably reach %s in iteration %s.", "A nota deve chegar a %s na iteração %s."}
	willRunOut = phrase{"The loop will probably stop at the limit of %s iterations, at about %s.",
		"O laço deve parar no limite de %s iterações, perto de %s."}
	willRunOutOf = phrase{"The loop will probably stop at the limit of %s iterations, at about %s of %s.",
		"O laço deve parar no limite de %s iterações, perto de %s de %s."}
	noEnd    = phrase{"Nothing is expected to end the loop soon.", "Nada deve encerrar o laço tão cedo."}
	noCourse = phrase{"The scores follow no course, so there is no forecast.", "As notas não seguem um rumo, então não há previsão."}
	scores1  = phrase{"1 score of the %s that a forecast needs.", "1 nota das %s que uma previsão pede."}
	scoresN  = phrase{"%s scores of the %s that a forecast needs.", "%s notas das %s que uma previsão pede."}
	noBest   = phrase{"Without a score no version is the best, and the last one is the result.",
		"Sem nota nenhuma versão é a melhor, e o resultado é a última."}
	basis      = phrase{"From %s scores: %s.", "De %s notas: %s."}
	basisTime  = phrase{"From %s scores: %s, about %s.", "De %s notas: %s, cerca de %s."}
	basisLast  = phrase{"From %s scores: this is probably the last iteration.", "De %s notas: esta deve ser a última iteração."}
	moreNone   = phrase{"no more iterations", "nenhuma iteração a mais"}
	more1      = phrase{"1 more iteration", "mais 1 iteração"}
	moreN      = phrase{"%s more iterations", "mais %s iterações"}
	moreRange  = phrase{"%s (%s to %s)", "%s (%s a %s)"}
	atMostNone = phrase{"This is the last iteration.", "Esta é a última iteração."}
	atMost1    = phrase{"At most 1 more iteration.", "No máximo mais 1 iteração."}
	atMostN    = phrase{"At most %s more iterations.", "No máximo mais %s iterações."}

	doneExit         = phrase{"%s asked to stop", "%s pediu para parar"}
	doneImpossible   = phrase{"%s says that the task is impossible,", "%s diz que a tarefa é impossível,"}
	doneBlocked      = phrase{"%s cannot go on without help,", "%s não consegue seguir sem ajuda,"}
	doneCondition    = phrase{"The stop condition held", "A condição de parada se cumpriu"}
	doneTarget       = phrase{"The score reached %s", "A nota chegou a %s"}
	doneTargets      = phrase{"Every part reached its target", "Cada parte chegou à sua meta"}
	doneConverged    = phrase{"The score hardly improved any more", "A nota já quase não melhorava"}
	doneNotWorth     = phrase{"The next iteration was not worth it", "A próxima iteração não compensava"}
	doneCircles      = phrase{"The loop went in circles", "O laço andava em círculos"}
	limitIterations1 = phrase{"Stopped after 1 iteration,", "Parou depois de 1 iteração,"}
	limitIterationsN = phrase{"Stopped after %s iterations,", "Parou depois de %s iterações,"}
	limitTime        = phrase{"The time limit was reached", "O limite de tempo foi atingido"}
	limitBudget      = phrase{"The budget was spent", "O orçamento acabou"}
	failedBy         = phrase{"%s failed", "%s falhou"}
	failed           = phrase{"Failed", "Falhou"}
	canceled         = phrase{"Canceled", "Cancelado"}
	inIteration      = phrase{"in iteration %s.", "na iteração %s."}
	inIterationWhy   = phrase{"in iteration %s: %s", "na iteração %s: %s"}
	inIterationQuote = phrase{"in iteration %s: “%s”.", "na iteração %s: “%s”."}
	afterIteration   = phrase{"after iteration %s.", "depois da iteração %s."}
	withoutTarget    = phrase{"without reaching %s.", "sem chegar a %s."}
	bestAtStart      = phrase{"The best is %s, that of the start.", "A melhor é %s, a do início."}
	sureOfTarget     = phrase{"In %s of %s such cases many more answers would confirm it.",
		"Em %s de %s casos assim, muitas mais respostas o confirmariam."}
	sureOfPrice = phrase{"In %s of %s such cases an iteration gains less than its price, %s.",
		"Em %s de %s casos como este uma iteração ganha menos do que custa, %s."}
	sureOfPlateau = phrase{"The last %s scores look %s times more like no gain at all than like a gain of %s in every iteration.",
		"As últimas %s notas parecem %s vezes mais com ganho nenhum do que com um ganho de %s em cada iteração."}
	bestIn    = phrase{"The best is %s, in iteration %s.", "A melhor é %s, na iteração %s."}
	keptSaved = phrase{"What was saved is kept.", "O que foi salvo continua salvo."}

	rowTarget        = phrase{"Score reaches %s", "Nota chega a %s"}
	rowTargetLow     = phrase{"Score falls to %s", "Nota cai a %s"}
	rowDimensions    = phrase{"Every part reaches %s", "Cada parte chega a %s"}
	rowDimensionsLow = phrase{"Every part falls to %s", "Cada parte cai a %s"}
	rowConverged     = phrase{"Hardly improves", "Quase não melhora"}
	rowExit          = phrase{"A step asks to stop", "Um passo pede para parar"}
	rowExitOne       = phrase{"%s asks to stop", "%s pede para parar"}
	rowCircles       = phrase{"Goes in circles", "Anda em círculos"}
	rowIterations    = phrase{"Iterations", "Iterações"}
	rowTime          = phrase{"Active time", "Tempo ativo"}
	rowTokens        = phrase{"Tokens", "Tokens"}
	rowCost          = phrase{"Cost", "Custo"}
	rowCalls         = phrase{"Model calls", "Chamadas ao modelo"}
	rowBudget        = phrase{"Budget", "Orçamento"}
	rowCondition     = phrase{"Condition holds", "Condição se cumpre"}
	rowFailures      = phrase{"Failures in a row", "Falhas seguidas"}
	rowNotWorth      = phrase{"Next gain is not worth it", "Próximo ganho não compensa"}
	whyGain          = phrase{"gain below %s", "ganho menor que %s"}
	whyGainPercent   = phrase{"gain below %s%%", "ganho menor que %s%%"}
	whyNoise         = phrase{"within the judge's noise", "dentro do ruído do avaliador"}
	raceWon          = phrase{"%s wins.", "%s vence."}
	raceGoesOn       = phrase{"%s wins and goes on.", "%s vence e continua."}
	raceBest         = phrase{"It has the best score, %s", "Tem a melhor nota, %s"}
	raceChosen       = phrase{"Somebody chose it, by a fork of the run", "Alguém o escolheu, com um fork da execução"}
	raceAlone        = phrase{"It is the only loop", "É o único laço"}
	raceUnscored     = phrase{"No loop has a score; it is the first that has not failed", "Nenhum laço tem nota; é o primeiro que não falhou"}
	raceTies         = phrase{"%s, %s of %s", "%s, %s em relação a %s"}
	whyOnly          = phrase{"the only step that may", "o único passo que pode"}
	whySome          = phrase{"%s may", "podem: %s"}
	whyAny           = phrase{"any step may", "qualquer passo pode"}
	whyNobody        = phrase{"no step may", "nenhum passo pode"}
	whyCircles       = phrase{"how often the last result came, or two in turns", "quantas vezes veio o último resultado, ou dois alternados"}
	whyKept          = phrase{"%s kept for the answer", "%s guardados para a resposta"}
	whyNotWorth      = phrase{"less than %s per %s", "menos de %s por %s"}
	perIteration     = phrase{"iteration", "iteração"}
	perMinute        = phrase{"minute", "minuto"}
	perKTokens       = phrase{"1,000 tokens", "1.000 tokens"}
	perCost          = phrase{"unit of cost", "unidade de custo"}
	or               = phrase{"%s, or %s", "%s, ou %s"}
	valueOf          = phrase{"%s of %s", "%s de %s"}
	orMoreOf         = phrase{"%s or more of %s", "%s ou mais de %s"}
	timesOf          = phrase{"%s of %s in a row", "%s de %s seguidas"}
	amountNotAsked   = phrase{"not asked", "não pediu"}
	amountAsked      = phrase{"asked", "pediu"}
	amountAskedIn    = phrase{"asked in %s", "pediu na %s"}
	amountUnknown    = phrase{"unknown", "desconhecido"}
	tagLikely        = phrase{"likely", "provável"}
	tagHolds         = phrase{"holds", "se cumpre"}
	tagNext          = phrase{"would have been next", "seria a próxima"}

	failuresTitle = phrase{"Most steps failed", "A maioria dos passos falhou"}
	failuresHow   = phrase{"%s of %s steps, and the loop continued", "%s de %s passos, e o laço continuou"}
	failuresDo    = phrase{"Look at their errors first; max_consecutive_failures: 3 would have ended the loop early",
		"Veja primeiro os erros deles; max_consecutive_failures: 3 teria encerrado o laço cedo"}
	neverTitle = phrase{"The loop never reached its criterion", "O laço nunca chegou ao seu critério"}
	neverAfter = phrase{"%s after %s", "%s depois de %s"}
	neverStart = phrase{"%s, best score %s of %s (the start)", "%s, melhor nota %s de %s (o início)"}
	neverBest  = phrase{"%s, best score %s of %s (iteration %s)", "%s, melhor nota %s de %s (iteração %s)"}
	neverRate  = phrase{"At this rate it takes %s more: set max_iterations to %s",
		"Nesse ritmo ainda leva %s: ponha max_iterations em %s"}
	neverLevel = phrase{"The scores level off near %s: lower the target, or give the writer better feedback",
		"As notas param perto de %s: baixe a meta, ou dê a quem escreve um retorno melhor"}
	neverElse = phrase{"Lower the target, raise %s, or give the writer better feedback",
		"Baixe a meta, aumente %s, ou dê a quem escreve um retorno melhor"}
	neverBlind = phrase{"%s: %s, and nothing in the loop looks at the score",
		"%s: %s, e nada no laço olha para a nota"}
	neverBlindDo = phrase{"Give score a target, or min_delta with patience, so that the loop ends when the score gets no better",
		"Dê a score um target, ou min_delta com patience, para o laço terminar quando a nota já não melhora"}
	neverWhen = phrase{"%s, stop_when never held: %s is %s, wanted %s",
		"%s, stop_when nunca se cumpriu: %s é %s, era para ser %s"}
	neverWhenNote = phrase{"%s, stop_when never held: %s: %s", "%s, stop_when nunca se cumpriu: %s: %s"}
	neverWhenDo   = phrase{"Check that a step writes what the condition reads, or make it easier to meet",
		"Confira se algum passo escreve o que a condição lê, ou torne-a mais fácil de cumprir"}
	neverAsked   = phrase{"%s, and no step asked to leave", "%s, e nenhum passo pediu para sair"}
	neverAskedDo = phrase{"Raise the limit if the work was getting further; else read what the step that may exit says, and tell a model in its instructions when to call exit_loop",
		"Aumente o limite se o trabalho avançava; senão leia o que diz o passo que pode sair, e diga a um modelo nas instruções quando chamar exit_loop"}
	doubtfulTitle = phrase{"The score may not be honest", "A nota pode não ser honesta"}
	doubtfulHow   = phrase{"in iteration %s %s", "na iteração %s %s"}
	doubtfulMore  = phrase{", and %s more", ", e mais %s"}
	doubtfulLook  = phrase{"Look at what was changed with refrain show RUN --diff %s..%s", "Veja o que mudou com refrain show RUN --diff %s..%s"}
	doubtfulDo    = phrase{"Look at what was changed with refrain show RUN --diff %s..%s; protect the tests, and score with in: clean and an overlay",
		"Veja o que mudou com refrain show RUN --diff %s..%s; proteja os testes, e pontue com in: clean e um overlay"}
	doubtfulResult   = phrase{"The result may not be honest", "O resultado pode não ser honesto"}
	doubtfulResultDo = phrase{"Look at what was changed with refrain show RUN --diff %s..%s; protect the tests, and run them with in: clean and an overlay",
		"Veja o que mudou com refrain show RUN --diff %s..%s; proteja os testes, e rode-os com in: clean e um overlay"}
	exitWordsTitle = phrase{"A model wrote exit_loop() and did not call the tool",
		"Um modelo escreveu exit_loop() e não chamou a ferramenta"}
	exitWordsHow = phrase{"%s, %s; the loop ignored the text", "%s, %s; o laço ignorou o texto"}
	exitWordsDo  = phrase{"Say in the instructions that it is to call the tool and write nothing, or take a model that calls tools",
		"Diga nas instruções que ele deve chamar a ferramenta e não escrever nada, ou use um modelo que chame ferramentas"}
	timeoutsTitle = phrase{"Steps often run out of time", "Passos ficam sem tempo com frequência"}
	timeoutsHow   = phrase{"%s in %s", "%s em %s"}
	timeoutsDo    = phrase{"Make the steps faster, or raise timeout and iteration_timeout",
		"Torne os passos mais rápidos, ou aumente timeout e iteration_timeout"}
	timeoutsMost   = phrase{", most of them in %s", ", a maioria em %s"}
	timeoutsMostDo = phrase{"Make %s faster, raise its timeout to %s, or let it adapt with adaptive_timeout",
		"Torne %s mais rápido, aumente seu timeout para %s, ou deixe-o se adaptar com adaptive_timeout"}
	timeoutsLoopDo = phrase{"Make %s faster, or raise %s of the loop to %s; the step has no limit of its own",
		"Torne %s mais rápido, ou aumente %s do laço para %s; o passo não tem limite próprio"}
	fellTitle      = phrase{"The score fell", "A nota caiu"}
	fellTo         = phrase{"%s (to %s)", "%s (para %s)"}
	fellIn1        = phrase{"in iteration %s", "na iteração %s"}
	fellInN        = phrase{"in iterations %s", "nas iterações %s"}
	fellStart      = phrase{"; the best is %s, the start", "; a melhor é %s, o início"}
	fellBest       = phrase{"; the best is %s in iteration %s", "; a melhor é %s, na iteração %s"}
	fellUndone     = phrase{"; all were rolled back", "; todas foram desfeitas"}
	fellTellCritic = phrase{"Tell the critic why with {{rejected.reason}}; if it knows, its feedback may contradict itself",
		"Diga ao crítico por quê, com {{rejected.reason}}; se ele já sabe, seu retorno pode se contradizer"}
	fellTell = phrase{"Tell %s why with {{rejected.reason}}; if it knows, the feedback may contradict itself",
		"Diga a %s por quê, com {{rejected.reason}}; se já sabe, o retorno pode se contradizer"}
	fellBestDo = phrase{"Set on_regression: rollback so that the next iteration starts from the best, and let the critic see {{best.KEY}}",
		"Use on_regression: rollback para a próxima iteração partir da melhor, e deixe o crítico ver {{best.KEY}}"}
	fellDo = phrase{"Set on_regression: rollback, or a quality_gate, so that a worse version is not built upon",
		"Use on_regression: rollback, ou um quality_gate, para não se continuar de uma versão pior"}
	noiseTitle = phrase{"The judge is too noisy", "O avaliador varia demais"}
	noiseHow   = phrase{"two scores that differ by up to %s may be equally good, and %s of %s differences were below that",
		"duas notas que diferem em até %s podem ser igualmente boas, e %s de %s diferenças ficaram abaixo disso"}
	noiseOff = phrase{"a score is off by ± %s, so that two that differ by up to %s may be equally good, and %s of %s differences were below that",
		"uma nota tem erro de ± %s, então duas que diferem em até %s podem ser igualmente boas, e %s de %s diferenças ficaram abaixo disso"}
	noiseDo = phrase{"Give the judge clearer criteria, a lower temperature, or a scale with fewer steps",
		"Dê ao avaliador critérios mais claros, uma temperatura menor, ou uma escala com menos graus"}
	noiseSamples = phrase{"; samples: %s would tell a difference of %s",
		"; samples: %s perceberia uma diferença de %s"}
	circlesTitle = phrase{"The loop goes round in circles", "O laço anda em círculos"}
	circlesSame  = phrase{"the same result %s times running", "o mesmo resultado %s vezes seguidas"}
	circlesTurns = phrase{"two results take turns, %s times running",
		"dois resultados se alternam, %s vezes seguidas"}
	circlesSwing = phrase{"the scores swing: %s", "as notas oscilam: %s"}
	circlesDo    = phrase{"Show the step that should find something new what was tried before, or change its prompt, its model or its temperature",
		"Mostre ao passo que deve achar algo novo o que já foi tentado, ou mude seu prompt, seu modelo ou sua temperatura"}
	refusedTitle = phrase{"An exit was refused", "Uma saída foi recusada"}
	refusedHow   = phrase{"%s, asked by %s", "%s, pedida por %s"}
	refusedDo    = phrase{"Give %s can_exit_loop: true, or tell it not to decide about the end",
		"Dê a %s can_exit_loop: true, ou diga-lhe que não decida sobre o fim"}
	slowTitle    = phrase{"Many iterations, little improvement", "Muitas iterações, pouca melhora"}
	slowStayed   = phrase{"the score stayed at %s for %s", "a nota ficou em %s por %s"}
	slowStayedDo = phrase{"Give the steps more to go on: have the critic name one concrete improvement at a time",
		"Dê mais aos passos em que se apoiar: que o crítico aponte uma melhora concreta de cada vez"}
	slowLate = phrase{"iterations %s to %s brought %s of %s points",
		"as iterações %s a %s trouxeram %s de %s pontos"}
	slowEven = phrase{"%s brought %s points, none more than %s%%",
		"%s trouxeram %s pontos, nenhuma mais que %s%%"}
	slowDo = phrase{"Stop earlier with min_delta_percent: 5 (about iteration %s), or have the critic name one concrete improvement at a time",
		"Pare antes com min_delta_percent: 5 (perto da iteração %s), ou que o crítico aponte uma melhora concreta de cada vez"}
	contextTitle = phrase{"Every iteration sends more than the one before",
		"Cada iteração envia mais que a anterior"}
	contextHow = phrase{"%s input tokens in the first, %s in the last",
		"%s tokens de entrada na primeira, %s na última"}
	contextDo = phrase{"Show models less of what was said before: context: iteration, or context: {last: 2}",
		"Mostre aos modelos menos do que já foi dito: context: iteration, ou context: {last: 2}"}
	iterations1     = phrase{"1 iteration", "1 iteração"}
	iterationsN     = phrase{"%s iterations", "%s iterações"}
	iterationsRange = phrase{"%s to %s iterations", "%s a %s iterações"}
	times1          = phrase{"1 time", "1 vez"}
	timesN          = phrase{"%s times", "%s vezes"}
	timeouts1       = phrase{"1 timeout", "1 tempo esgotado"}
	timeoutsN       = phrase{"%s timeouts", "%s tempos esgotados"}
)
