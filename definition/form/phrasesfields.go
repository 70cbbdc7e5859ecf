// SPDX-License-Identifier: Apache-2.0

package form

// fieldPhrases are the explanations of fields and of their parts in Portuguese.
var fieldPhrases = [][2]string{
	{"unique name: a letter, then letters, digits, _ and -", "nome único: uma letra, depois letras, algarismos, _ e -"},
	{"kind of agent; optional where another field tells it", "tipo de agente; opcional onde outro campo já diz"},
	{"what the agent is for", "para que serve o agente"},
	{"name to show to people", "nome mostrado às pessoas"},
	{"color to show it in: a name such as red, or \"#rrggbb\"", "cor em que aparece: um nome como red, ou \"#rrggbb\""},
	{"texts that the value can be", "textos que o valor pode ser"},
	{"regular expression (RE2) that matches the whole value", "expressão regular (RE2) que casa com o valor inteiro"},
	{"initial state of a run", "estado inicial de uma execução"},
	{"user's request if the run gives none: {{user_input}}", "pedido do usuário se a execução não trouxer um: {{user_input}}"},
	{"goal of the loop", "objetivo do laço"},
	{"least score at which an iteration is accepted", "menor nota com que uma iteração é aceita"},
	{"pause between two iterations", "pausa entre duas iterações"},
	{"limit on the model calls in the loop: {calls, tokens, cost}", "limite das chamadas ao modelo no laço: {calls, tokens, cost}"},
	{
		"true lets a loop go on with its next iteration after a failed step; on a step of a loop it means " +
			"on_error: next_iteration, on another step on_error: skip_step",
		"true deixa um laço seguir com a próxima iteração depois de um passo com falha; num passo de um laço significa " +
			"on_error: next_iteration, noutro passo on_error: skip_step",
	},
	{"JSON Schema of the answer, which is then JSON", "JSON Schema da resposta, que passa a ser JSON"},
	{"temperature, from 0 to 2; that of the model if left out", "temperatura, de 0 a 2; sem valor, a do modelo"},
	{"program and arguments; no shell reads them", "programa e argumentos; nenhum shell os lê"},
	{"coding agent to ask, by its program: claude or codex", "agente de programação a perguntar, pelo seu programa: claude ou codex"},
	{"program, with its arguments, that speaks the Agent Client Protocol, in place of cli, such as [gemini, --acp]", "programa, com seus argumentos, que fala o Agent Client Protocol, em vez de cli, como [gemini, --acp]"},
	{"what the coding agent is asked to do, with placeholders", "o que se pede ao agente de programação, com marcadores"},
	{"what the coding agent may do without asking: read, edit (default: change files in its folder) or all", "o que o agente de programação pode fazer sem perguntar: read, edit (padrão: alterar arquivos na sua pasta) ou all"},
	{"what follows when the coding agent was not allowed to use a tool: fail (default) or allow; codex does not say so", "o que se segue quando o agente de programação não pôde usar uma ferramenta: fail (padrão) ou allow; o codex não o diz"},
	{"most requests of the coding agent to its model; only claude", "máximo de pedidos do agente de programação ao seu modelo; só claude"},
	{"state key of a second score, read in the same way, such as of tests that the agent never sees; the loop reports when it falls while the score rises", "chave do estado de uma segunda pontuação, lida da mesma forma, como a de testes que o agente nunca vê; o loop avisa quando ela cai enquanto a pontuação sobe"},
	{"count tests in the output, which is go_json (go test -json), junit (XML) or counts (a JSON object), or in a JUnit file such as report.xml; output_key gets {passed, failed, skipped, total, score, said}", "conta os testes na saída, que é go_json (go test -json), junit (XML) ou counts (um objeto JSON), ou em um arquivo JUnit como report.xml; output_key recebe {passed, failed, skipped, total, score, said}"},
	{"most that the coding agent may spend, in US dollars, if the run's budget leaves more; only claude", "máximo que o agente de programação pode gastar, em dólares, se o orçamento da execução deixar mais; só claude"},
	{"further arguments of the coding agent, without placeholders", "outros argumentos do agente de programação, sem marcadores"},
	{"when the coding agent's provider takes no more requests for now: stop (default) fails the step; {wait: reset, at_most: 6h} waits until the limit ends", "quando o provedor do agente de programação não aceita mais pedidos por enquanto: stop (padrão) faz o passo falhar; {wait: reset, at_most: 6h} espera até o limite terminar"},
	{"what the coding agent knows of its earlier iterations: fresh (default) begins a new conversation, continue goes on with the one that belongs to the state", "o que o agente de programação sabe das suas iterações anteriores: fresh (padrão) começa uma nova conversa, continue prossegue com a que pertence ao estado"},
	{"reset waits until the limit ends, as far as that is known, and asks again; stop fails the step", "reset espera até o limite terminar, se isso for conhecido, e pergunta de novo; stop faz o passo falhar"},
	{"longest time to wait before the step fails", "tempo máximo de espera antes de o passo falhar"},
	{"end a coding agent that has printed nothing for so long, such as 5m", "termina um agente de programação que não escreveu nada por esse tempo, como 5m"},
	{"model, in the words of the coding agent; its own choice if left out", "modelo, nas palavras do agente de programação; a escolha dele se omitido"},
	{"time limit of the coding agent, such as 30m; a plain number is seconds", "limite de tempo do agente de programação, como 30m; um número simples é em segundos"},
	{"input of the command, which may be any text", "entrada do comando, que pode ser qualquer texto"},
	{"working directory, inside the run's root", "pasta de trabalho, dentro da raiz da execução"},
	{"largest output, such as 1MB", "maior saída, como 1MB"},
	{"largest answer, such as 1MB", "maior resposta, como 1MB"},
	{"exit codes that mean success; [0] if left out, with tests [0, 1]", "códigos de saída que significam sucesso; sem valor, [0], com tests [0, 1]"},
	{"address of the request; no placeholder in its host", "endereço da requisição; sem espaço reservado no host"},
	{"HTTP method; GET if left out", "método HTTP; sem valor, GET"},
	{"request headers", "cabeçalhos da requisição"},
	{"body: text, or a map or list, sent as JSON", "corpo: texto, ou um mapa ou lista, enviado como JSON"},
	{"true reads the output as JSON", "true lê a saída como JSON"},
	{"state keys, each with the expression of its new value", "chaves do estado, cada uma com a expressão do novo valor"},
	{"expression whose value is stored in output_key", "expressão cujo valor é guardado em output_key"},
	{"text that the agent says, with placeholders", "texto que o agente diz, com espaços reservados"},
	{"question to the person, with placeholders", "pergunta à pessoa, com espaços reservados"},
	{"answers to choose from; any answer if left out", "respostas à escolha; sem valor, qualquer resposta"},
	{"state keys to show and edit", "chaves do estado a mostrar e editar"},
	{"time limit of the answer, such as 24h; none if left out", "prazo da resposta, como 24h; sem valor, nenhum"},
	{"name of a Go agent that the embedding program registers", "nome de um agente em Go que o programa registra"},
	{"state key of the details of the result, such as exit_code", "chave do estado com os detalhes do resultado, como exit_code"},
	{"reason of the exit, in words", "motivo da saída, em palavras"},
	{
		"state key of each branch's score, to keep only the files of the best branch; the changes of all are merged if left out",
		"chave de estado da nota de cada ramo, para ficar só com os arquivos do melhor; sem valor, as mudanças de todos são juntadas",
	},
	{"most sub-agents that run at once; all if left out", "máximo de subagentes ao mesmo tempo; sem valor, todos"},
	{"end the loop after this many failed steps in a row", "encerra o laço depois de tantos passos seguidos com falha"},

	{
		"inputs of a run: name: {type, default, description, choices, pattern}, or name: default",
		"entradas de uma execução: nome: {type, default, description, choices, pattern}, ou nome: valor padrão",
	},
	{
		"what values of the state must be to stand in an argument or a variable of a command: key: {type, choices, pattern}",
		"como devem ser os valores do estado para estar num argumento ou numa variável de um comando: chave: {type, choices, pattern}",
	},
	{
		"number, int, bool or file: a path inside the run's root; string if left out",
		"number, int, bool ou file: um caminho dentro da raiz da execução; sem valor, string",
	},
	{
		"session ID if the run gives none; with a fixed ID all runs are one conversation",
		"ID da sessão se a execução não trouxer um; com um ID fixo, todas as execuções são uma só conversa",
	},
	{
		"price of a million tokens: provider/name: {input, output, cached_input, cache_write, cache_write_1h}",
		"preço de um milhão de tokens: provedor/nome: {input, output, cached_input, cache_write, cache_write_1h}",
	},
	{
		"fail after this many model calls (a number or none; default 500); a larger budget of calls at the root raises it",
		"falha depois de tantas chamadas ao modelo (um número ou none; padrão 500); um orçamento maior de chamadas na raiz o eleva",
	},
	{"time limit to open a model or a tool server; 30s if left out", "prazo para abrir um modelo ou um servidor de ferramentas; sem valor, 30s"},
	{
		"loop: how to reach the goal; llm: system instruction, with placeholders",
		"laço: como alcançar o objetivo; llm: instrução de sistema, com espaços reservados",
	},
	{"how to reach the goal; every model in the loop reads it", "como alcançar o objetivo; todos os modelos do laço leem"},
	{"what the model is told, with placeholders such as {{user_input}}", "o que se diz ao modelo, com espaços reservados como {{user_input}}"},
	{
		"most iterations; 5 if left out; 0 for no limit, if something else stops the loop",
		"máximo de iterações; sem valor, 5; 0 é sem limite, se outra coisa parar o laço",
	},
	{"order of the sub-agents, if not that of sub_agents: every name once", "ordem dos subagentes, se não for a de sub_agents: cada nome uma vez"},
	{
		"when to evaluate stop_when: after every iteration (default) or every step",
		"quando avaliar stop_when: depois de cada iteração (padrão) ou de cada passo",
	},
	{
		"state key of an iteration's score; or a map with key or expr and more",
		"chave do estado com a nota de uma iteração; ou um mapa com key ou expr e mais",
	},
	{
		"state key to hand back, in place of what was said last; or best: the best iteration, also after an exit",
		"chave do estado a devolver, em vez do que foi dito por último; ou best: a melhor iteração, também depois de uma saída",
	},
	{
		"after an iteration worse than the best: keep_best (default), or rollback, which undoes it",
		"depois de uma iteração pior que a melhor: keep_best (padrão), ou rollback, que a desfaz",
	},
	{"true ends a loop that repeats itself; or {repeats, swings, keys}", "true encerra um laço que se repete; ou {repeats, swings, keys}"},
	{
		"end the loop when the next iteration is not worth it: {gain, per: iteration, minute, ktokens or cost}",
		"encerra o laço quando a próxima iteração não compensa: {gain, per: iteration, minute, ktokens ou cost}",
	},
	{
		"preset of the timeouts of iteration and loop; standard if left out, none for a nested loop",
		"conjunto de limites de tempo da iteração e do laço; sem valor, standard, e nenhum para um laço interno",
	},
	{"time limit of one iteration; its remaining steps are skipped", "limite de tempo de uma iteração; os passos restantes são pulados"},
	{
		"when the finalizer runs: after the loop (default) or after each_iteration",
		"quando o finalizador roda: depois do laço (after, padrão) ou de cada iteração (each_iteration)",
	},
	{"share of time and budget kept for the finalizer; 10% if left out", "parte do tempo e do orçamento reservada ao finalizador; sem valor, 10%"},
	{"largest state that a step can make, such as 10MB; none for no limit", "maior estado que um passo pode fazer, como 10MB; none é sem limite"},
	{
		"after a failed step: stop (default), skip_step or, in a loop, next_iteration; on a step for itself, on a loop for " +
			"all its steps too",
		"depois de um passo com falha: stop (padrão), skip_step ou, num laço, next_iteration; num passo, para ele; num " +
			"laço, também para todos os seus passos",
	},
	{
		"after the step has failed: stop (default), skip_step or, in a loop, next_iteration",
		"depois que o passo falhou: stop (padrão), skip_step ou, num laço, next_iteration",
	},
	{
		"after a step of the loop has failed, or the loop itself: stop (default), skip_step or next_iteration",
		"depois que um passo do laço, ou o próprio laço, falhou: stop (padrão), skip_step ou next_iteration",
	},
	{
		"attempts in all when the step fails, or {attempts, backoff, max_backoff}; for steps of a loop",
		"tentativas ao todo quando o passo falha, ou {attempts, backoff, max_backoff}; para passos de um laço",
	},
	{
		"skip the step after failures in a row until a cooldown ends: {failures, cooldown, endpoint}; for steps of a loop",
		"pula o passo depois de falhas seguidas até o fim de uma espera: {failures, cooldown, endpoint}; para passos de um laço",
	},
	{
		"timeout computed from the step's earlier durations: {min, max, factor, after}; for steps of a loop",
		"limite de tempo calculado das durações anteriores do passo: {min, max, factor, after}; para passos de um laço",
	},
	{
		"pause before the agent; for the steps of workflow agents, and a loop at the root",
		"pausa antes do agente; para os passos de agentes de fluxo, e um laço na raiz",
	},
	{
		"copies of the step that run side by side; each is scored by the steps behind it, and the best is kept; for steps of a loop with a score",
		"cópias do passo que rodam lado a lado; cada uma recebe a nota dos passos depois dela, e a melhor fica; para passos de um laço com nota",
	},
	{
		"pause after the agent, also if it fails; for the steps of workflow agents, and a loop at the root",
		"pausa depois do agente, mesmo se falhar; para os passos de agentes de fluxo, e um laço na raiz",
	},
	{
		"reuse the result while the input is equal: true, or for a duration, or {ttl, key}; for steps of a loop",
		"reusa o resultado enquanto a entrada for igual: true, ou por uma duração, ou {ttl, key}; para passos de um laço",
	},
	{
		"the agents inside, in order; {ref: file.yaml} reads one from a file",
		"os agentes de dentro, em ordem; {ref: arquivo.yaml} lê um de um arquivo",
	},
	{
		"model, as provider/name; on a workflow agent for all agents inside; that of the run if left out",
		"modelo, como provedor/nome; num agente de fluxo, para todos os de dentro; sem valor, o da execução",
	},
	{
		"off, so that no provider is asked to keep what requests of the agents inside repeat; or how long it is to keep that, such as 24h with OpenAI; on if left out",
		"off, para não pedir a provedor algum que guarde o que os pedidos dos agentes dentro repetem; ou por quanto tempo guardar, como 24h na OpenAI; on se omitido",
	},
	{
		"off, so that the provider is not asked to keep what requests repeat; or how long it is to keep that, such as 24h with OpenAI; what the agents around say, or on, if left out",
		"off, para não pedir ao provedor que guarde o que os pedidos repetem; ou por quanto tempo guardar, como 24h na OpenAI; se omitido, o que dizem os agentes em volta, ou on",
	},
	{
		"model, as provider/name; that of the agent around it, or of the run, if left out",
		"modelo, como provedor/nome; sem valor, o do agente em volta ou o da execução",
	},
	{
		"model of all agents inside, as provider/name; that of the run if left out",
		"modelo de todos os agentes de dentro, como provedor/nome; sem valor, o da execução",
	},
	{"most tokens of an answer; that of the model if left out", "máximo de tokens de uma resposta; sem valor, o do modelo"},
	{
		"how much the model thinks before it answers: minimal, low, medium or high; that of the model if left out",
		"quanto o modelo pensa antes de responder: minimal, low, medium ou high; sem valor, o do modelo",
	},
	{
		"additional environment variables; text of any content only in those that begin with INPUT_",
		"variáveis de ambiente adicionais; texto de qualquer conteúdo só nas que começam com INPUT_",
	},
	{
		"environment variables that the command gets besides: keys of models, REFRAIN_… and others that Refrain itself " +
			"uses; with clean_env any variable",
		"variáveis de ambiente que o comando também recebe: chaves de modelos, REFRAIN_… e outras que o próprio Refrain " +
			"usa; com clean_env, qualquer variável",
	},
	{"true removes the environment except PATH, HOME and the like", "true tira o ambiente, menos PATH, HOME e semelhantes"},
	{
		"true allows any value in an argument or in a variable, where a program may read it as an option, a setting or code",
		"true permite qualquer valor num argumento ou numa variável, onde um programa pode lê-lo como opção, ajuste ou código",
	},
	{
		"other servers that a redirect may lead to, as host or host:port; they get no headers and no body; none if left out",
		"outros servidores a que um redirecionamento pode levar, como host ou host:porta; não recebem cabeçalhos nem corpo; sem valor, nenhum",
	},
	{"status codes that mean success; 200 to 299 if left out", "códigos de status que significam sucesso; sem valor, de 200 a 299"},
	{
		"http or https address of the agent or its card; no placeholder in its host",
		"endereço http ou https do agente ou do seu cartão; sem espaço reservado no host",
	},
	{
		"message: text, or a map or list, sent as data; the user's message if left out",
		"mensagem: texto, ou um mapa ou lista, enviado como dados; sem valor, a mensagem do usuário",
	},
	{
		"true starts a new conversation each time; otherwise the remote agent remembers this session",
		"true começa uma conversa nova a cada vez; senão o agente remoto se lembra desta sessão",
	},
	{
		"kind of question: approve (default), answer in words, or edit of state keys",
		"tipo de pergunta: approve, aprovar (padrão), answer, responder em palavras, ou edit, editar chaves do estado",
	},
	{
		"answer to use at the deadline: true or false, a text, or a map of keys; without a default the step fails",
		"resposta usada no fim do prazo: true ou false, um texto, ou um mapa de chaves; sem ela o passo falha",
	},
	{
		"state key of the result; loop_output makes a step of a loop its finalizer",
		"chave do estado com o resultado; loop_output faz de um passo de um laço o finalizador",
	},
	{
		"expression over state and result that ends the nearest loop when true",
		"expressão sobre state e result que, verdadeira, encerra o laço mais próximo",
	},
	{"true lets the agents inside end the loop around this one", "true deixa os agentes de dentro encerrarem o laço em volta"},
	{"true lets the model end the loop: it gets the tool exit_loop", "true deixa o modelo encerrar o laço: ele recebe a ferramenta exit_loop"},
	{"true lets exit_when end the loop, which is the default", "true deixa exit_when encerrar o laço, o que é o padrão"},
	{"true lets a person who approves end the loop", "true deixa uma pessoa que aprova encerrar o laço"},
	{"a remote agent cannot end the loop; read its answer in stop_when", "um agente remoto não encerra o laço; leia a resposta dele em stop_when"},
	{"true lets the agent end the loop", "true deixa o agente encerrar o laço"},
	{
		"time limit, such as 30s or 5m; a plain number is seconds; on sequential, parallel, llm, a2a and func only as a step of a loop",
		"limite de tempo, como 30s ou 5m; só um número são segundos; em sequential, parallel, llm, a2a e func só como passo de um laço",
	},
	{
		"time limit of the request, such as 30s or 5m; a plain number is seconds",
		"limite de tempo da requisição, como 30s ou 5m; só um número são segundos",
	},
	{"time limit of the step, such as 30s or 5m; a plain number is seconds", "limite de tempo do passo, como 30s ou 5m; só um número são segundos"},
	{"time limit of the loop, such as 30s or 5m; a plain number is seconds", "limite de tempo do laço, como 30s ou 5m; só um número são segundos"},
	{
		"time limit of the command, such as 30s or 5m; a plain number is seconds",
		"limite de tempo do comando, como 30s ou 5m; só um número são segundos",
	},

	{
		"expression that ends the loop when true; or any, all, not of several; or when with for: k iterations in a row; or {text, of}: a step says a " +
			"phrase",
		"expressão que, verdadeira, encerra o laço; ou any, all, not de várias; ou when com for: k iterações seguidas; ou {text, of}: um passo diz uma " +
			"frase",
	},

	{
		"what the model sees of the conversation: iteration (default), full, digest, none, or {last: n} iterations, with digest: true to summarize " +
			"those before",
		"o que o modelo vê da conversa: iteration (padrão), full, digest, none, ou {last: n} iterações, com digest: true para resumir as anteriores",
	},
	{
		"tools that the model can call: exit_loop, the name of a Go function, {agent: {…}}, {command, name, description, parameters}, {mcp: {command, " +
			"env}} or {mcp: {url, headers}}",
		"ferramentas que o modelo pode chamar: exit_loop, o nome de uma função em Go, {agent: {…}}, {command, name, description, parameters}, {mcp: " +
			"{command, env}} ou {mcp: {url, headers}}",
	},
	{
		"attempts of a request in all, when the provider is busy or does not answer; 3 if left out; or {attempts, backoff, max_backoff, " +
			"max_retry_after}",
		"tentativas de uma requisição ao todo, quando o provedor está ocupado ou não responde; sem valor, 3; ou {attempts, backoff, max_backoff, " +
			"max_retry_after}",
	},
	{
		"task queue of the workers that do the step, on a Temporal cluster: with the files, environment, keys and network of their machine, see " +
			"refrain worker --steps; where the run is driven if left out",
		"fila dos workers que fazem o passo, num cluster Temporal: com os arquivos, o ambiente, as chaves e a rede da máquina deles, veja refrain " +
			"worker --steps; sem valor, onde a execução é conduzida",
	},
	{
		"side effect, which decides what follows when the step is cut off: idempotent (default of commands and requests), pure, at_most_once or " +
			"transactional; or {at_most_once: true, reconcile: {command} or {url}}, which finds out whether the step took place",
		"efeito, que decide o que se faz quando o passo é interrompido: idempotent (padrão de comandos e requisições), pure, at_most_once ou " +
			"transactional; ou {at_most_once: true, reconcile: {command} ou {url}}, que descobre se o passo aconteceu",
	},
	{
		"what follows when the request is cut off: idempotent (default), pure, at_most_once or transactional; or {at_most_once: true, reconcile: " +
			"{command} or {url}}, which finds out whether it took place",
		"o que se faz quando a requisição é interrompida: idempotent (padrão), pure, at_most_once ou transactional; ou {at_most_once: true, reconcile: " +
			"{command} ou {url}}, que descobre se ela aconteceu",
	},
	{
		"what follows when the command is cut off: idempotent (default), pure, at_most_once or transactional; or {at_most_once: true, reconcile: " +
			"{command} or {url}}, which finds out whether it took place",
		"o que se faz quando o comando é interrompido: idempotent (padrão), pure, at_most_once ou transactional; ou {at_most_once: true, reconcile: " +
			"{command} ou {url}}, que descobre se ele aconteceu",
	},
	{
		"hooks: before_run, after_run, before_agent, after_agent, before_iteration, after_iteration, before_model, after_model, before_tool, " +
			"after_tool; each a list of {webhook, secret_env}, {command} or {func}, with timeout, veto, on_error",
		"ganchos: before_run, after_run, before_agent, after_agent, before_iteration, after_iteration, before_model, after_model, before_tool, " +
			"after_tool; cada um é uma lista de {webhook, secret_env}, {command} ou {func}, com timeout, veto, on_error",
	},
	{
		"true lets the agent, and agents inside it, end the loop; true is the default with exit_when or the tool exit_loop, false otherwise. It gives " +
			"an llm agent that tool, and lets a person who approves end the loop",
		"true deixa o agente, e os de dentro dele, encerrarem o laço; true é o padrão com exit_when ou a ferramenta exit_loop, senão false. Dá essa " +
			"ferramenta a um agente llm, e deixa uma pessoa que aprova encerrar o laço",
	},
	{
		"after a crash, finds out whether the step took place: a command (exit code 0: it did, and its output is the result; 1: it did not) or a " +
			"request (2xx: it did; 404, 410: it did not); after any other outcome a person is asked. {{call_id}} is the call's ID",
		"depois de uma queda, descobre se o passo aconteceu: um comando (código de saída 0: aconteceu, e a saída é o resultado; 1: não) ou uma " +
			"requisição (2xx: aconteceu; 404, 410: não); com outro desfecho, uma pessoa é perguntada. {{call_id}} é o ID da chamada",
	},

	// Parts.
	{"type of the value; string if there is no default", "tipo do valor; string se não há valor padrão"},
	{"value if the run gives none; without a default the input is required", "valor se a execução não trouxer um; sem ele a entrada é obrigatória"},
	{"text that explains the input", "texto que explica a entrada"},
	{"price of a million input tokens; 0 is free", "preço de um milhão de tokens de entrada; 0 é grátis"},
	{"price of a million output tokens; 0 is free", "preço de um milhão de tokens de saída; 0 é grátis"},
	{
		"text without placeholders that is sent first; instructions then follow the conversation, so that a provider's cache can keep what is before them",
		"texto sem espaços reservados que vai primeiro; as instructions vêm depois da conversa, para que o cache do provedor guarde o que vem antes",
	}, {
		"off, so that a provider is not asked to keep what requests repeat; or how long it is to keep that, such as 24h with OpenAI; on a workflow agent for all agents inside; on if left out",
		"off, para não pedir ao provedor que guarde o que os pedidos repetem; ou por quanto tempo guardar, como 24h na OpenAI; num agente de fluxo para todos os agentes dentro; on se omitido",
	}, {
		"price of input tokens from the provider's cache; that of input if left out",
		"preço dos tokens de entrada do cache do provedor; sem valor, o de input",
	}, {
		"price of input tokens written into the cache for 5 minutes; 1.25 times that of input if left out",
		"preço dos tokens de entrada gravados no cache por 5 minutos; sem valor, 1,25 vez o de input",
	}, {
		"price of input tokens written into the cache for an hour; twice that of input if left out",
		"preço dos tokens de entrada gravados no cache por uma hora; sem valor, o dobro de input",
	},
	{"state key of the score: a number, JSON, or text with a number in it", "chave do estado com a nota: um número, JSON, ou texto com um número"},
	{"word before the number in a text, such as Score", "palavra antes do número num texto, como Score"},
	{"field of the score, if the value is JSON", "campo da nota, se o valor é JSON"},
	{"expression that computes the score, in place of key", "expressão que calcula a nota, em vez de key"},
	{"step that gives the score; or {step, samples} to ask it several times", "passo que dá a nota; ou {step, samples} para perguntar várias vezes"},
	{"parts of the score: fields of the JSON", "partes da nota: campos do JSON"},
	{"target that every part must reach too", "meta que cada parte também deve alcançar"},
	{"end the loop when the score reaches this", "encerra o laço quando a nota chega a este valor"},
	{"end the loop when the score improves by less than this", "encerra o laço quando a nota melhora menos que isto"},
	{"min_delta in percent of the previous score", "min_delta em porcentagem da nota anterior"},
	{"iterations in a row whose improvement must be too small", "iterações seguidas com melhora pequena demais"},
	{"true if lower scores are better", "true se notas menores são melhores"},
	{"equal iterations in a row that end the loop", "iterações iguais seguidas que encerram o laço"},
	{"times that two results must alternate to end the loop", "vezes que dois resultados devem se alternar para encerrar o laço"},
	{"state keys to compare; everything said and changed if left out", "chaves do estado a comparar; sem valor, tudo o que foi dito e mudado"},
	{"least expected gain in score", "menor ganho esperado de nota"},
	{"requests to models", "requisições a modelos"},
	{"tokens of input and output together", "tokens de entrada e saída somados"},
	{"cost, by the prices at the root", "custo, pelos preços na raiz"},
	{"attempts in all", "tentativas ao todo"},
	{"wait before the second attempt; doubles before each further one", "espera antes da segunda tentativa; dobra antes de cada outra"},
	{"longest wait", "maior espera"},
	{"longest wait that a provider may ask for", "maior espera que um provedor pode pedir"},
	{"failures in a row that open the circuit", "falhas seguidas que abrem o circuito"},
	{"time that the circuit stays open", "tempo em que o circuito fica aberto"},
	{"shortest timeout", "menor limite de tempo"},
	{"longest timeout; also the timeout until there are enough durations", "maior limite de tempo; também o limite até haver durações suficientes"},
	{"factor on the 95th percentile of the durations, at least 1", "fator sobre o percentil 95 das durações, pelo menos 1"},
	{"durations to wait for, at most 32", "durações a esperar, no máximo 32"},
	{"time that a result stays valid; until the loop ends if left out", "tempo em que um resultado vale; sem valor, até o fim do laço"},
	{"text with placeholders for everything that the result depends on", "texto com espaços reservados para tudo de que o resultado depende"},
	{
		"iterations to send, with the current one; with a digest only the current one if left out",
		"iterações a enviar, com a atual; com um resumo, sem valor, só a atual",
	},
	{
		"true summarizes earlier iterations in a few lines, and gives the best one in full",
		"true resume as iterações anteriores em poucas linhas, e dá a melhor inteira",
	},
	{"most characters of the best iteration in the digest", "máximo de caracteres da melhor iteração no resumo"},
	{"true: the step must not run twice", "true: o passo não pode rodar duas vezes"},
	{"before the run starts; at the root", "antes de a execução começar; na raiz"},
	{"after the run ends; at the root", "depois de a execução terminar; na raiz"},
	{"before the agent", "antes do agente"},
	{"after the agent, unless it failed", "depois do agente, a não ser que tenha falhado"},
	{"before each iteration of the loop", "antes de cada iteração do laço"},
	{"after each iteration, with its score", "depois de cada iteração, com a nota"},
	{"before each model call of the agent or an agent inside it", "antes de cada chamada ao modelo do agente ou de um de dentro"},
	{"before each tool call of the agent or an agent inside it", "antes de cada chamada de ferramenta do agente ou de um de dentro"},
	{"after each of them", "depois de cada uma delas"},
	{
		"longest wait; if a server asks for more by Retry-After, there is no further attempt",
		"maior espera; se um servidor pede mais por Retry-After, não há outra tentativa",
	},
	{
		"name of what the step depends on; steps of the loop with the same endpoint share a circuit",
		"nome daquilo de que o passo depende; passos do laço com o mesmo endpoint compartilham um circuito",
	},
	{
		"unit that must bring the gain: an iteration, a minute, a thousand tokens or a unit of cost",
		"unidade que deve trazer o ganho: uma iteração, um minuto, mil tokens ou uma unidade de custo",
	},

	{
		"files that the commands work on, as part of the state: {from, base, copy, setup, protect, on_protected, limits, result}",
		"arquivos em que os comandos trabalham, como parte do estado: {from, base, copy, setup, protect, on_protected, limits, result}",
	},
	{
		"clean runs the step in a fresh checkout of the workspace's files, with protected files as they were at the start; what it changes there is dropped",
		"clean roda o passo numa cópia nova dos arquivos do workspace, com os arquivos protegidos como eram no início; o que ele muda ali é descartado",
	},
	{
		"folder inside the run's root that is laid over the clean checkout, such as tests that the agent never sees",
		"pasta dentro da raiz da execução que é posta sobre a cópia nova, como testes que o agente nunca vê",
	},
	{
		"required fails the step if it leaves the files of the workspace as they were",
		"required faz o passo falhar se ele deixa os arquivos do workspace como estavam",
	},
	{
		"git repository or folder to copy the files from, inside the run's root; the root if left out",
		"repositório git ou pasta de onde copiar os arquivos, dentro da raiz da execução; sem valor, a raiz",
	},
	{
		"files that the copy begins with: dirty, as they are on the disk (default), or head, as in the last commit",
		"arquivos com que a cópia começa: dirty, como estão no disco (padrão), ou head, como no último commit",
	},
	{
		"ignored files to copy too, as in .gitignore; those in .worktreeinclude are copied anyway",
		"arquivos ignorados a copiar também, como em .gitignore; os de .worktreeinclude são sempre copiados",
	},
	{"program and arguments that prepare a new copy; no shell reads them", "programa e argumentos que preparam uma nova cópia; nenhum shell os lê"},
	{"files that commands may not change, such as **/*_test.go", "arquivos que os comandos não podem mudar, como **/*_test.go"},
	{
		"after a command has changed a protected file: restore (default) puts it back, fail fails the step",
		"depois que um comando mudou um arquivo protegido: restore (padrão) o repõe, fail faz o passo falhar",
	},
	{
		"largest difference from the start, file and store: {files, lines, file_size, store}",
		"maior diferença do início, arquivo e depósito: {files, lines, file_size, store}",
	},
	{
		"where the files of the result go: {branch}, {patch} or {apply}; they stay in the store if left out",
		"para onde vão os arquivos do resultado: {branch}, {patch} ou {apply}; sem valor, ficam no depósito",
	},
	{"most files that differ from the start", "máximo de arquivos diferentes do início"},
	{"most lines added and removed since the start", "máximo de linhas acrescentadas e removidas desde o início"},
	{"largest file, such as 5MB", "maior arquivo, como 5MB"},
	{"most bytes in the store of all runs, such as 2GB", "máximo de bytes no depósito de todas as execuções, como 2GB"},
	{"new branch in the repository, such as refrain/{{run}}", "novo branch no repositório, como refrain/{{run}}"},
	{"file for the changes, inside the run's root", "arquivo para as mudanças, dentro da raiz da execução"},
	{"true writes the changes into the files themselves", "true escreve as mudanças nos próprios arquivos"},
}
